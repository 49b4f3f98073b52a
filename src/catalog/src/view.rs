//! A value with the text it stands in, and how texts, numbers and spans of time are read from it.

use super::align::{show_number, visible_offsets};
use super::examples::Wrong;
use super::report::Report;
use super::source::Source;
use super::tree::{Data, Node, Number};
use crate::model::Place;
use crate::model::duration::{DurationError, parse_millis};

/// A value of a definition where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    source: &'a Source,
    node: &'a Node,
    /// Where the key stands that names the value.
    key_start: usize,
}

impl<'a> View<'a> {
    /// The value of a whole document.
    pub(crate) fn root(source: &'a Source, node: &'a Node) -> View<'a> {
        View {
            source,
            node,
            key_start: node.start,
        }
    }

    /// What it holds.
    pub(crate) fn data(&self) -> &'a Data {
        &self.node.data
    }

    /// The byte at which it begins.
    #[cfg(test)]
    pub(crate) fn start(&self) -> usize {
        self.node.start
    }

    /// Where it stands; where nothing is written, its key.
    pub(crate) fn place(&self) -> Place {
        self.source.place(self.node.start)
    }

    /// Where the key of the value stands.
    pub(crate) fn key_place(&self) -> Place {
        self.source.place(self.key_start)
    }

    /// Whether nothing is written, or null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.data, Data::Null)
    }

    /// Whether a key has no value, not even `null` or `~`.
    pub(crate) fn is_left_empty(&self) -> bool {
        self.is_null() && self.raw().is_empty()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<View<'a>> {
        #[cfg(test)]
        crate::tests::read_keys::record(self.source, self.node.start, key);
        self.entries()
            .find(|(name, _)| *name == key)
            .map(|(_, view)| view)
    }

    /// The value of a key where one is written.
    pub(crate) fn written(&self, key: &str) -> Option<View<'a>> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Keys and values of a map; nothing for other values.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, View<'a>)> + use<'a> {
        let source = self.source;
        let entries = match &self.node.data {
            Data::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(move |entry| {
            let view = View {
                source,
                node: &entry.value,
                key_start: entry.start,
            };
            (entry.key.as_str(), view)
        })
    }

    /// Items of a list; nothing for other values.
    pub(crate) fn items(&self) -> impl Iterator<Item = View<'a>> + use<'a> {
        let source = self.source;
        let items = match &self.node.data {
            Data::List(items) => items.as_slice(),
            _ => &[],
        };
        items.iter().map(move |node| View {
            source,
            node,
            key_start: node.start,
        })
    }

    /// Items of a list, or another value alone.
    pub(crate) fn each(&self) -> Vec<View<'a>> {
        match self.data() {
            Data::List(_) => self.items().collect(),
            _ => vec![*self],
        }
    }

    /// Name of the kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.node.data {
            Data::Null => "nothing",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::Text(_) => "text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }

    /// The text of a scalar as it is written: `1.10` stays `1.10`. None for null, lists and maps.
    pub(crate) fn scalar_text(&self) -> Option<String> {
        let written = Some(self.raw()).filter(|raw| !raw.is_empty());
        match &self.node.data {
            Data::Text(text) => Some(text.clone()),
            Data::Bool(value) => Some(written.map_or_else(|| value.to_string(), ToOwned::to_owned)),
            Data::Number(number) => {
                Some(written.map_or_else(|| show_number(*number), ToOwned::to_owned))
            }
            Data::Null | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// Place of the byte at `offset` of a text value.
    pub(crate) fn place_within(&self, offset: usize) -> Place {
        let Data::Text(value) = &self.node.data else {
            return self.place();
        };
        let raw = self.raw();
        let before = value.get(..offset).unwrap_or(value);
        let visible = before.chars().filter(|c| !c.is_ascii_whitespace()).count();
        let at = visible_offsets(raw).get(visible).copied().unwrap_or(0);
        self.source.place(self.node.start + at)
    }

    /// The text of the value as it is written, quotes and marks of blocks included.
    pub(crate) fn raw(&self) -> &'a str {
        let range = self.node.start..self.node.end;
        self.source.text().get(range).unwrap_or_default()
    }

    /// Place of the byte at `offset` of the text as it is written.
    pub(crate) fn place_of_raw(&self, offset: usize) -> Place {
        self.source.place(self.node.start + offset)
    }

    /// Says that the value is not what is expected here.
    pub(crate) fn wrong_type(&self, what: &str, expected: &str, report: &mut Report) {
        if let Some(name) = self.placeholder_name() {
            report.error(
                "quote-placeholder",
                self.place(),
                format!("`{what}` is read as a map because `{{{name}}}` is not quoted"),
                &format!("quote the placeholder: `\"{{{name}}}\"`"),
            );
            return;
        }
        let message = format!("`{what}` must be {expected}, not {}", self.kind());
        report.error(
            "wrong-type",
            self.place(),
            message,
            &self.wrong(what, expected).hint(),
        );
    }

    fn wrong<'w>(&'w self, key: &'w str, expected: &'w str) -> Wrong<'w> {
        Wrong {
            key,
            expected,
            data: self.data(),
            is_item: self.key_start == self.node.start,
        }
    }

    /// The name in a `{name}` that was read as a map.
    fn placeholder_name(&self) -> Option<&'a str> {
        let Data::Map(entries) = &self.node.data else {
            return None;
        };
        match entries.as_slice() {
            [entry] if matches!(entry.value.data, Data::Null) && !entry.key.is_empty() => {
                let raw = self.source.text().get(self.node.start..)?;
                raw.starts_with('{').then_some(entry.key.as_str())
            }
            _ => None,
        }
    }

    /// Text, also where the parser saw a number or a truth value. None when an error was reported.
    pub(crate) fn text(&self, what: &str, report: &mut Report) -> Option<String> {
        let text = self.scalar_text();
        if text.is_none() {
            self.wrong_type(what, "text", report);
        }
        text
    }

    /// Text that is not blank.
    pub(crate) fn filled_text(&self, what: &str, report: &mut Report) -> Option<String> {
        let text = self.text(what, report)?;
        if text.trim().is_empty() {
            let message = format!("`{what}` is blank");
            report.error(
                "blank",
                self.place(),
                message,
                "write a text or remove the key",
            );
            return None;
        }
        Some(text)
    }

    /// `true` or `false` and nothing that looks like it.
    pub(crate) fn flag(&self, what: &str, report: &mut Report) -> Option<bool> {
        if let Data::Bool(value) = self.node.data {
            return Some(value);
        }
        self.wrong_type(what, "`true` or `false`", report);
        None
    }

    /// A whole number within bounds.
    pub(crate) fn whole(
        &self,
        what: &str,
        bounds: std::ops::RangeInclusive<u64>,
        report: &mut Report,
    ) -> Option<u64> {
        let expected = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let number = match self.node.data {
            Data::Number(Number::Signed(value)) => u64::try_from(value).ok(),
            Data::Number(Number::Unsigned(value)) => Some(value),
            Data::Number(Number::Float(_)) => None,
            _ => {
                self.wrong_type(what, &expected, report);
                return None;
            }
        };
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            let message = format!("`{what}` must be {expected}");
            report.error(
                "out-of-range",
                self.place(),
                message,
                &format!("write {expected}"),
            );
        }
        number
    }

    /// A number that is one.
    pub(crate) fn number(&self, what: &str, report: &mut Report) -> Option<f64> {
        let number = self
            .scalar_text()
            .filter(|_| matches!(self.node.data, Data::Number(_)))
            .and_then(|_| self.as_f64())
            .filter(|number| number.is_finite());
        if number.is_none() {
            self.wrong_type(what, "a number", report);
        }
        number
    }

    /// A number as JSON, whatever way it is written: `1.50` is one and a half.
    pub(crate) fn number_json(&self, what: &str, report: &mut Report) -> Option<serde_json::Value> {
        match self.node.data {
            Data::Number(Number::Signed(value)) => Some(value.into()),
            Data::Number(Number::Unsigned(value)) => Some(value.into()),
            _ => serde_json::Number::from_f64(self.number(what, report)?)
                .map(serde_json::Value::Number),
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self.node.data {
            Data::Number(number) => show_number(number).parse().ok(),
            _ => None,
        }
    }

    /// A span of time in milliseconds; a number without unit is seconds, with a warning.
    pub(crate) fn millis(&self, what: &str, report: &mut Report) -> Option<u64> {
        let Some(text) = self
            .scalar_text()
            .filter(|_| !matches!(self.node.data, Data::Bool(_)))
        else {
            self.wrong_type(what, "a duration such as `15m`", report);
            return None;
        };
        match parse_millis(&text) {
            Ok((millis, assumed)) => {
                if assumed {
                    report.warning(
                        "duration-unit",
                        self.place(),
                        format!("`{what}: {text}` has no unit, seconds are assumed"),
                        &format!("write `{}s`", text.trim()),
                    );
                }
                Some(millis)
            }
            Err(error) => {
                let unit = error == DurationError::Shape;
                let unit = unit.then(|| one_of_unit(&text)).flatten();
                let one = unit.map(|one| format!("write `{what}: {one}`"));
                let hint = match error {
                    DurationError::TooLong => "write at most `366d`",
                    DurationError::NotPositive => {
                        "write a duration above zero, such as `1s` or `15m`; every limit is finite, at most `366d`"
                    }
                    DurationError::Shape => {
                        "write a number with a unit: `30s`, `15m`, `1h30m`, `1d`"
                    }
                };
                report.error(
                    "duration-invalid",
                    self.place(),
                    format!(
                        "`{what}: {}`: {error}",
                        text.chars().take(64).collect::<String>()
                    ),
                    one.as_deref().unwrap_or(hint),
                );
                None
            }
        }
    }

    /// A list of texts, or one text. None when an error was reported.
    pub(crate) fn texts(&self, what: &str, report: &mut Report) -> Option<Vec<String>> {
        match self.node.data {
            Data::List(_) => {
                let before = report.errors();
                let texts = self
                    .items()
                    .filter_map(|item| item.text(what, report))
                    .collect();
                (report.errors() == before).then_some(texts)
            }
            _ => Some(vec![self.text(what, report)?]),
        }
    }

    /// The value as JSON; keys that are not evaluated are kept like this.
    pub(crate) fn json(&self) -> serde_json::Value {
        match &self.node.data {
            Data::Null => serde_json::Value::Null,
            Data::Bool(value) => serde_json::Value::Bool(*value),
            Data::Text(text) => serde_json::Value::String(text.clone()),
            Data::Number(Number::Signed(value)) => (*value).into(),
            Data::Number(Number::Unsigned(value)) => (*value).into(),
            // JSON has no infinity, and `1.10` is more often a version than eleven tenths.
            Data::Number(Number::Float(value)) => {
                let written = self.scalar_text().unwrap_or_default();
                serde_json::Number::from_f64(*value)
                    .filter(|number| number.to_string() == written)
                    .map_or(
                        serde_json::Value::String(written),
                        serde_json::Value::Number,
                    )
            }
            Data::List(_) => self.items().map(|item| item.json()).collect(),
            Data::Map(_) => serde_json::Value::Object(
                self.entries()
                    .map(|(key, value)| (key.to_owned(), value.json()))
                    .collect(),
            ),
        }
    }
}

/// Returns the duration of one unit of time that is written in words, such as `day` or `daily`.
fn one_of_unit(text: &str) -> Option<&'static str> {
    match text.trim().to_ascii_lowercase().as_str() {
        "second" | "s" => Some("1s"),
        "minute" | "m" => Some("1m"),
        "hour" | "hourly" | "h" => Some("1h"),
        "day" | "daily" | "d" => Some("1d"),
        "week" | "weekly" | "w" => Some("7d"),
        _ => None,
    }
}
