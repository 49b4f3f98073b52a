//! Schemas that are refused, and inputs that they accept.

use serde_json::json;

use super::*;

#[test]
fn defaults_are_filled_in_before_the_input_is_checked() {
    let schema = json!({
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "format": {"type": "string", "enum": ["bullets", "tldr"], "default": "bullets"},
            "page": {"$ref": "#/$defs/page", "default": {}},
        },
        "required": ["content", "format"],
        "$defs": {"page": {"type": "object", "properties": {"size": {"default": 10}}}},
    });
    let schema = InputSchema::new(&schema).unwrap();
    assert_eq!(
        schema.bind(json!({"content": "x"})),
        Ok(json!({"content": "x", "format": "bullets", "page": {"size": 10}}))
    );
    let faults = schema.bind(json!({"format": "prose"})).unwrap_err();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().any(|fault| fault.at == "/format"));
    assert!(faults.iter().any(|fault| fault.message.contains("content")));
}

#[test]
fn defaults_that_lead_back_to_themselves_end_with_a_refusal() {
    let again = json!({"$ref": "#", "default": {}});
    let bomb = json!({"type": "object", "properties": {"p0": again, "p1": again, "p2": again, "p3": again}});
    let bomb = InputSchema::new(&bomb).unwrap();
    let faults = bomb.bind(json!({})).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].message.contains("`input_schema`"), "{faults:?}");
    // Few but long ones weigh as well.
    let long = json!({"default": "x".repeat(60_000)});
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("p{n}"), long.clone())).collect();
    let long = InputSchema::new(&json!({"properties": properties})).unwrap();
    assert!(long.bind(json!({})).is_err());
    // Those of a schema that is referred to count, but where the property has its own.
    let behind = json!({
        "properties": {"o": {"$ref": "#/$defs/o"}, "p": {"$ref": "#/$defs/o", "default": 5}},
        "required": ["o", "p"],
        "$defs": {"o": {"$ref": "#/$defs/n"}, "n": {"type": "integer", "default": 4}},
    });
    let behind = InputSchema::new(&behind).unwrap();
    assert_eq!(behind.bind(json!({})), Ok(json!({"o": 4, "p": 5})));
    // One that ends is filled in full.
    let chain = json!({"properties": {"p": again, "q": {"default": 1}}});
    let chain = InputSchema::new(&chain).unwrap();
    assert_eq!(chain.bind(json!({})).unwrap()["p"]["p"]["q"], 1);
}

#[test]
fn an_input_that_would_take_too_long_is_refused() {
    let below = |name: &str| json!({"properties": {"n": {"$ref": "#"}}, "required": [name]});
    let alternatives = json!({"anyOf": [below("x"), below("y")]});
    let defaults: Vec<Value> = (0..20).map(|_| below("x")).collect();
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"n": inner}));
    for schema in [alternatives, json!({"allOf": defaults})] {
        let schema = InputSchema::new(&schema).unwrap();
        let faults = schema.bind(nested(100)).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].message.contains("`input_schema`"), "{faults:?}");
        assert!(schema.bind(nested(2)).is_err());
    }
    let list = InputSchema::new(&json!({"items": {"anyOf": [{"type": "string"}, {"minimum": 0}]}}));
    assert!(list.unwrap().bind(json!(vec![1; 300_000])).is_ok());
}

#[test]
fn schemas_that_refer_outside_or_never_end_are_refused() {
    let chain: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"allOf": [next, next]}))
        })
        .chain([("d40".to_owned(), json!(true))])
        .collect();
    let table = [
        (
            json!({"$ref": "https://example.org/s.json"}),
            "outside of it",
        ),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "outside of it",
        ),
        (json!({"$ref": "#/$defs/none"}), "refers to nothing"),
        (json!({"$ref": "#"}), "refers back"),
        (
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
            "refers back",
        ),
        (json!({"$ref": "#/$defs/d0", "$defs": chain}), "subschemas"),
        (
            json!({"type": 5}),
            "not a valid JSON Schema at `/type`: `type` must be",
        ),
        (
            json!({"$schema": "https://example.org/draft"}),
            "not a known draft",
        ),
    ];
    for (schema, expected) in table {
        let refused = InputSchema::new(&schema).unwrap_err();
        assert!(refused.contains(expected), "{schema}: {refused}");
    }
    // A tree refers to itself one level down, which ends with the value.
    let tree = json!({"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#"}}}});
    let tree = InputSchema::new(&tree).unwrap();
    assert!(tree.bind(json!({"below": [{"below": []}]})).is_ok());
    assert!(tree.bind(json!({"below": [3]})).is_err());
}

#[test]
fn schemas_with_unusable_keywords_are_refused() {
    for (schema, expected) in [
        (json!({"unevaluatedProperties": false}), "not supported"),
        (
            json!({"properties": {"a": {"$dynamicRef": "#x"}}}),
            "not supported",
        ),
        (
            json!({"properties": {"a": {"$id": "https://example.org/a"}}}),
            "`$id`",
        ),
        (json!({"pattern": "(?=x)"}), "look-around"),
        (json!({"patternProperties": {"(": {}}}), "pattern"),
        (json!({"required": "a"}), "a list of names"),
        (json!({"minLength": -1}), "0 or greater"),
        (json!({"multipleOf": 0}), "greater than 0"),
        (json!({"properties": {"a": 3}}), "a schema is a map"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"minimum": "1"}}}),
            "a number",
        ),
        (
            json!({"$ref": "#/x-parts/a", "x-parts": {"a": {"minimum": "1"}}}),
            "a number",
        ),
    ] {
        let refused = InputSchema::new(&schema).unwrap_err();
        assert!(refused.contains(expected), "{schema}: {refused}");
    }
    // These are data or annotations, whatever they look like.
    for schema in [
        json!({"const": {"$ref": "https://example.org"}}),
        json!({"properties": {"$ref": {"type": "string"}}}),
        json!({"x-order": 1, "examples": [{"type": 5}], "format": "int64"}),
    ] {
        assert!(InputSchema::new(&schema).is_ok(), "{schema}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of all keywords")]
fn values_are_validated_as_the_specification_has_it() {
    let tree = json!({"required": ["n"], "properties": {"n": {"$ref": "#"}}});
    let branch = json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}});
    let extra = json!({"properties": {"a": {}}, "patternProperties": {"^x": {"type": "null"}}, "additionalProperties": false});
    let names = json!({"propertyNames": {"maxLength": 2}, "minProperties": 1});
    let pair = json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}});
    let old_pair = json!({"items": [{"type": "integer"}], "additionalItems": false});
    let contains = json!({"contains": {"minimum": 5}, "minContains": 2, "maxContains": 2});
    let older = json!({"minimum": 1, "exclusiveMinimum": true});
    let needs =
        json!({"dependentRequired": {"a": ["b"]}, "dependencies": {"c": {"required": ["a"]}}});
    let format = |name: &str| json!({"format": name});
    for (schema, valid, invalid) in [
        (
            json!({"type": ["integer", "null"]}),
            json!([1, 1.0, null, -3]),
            json!([1.5, "1", true]),
        ),
        (
            json!({"enum": [1, {"a": 2, "b": 3}]}),
            json!([1.0, {"b": 3, "a": 2}]),
            json!([2, {"a": 2}]),
        ),
        (
            json!({"const": [1]}),
            json!([[1], [1.0]]),
            json!([1, [1, 1]]),
        ),
        (
            json!({"exclusiveMaximum": 3, "minimum": 1}),
            json!([1, 2.9, "x"]),
            json!([3, 0.5]),
        ),
        (older, json!([1.1, 2]), json!([1])),
        (
            json!({"multipleOf": 0.1}),
            json!([0.3, 1, 1.1]),
            json!([0.35]),
        ),
        (
            json!({"maximum": 9_007_199_254_740_992_u64}),
            json!([9_007_199_254_740_992_u64]),
            json!([9_007_199_254_740_993_u64]),
        ),
        (
            json!({"minLength": 2, "maxLength": 3, "pattern": "^ä"}),
            json!(["äb", "äöü", 4]),
            json!(["ä", "äöüß", "ab"]),
        ),
        (
            json!({"uniqueItems": true, "minItems": 1, "maxItems": 2}),
            json!([[1, "1"]]),
            json!([[], [1, 1.0], [1, 2, 3]]),
        ),
        (pair, json!([[1, "a", "b"], []]), json!([["a"], [1, 2]])),
        (old_pair, json!([[1]]), json!([[1, 2]])),
        (contains, json!([[5, 1, 6]]), json!([[5], [5, 6, 7]])),
        (
            extra,
            json!([{"a": 1, "x1": null}]),
            json!([{"b": 1}, {"x1": 1}]),
        ),
        (names, json!([{"ab": 1}]), json!([{}, {"abc": 1}])),
        (
            needs,
            json!([{"a": 1, "b": 1}, {"b": 1}]),
            json!([{"a": 1}, {"c": 1}]),
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
            json!([1]),
            json!([0, 3]),
        ),
        (
            json!({"anyOf": [{"minimum": 9}, {"maximum": 2}]}),
            json!([1, 9]),
            json!([5]),
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}),
            json!([0, 3]),
            json!([1]),
        ),
        (json!({"not": {"type": "string"}}), json!([1]), json!(["a"])),
        (
            branch,
            json!([{"a": 1, "b": 1}, {}]),
            json!([{"a": 1}, {"b": 1}]),
        ),
        (
            json!({"properties": {"n": false}}),
            json!([{}]),
            json!([{"n": 1}]),
        ),
        (tree, json!([{"n": 3}]), json!([{"n": {}}, {}])),
        (
            format("date"),
            json!(["2026-02-28"]),
            json!(["2026-02-30", "2026-2-1"]),
        ),
        (
            format("date-time"),
            json!(["2026-02-28T10:00:00Z"]),
            json!(["2026-02-28 10:00:00Z", "2026-02-28"]),
        ),
        (
            format("time"),
            json!(["10:00:00+01:00"]),
            json!(["10:00", "25:00:00Z"]),
        ),
        (
            format("email"),
            json!(["a.b+c@example.org"]),
            json!(["a@", "a b@c.d", "@c.d"]),
        ),
        (
            format("hostname"),
            json!(["a-b.example"]),
            json!(["-a", "a..b", "a_b"]),
        ),
        (
            format("ipv4"),
            json!(["10.0.0.1"]),
            json!(["10.0.0.256", "10.0.1"]),
        ),
        (format("ipv6"), json!(["::1"]), json!(["::g"])),
        (
            format("uri"),
            json!(["https://example.org/a?b"]),
            json!(["/a", "a b"]),
        ),
        (
            format("uuid"),
            json!(["123e4567-e89b-12d3-a456-426614174000"]),
            json!(["123e4567e89b12d3a456426614174000", "x"]),
        ),
        (format("regex"), json!(["a+"]), json!(["("])),
    ] {
        let schema = InputSchema::new(&schema).unwrap();
        for value in valid.as_array().unwrap() {
            assert_eq!(schema.bind(value.clone()), Ok(value.clone()), "{schema:?}");
        }
        for value in invalid.as_array().unwrap() {
            assert!(schema.bind(value.clone()).is_err(), "{value} {schema:?}");
        }
    }
}

#[test]
fn a_fault_names_its_place() {
    let item = json!({"type": "object", "properties": {"a/b": {"type": "string", "maxLength": 3}}});
    let schema = InputSchema::new(&json!({"properties": {"list": {"items": item}}})).unwrap();
    let faults = schema
        .bind(json!({"list": [{}, {"a/b": "long"}, 4]}))
        .unwrap_err();
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| (&*fault.at, &*fault.message))
        .collect();
    let expected = [
        ("/list/1/a~1b", "\"long\" is longer than 3 characters"),
        ("/list/2", "4 is not of type \"object\""),
    ];
    assert_eq!(faults, expected);
}
