//! Fills the defaults of a schema into an input.

use serde_json::Value;

use super::resolve;

/// References that are followed to find a default.
const DEPTH_MAX: usize = 32;

/// Bytes of a text that weigh as much as a value of its own.
const TEXT_WEIGHT: usize = 100;

/// The defaults of one schema, being put into one input.
pub(super) struct Filling<'s> {
    pub(super) root: &'s Value,
    /// What may still be added.
    pub(super) left: usize,
    /// How many more times a subschema may be applied.
    pub(super) steps_left: usize,
}

/// The defaults add more than one input may hold, or take too long.
pub(super) struct TooMany;

impl<'s> Filling<'s> {
    /// Puts the defaults of properties where nothing was given; inside objects and lists that were given too.
    pub(super) fn fill(
        &mut self,
        schema: &'s Value,
        value: &mut Value,
        depth: usize,
    ) -> Result<(), TooMany> {
        let Value::Object(keys) = schema else {
            return Ok(());
        };
        self.steps_left = self.steps_left.checked_sub(1).ok_or(TooMany)?;
        if depth > DEPTH_MAX {
            return Ok(());
        }
        if let Some(Value::String(target)) = keys.get("$ref")
            && let Some(target) = resolve(self.root, target)
        {
            self.fill(target, value, depth + 1)?;
        }
        let parts = keys.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.fill(part, value, depth + 1)?;
        }
        match value {
            Value::Object(given) => {
                let properties = keys.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    if !given.contains_key(name)
                        && let Some(default) = self.default_of(property)
                    {
                        self.take(default)?;
                        given.insert(name.clone(), default.clone());
                    }
                    if let Some(inner) = given.get_mut(name) {
                        self.fill(property, inner, depth + 1)?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = keys.get("items") {
                    for item in items {
                        self.fill(schema, item, depth + 1)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The default of a property: its own, else that of the schema that it refers to.
    fn default_of(&self, property: &'s Value) -> Option<&'s Value> {
        let mut found = property;
        for _ in 0..DEPTH_MAX {
            let own = found.get("default");
            if own.is_some() {
                return own;
            }
            found = resolve(self.root, found.get("$ref")?.as_str()?)?;
        }
        None
    }

    /// Takes what a default adds from what may still be added.
    fn take(&mut self, default: &Value) -> Result<(), TooMany> {
        let own = match default {
            Value::String(text) => 1 + text.len() / TEXT_WEIGHT,
            _ => 1,
        };
        self.left = self.left.checked_sub(own).ok_or(TooMany)?;
        match default {
            Value::Array(items) => items.iter().try_for_each(|item| self.take(item)),
            Value::Object(map) => map.values().try_for_each(|item| self.take(item)),
            _ => Ok(()),
        }
    }
}
