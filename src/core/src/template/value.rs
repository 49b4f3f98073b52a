//! Values of names, and the one way in which each type is written.

use super::names::Scope;
use std::collections::BTreeMap;

/// Most digits of a whole number: every such number is exact in every shell.
const INTEGER_DIGITS_MAX: usize = 18;
/// Longest canonical form of a decimal number, in bytes.
const NUMBER_BYTES_MAX: usize = 400;

/// The value of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Scalar(String),
    /// Several texts.
    List(Vec<String>),
}

impl Value {
    /// One text, as it is.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Scalar(text.into())
    }

    /// `true` or `false`.
    pub fn boolean(value: bool) -> Self {
        Self::Scalar(value.to_string())
    }

    /// The texts of the value: of a scalar, one.
    pub fn texts(&self) -> &[String] {
        match self {
            Self::Scalar(text) => std::slice::from_ref(text),
            Self::List(texts) => texts,
        }
    }
}

/// The values of a run, by scope and name. A name without a value is an optional one that was
/// left out.
#[derive(Debug, Clone, Default)]
pub struct Values {
    values: BTreeMap<(Scope, String), Value>,
    files: BTreeMap<(Scope, String), String>,
}

impl Values {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `name` its value.
    pub fn set(&mut self, scope: Scope, name: impl Into<String>, value: Value) -> &mut Self {
        self.values.insert((scope, name.into()), value);
        self
    }

    /// Names the file that holds exactly the value of `name`, for `{name.file}`.
    pub fn set_file(
        &mut self,
        scope: Scope,
        name: impl Into<String>,
        path: impl Into<String>,
    ) -> &mut Self {
        self.files.insert((scope, name.into()), path.into());
        self
    }

    /// The value of `name`.
    pub fn get(&self, scope: Scope, name: &str) -> Option<&Value> {
        self.values.get(&(scope, name.to_owned()))
    }

    /// The file that holds the value of `name`.
    pub fn file(&self, scope: Scope, name: &str) -> Option<&str> {
        self.files
            .get(&(scope, name.to_owned()))
            .map(String::as_str)
    }

    /// The number of elements of each list.
    pub fn lengths(&self) -> BTreeMap<(Scope, String), usize> {
        let lists = self.values.iter().filter_map(|(key, value)| match value {
            Value::List(texts) => Some((key.clone(), texts.len())),
            Value::Scalar(_) => None,
        });
        lists.collect()
    }
}

/// The canonical form of a whole number, `-?(0|[1-9][0-9]{0,17})`: no sign before a zero, no
/// leading zeros. None for anything that is not a whole number of at most 18 digits.
pub fn canonical_integer(text: &str) -> Option<String> {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    match digits.len() {
        0 => Some("0".to_owned()),
        1..=INTEGER_DIGITS_MAX => Some(format!("{minus}{digits}")),
        _ => None,
    }
}

/// Whether a decimal number is written in its one form, with however many digits: no needless zeros, no
/// sign before a zero, no exponent.
pub(super) fn is_canonical_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits
        .split_once('.')
        .map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.len() <= NUMBER_BYTES_MAX
        && are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(|fraction| are_digits(fraction) && !fraction.ends_with('0'))
        && text != "-0"
}

#[cfg(test)]
mod tests {
    use super::{canonical_integer, is_canonical_number};

    #[test]
    fn digits_that_a_float_cannot_hold_are_a_number_too() {
        for number in [
            "0",
            "-0.5",
            "99999999999999999999999",
            "0.1000000000000000055511151231257827",
        ] {
            assert!(is_canonical_number(number), "{number}");
        }
        for other in [
            "", "-", "-0", "08", "1.", ".5", "1.50", "1e3", "+1", "1.2.3", "x",
        ] {
            assert!(!is_canonical_number(other), "{other}");
        }
    }

    #[test]
    fn numbers_have_one_form() {
        let integers = [
            ("0", Some("0")),
            ("-0", Some("0")),
            ("08", Some("8")),
            ("+5", Some("5")),
            ("-005", Some("-5")),
            ("999999999999999999", Some("999999999999999999")),
            ("1000000000000000000", None),
            ("", None),
            ("-", None),
            ("1e3", None),
            ("1.5", None),
            (" 1", None),
            ("0x1", None),
            ("--1", None),
            ("١", None),
        ];
        for (text, want) in integers {
            assert_eq!(canonical_integer(text).as_deref(), want, "{text}");
        }
    }
}
