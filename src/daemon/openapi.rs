//! The OpenAPI document, made from the types that are read and written.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::description::Description;
use super::route::Route;
use crate::model::Diagnostic;

/// Statuses that any request may be answered with, and what they mean.
const REFUSALS: [(&str, &str); 15] = [
    ("400", "the request is wrong"),
    (
        "401",
        "the request has no session; where the web page is served only",
    ),
    (
        "403",
        "it may not start (unavailable or denied), or the caller lacks the required role",
    ),
    ("404", "nothing of that name"),
    ("405", "this path does not take this method"),
    ("408", "the body did not arrive in time"),
    (
        "409",
        "it is locked or busy, or it is too late for this request",
    ),
    ("413", "the body is too large"),
    ("415", "the body is not JSON"),
    ("422", "a definition or the configuration is wrong"),
    ("431", "the head is too large"),
    ("500", "an internal error or a failure of the machine"),
    (
        "503",
        "refused for now; the same request can succeed after `Retry-After` seconds",
    ),
    (
        "504",
        "the request did not finish in time; it may still take effect",
    ),
    ("507", "no space is left for the store"),
];

/// The document of these routes.
pub(super) fn document(routes: &[Route]) -> Map<String, Value> {
    // OpenAPI 3.1 takes JSON Schema of 2020-12 as it is.
    let settings = || {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings
    };
    // Requests are described as they are read, replies as they are written; no type is both.
    let mut requests = settings().for_deserialize().into_generator();
    let mut replies = settings().for_serialize().into_generator();
    let refusal = json!(replies.subschema_for::<Diagnostic>());
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] =
            describe(route, &mut requests, &mut replies, &refusal);
    }
    let mut schemas = requests.take_definitions(true);
    schemas.extend(replies.take_definitions(true));
    let info = json!({
        "title": "workerctl",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Control of an engine over its Unix socket. Unknown fields are refused in requests; \
            readers of replies must ignore fields that they do not know. Every connection carries one request; \
            heard are the engine's own user, root, and those who have a role. `x-role` says which role an operation needs, `x-runs` whether commands of runs may ask for it. \
            Where the web page is served, `Authorization: Bearer TOKEN` says who asks.",
        "license": {"name": "MIT OR Apache-2.0"}
    });
    let servers = json!([{"url": "/", "description": "HTTP/1.1 over the Unix socket"}]);
    Map::from_iter([
        ("openapi".to_owned(), json!("3.1.0")),
        ("info".to_owned(), info),
        ("servers".to_owned(), servers),
        ("paths".to_owned(), paths.into()),
        ("components".to_owned(), json!({"schemas": schemas})),
    ])
}

fn describe(
    route: &Route,
    requests: &mut SchemaGenerator,
    replies: &mut SchemaGenerator,
    refusal: &Value,
) -> Value {
    let mut description = Description {
        requests,
        replies,
        summary: route.summary,
        parameters: Vec::new(),
        body: None,
        responses: Map::new(),
    };
    (route.describe)(&mut description);
    for (status, meaning) in REFUSALS {
        description.reply(
            status,
            meaning,
            &json!({"application/json": {"schema": refusal}}),
        );
    }
    let mut described = json!({
        "operationId": route.id,
        "summary": route.summary,
        "x-role": route.role.name(),
        "x-runs": route.by_person.is_none(),
        "parameters": description.parameters,
        "responses": description.responses
    });
    if let Some(body) = description.body {
        described["requestBody"] = body;
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::routes::routes;

    #[test]
    fn the_document_covers_every_operation_and_refers_to_nothing_that_is_missing() {
        let document = Value::from(document(&routes()));
        for route in routes() {
            let method = route.method.as_str().to_ascii_lowercase();
            let described = &document["paths"][route.path][&method];
            assert_eq!(described["operationId"], route.id);
            assert_ne!(route.summary, "", "{}", route.id);
            assert_eq!(described["x-role"], route.role.name());
            assert!(described["responses"]["400"].is_object(), "{}", route.id);
        }
        let text = document.to_string();
        let mut references = 0;
        for part in text.split("\"$ref\":\"").skip(1) {
            let pointer = part.split('"').next().unwrap_or_default();
            let pointer = pointer.strip_prefix('#').expect("a local reference");
            assert!(
                document.pointer(pointer).is_some(),
                "{pointer} leads nowhere"
            );
            references += 1;
        }
        assert!(references > 20, "{references}");
        assert!(
            !text.contains("$defs"),
            "definitions belong to the components"
        );
    }

    #[test]
    fn requests_refuse_unknown_fields_and_replies_allow_them() {
        let document = Value::from(document(&routes()));
        let schemas = &document["components"]["schemas"];
        for request in [
            "SubmitRequest",
            "CancelRequest",
            "ResolveRequest",
            "Nothing",
        ] {
            assert_eq!(schemas[request]["additionalProperties"], false, "{request}");
        }
        for reply in ["Submitted", "RunDetail", "Status", "Diagnostic"] {
            assert!(
                schemas[reply].get("additionalProperties").is_none(),
                "{reply}"
            );
        }
    }
}
