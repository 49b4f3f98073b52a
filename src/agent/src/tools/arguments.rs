//! Arguments of calls: one table for each tool gives its schema and checks its calls.

use serde_json::{Map, Value, json};

/// One argument of a tool.
#[derive(Debug)]
pub(super) struct ToolField {
    pub(super) name: &'static str,
    pub(super) of: FieldType,
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// What an argument is.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldType {
    Text,
    Number { min: u64, max: u64 },
    Flag,
    Object,
}

impl FieldType {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Number { min, max } => value.as_u64().is_some_and(|n| (min..=max).contains(&n)),
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
        }
    }
}

/// JSON Schema of an object with these fields.
pub(super) fn schema(fields: &[ToolField]) -> Value {
    let property = |field: &ToolField| {
        let mut property = match field.of {
            FieldType::Text => json!({"type": "string"}),
            FieldType::Flag => json!({"type": "boolean"}),
            FieldType::Object => json!({"type": "object"}),
            FieldType::Number { min, max } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
        };
        property["description"] = field.about.into();
        (field.name.to_owned(), property)
    };
    let required = fields.iter().filter(|field| field.required);
    json!({
        "type": "object",
        "properties": fields.iter().map(property).collect::<Map<_, _>>(),
        "required": required.map(|field| field.name).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

/// Arguments that fit their tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedArguments<'a>(&'a Map<String, Value>);

impl<'a> CheckedArguments<'a> {
    /// Checks the arguments of the tool `name`; what is wrong is said with all that it takes.
    pub(super) fn check(
        name: &str,
        fields: &[ToolField],
        arguments: &'a Value,
    ) -> Result<Self, String> {
        let shape = || {
            let mark = |field: &ToolField| if field.required { "" } else { "?" };
            let named = fields.iter().map(|f| format!("{}{}", f.name, mark(f)));
            format!("{name} takes {{{}}}", named.collect::<Vec<_>>().join(", "))
        };
        let Some(given) = arguments.as_object() else {
            return Err(format!("the arguments are no object: {}", shape()));
        };
        for field in fields {
            match given.get(field.name) {
                // Some models fill what they leave out with null.
                None | Some(Value::Null) if !field.required => {}
                None | Some(Value::Null) => {
                    return Err(format!("`{}` is missing: {}", field.name, shape()));
                }
                Some(value) if field.of.fits(value) => {}
                Some(_) => {
                    let words = field.of.in_words();
                    return Err(format!("`{}` has to be {words}: {}", field.name, shape()));
                }
            }
        }
        match given
            .keys()
            .find(|key| fields.iter().all(|f| f.name != *key))
        {
            Some(unknown) => Err(format!("`{unknown}` is unknown: {}", shape())),
            None => Ok(Self(given)),
        }
    }

    pub(super) fn all(self) -> &'a Map<String, Value> {
        self.0
    }

    /// A text; empty where it is left out.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number, if it is given.
    pub(super) fn number(self, name: &str) -> Option<usize> {
        let number = self.0.get(name).and_then(Value::as_u64)?;
        usize::try_from(number).ok()
    }

    /// A flag; false where it is left out.
    pub(super) fn flag(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}
