//! The rules of one declared input: its type, and the limits that its definition sets.

use chrono::NaiveDate;
use regex::{Regex, RegexBuilder};

use super::decimal::{Decimal, INTEGER_DIGITS_MAX};
use super::path;
use super::problem::{Code, ValueFault, nearest, printable, shown};
use crate::model::definition::{Input, InputKind};

/// Longest value in bytes; what a shell text can take of it is bounded more tightly where it is used.
pub(super) const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// Longest pattern in bytes.
const PATTERN_BYTES_MAX: usize = 4 * 1024;

/// Memory that one compiled pattern may take, in bytes.
const PATTERN_MEMORY_MAX: usize = 1024 * 1024;

/// Deepest nesting of a pattern.
const PATTERN_NEST_MAX: u32 = 50;

/// A declared input with everything that can be worked out before a value is seen.
pub(super) struct Rules<'a> {
    pub(super) input: &'a Input,
    /// Type of a scalar value, or of an item of a list.
    scalar: InputKind,
    pattern: Option<Regex>,
    min: Option<Decimal>,
    max: Option<Decimal>,
    allowed: Vec<String>,
}

impl<'a> Rules<'a> {
    /// Prepares the rules; refuses a definition that no value could be judged by.
    pub(super) fn of(input: &'a Input) -> Result<Rules<'a>, Vec<ValueFault>> {
        let scalar = match (input.kind, input.items) {
            (InputKind::Array, Some(items)) => items,
            (InputKind::Array, None) => InputKind::String,
            (kind, _) => kind,
        };
        let mut faults = contradictions(input, scalar);
        let pattern = match input.pattern.as_deref().map(compile).transpose() {
            Ok(pattern) => pattern,
            Err(fault) => {
                faults.push(fault);
                None
            }
        };
        let mut allowed = Vec::with_capacity(input.allowed.len());
        for text in &input.allowed {
            match canonical(input, scalar, text) {
                Ok(text) => allowed.push(text),
                Err(fault) => faults.push(definition_fault(format!(
                    "an allowed value is refused by the input's own type: {}",
                    fault.message
                ))),
            }
        }
        if faults.is_empty() {
            Ok(Rules {
                input,
                scalar,
                pattern,
                min: input.min.and_then(Decimal::of_limit),
                max: input.max.and_then(Decimal::of_limit),
                allowed,
            })
        } else {
            Err(faults)
        }
    }

    /// Type of a scalar value, or of an item of a list.
    pub(super) fn scalar(&self) -> InputKind {
        self.scalar
    }

    /// Writes a scalar in its one form and holds it against every rule.
    pub(super) fn check(&self, text: &str) -> Result<String, Vec<ValueFault>> {
        let value = canonical(self.input, self.scalar, text).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        faults.extend(self.against_allowed(&value));
        faults.extend(self.against_pattern(&value));
        if self.scalar == InputKind::Number {
            faults.extend(self.against_limits(&value));
        }
        if self.input.kind != InputKind::Array {
            let chars = value.chars().count();
            faults.extend(self.against_length(chars, "character"));
        }
        if faults.is_empty() {
            Ok(value)
        } else {
            Err(faults)
        }
    }

    /// Holds the number of items, or of characters, against the declared lengths.
    pub(super) fn against_length(&self, count: usize, unit: &str) -> Option<ValueFault> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        match (self.input.min_length, self.input.max_length) {
            (Some(min), _) if count < min => Some(ValueFault::new(
                Code::OutOfRange,
                format!("at least {min} {unit}{} expected, got {count}", plural(min)),
            )),
            (_, Some(max)) if count > max => Some(ValueFault::new(
                Code::OutOfRange,
                format!("at most {max} {unit}{} expected, got {count}", plural(max)),
            )),
            _ => None,
        }
    }

    fn against_allowed(&self, value: &str) -> Option<ValueFault> {
        if self.allowed.is_empty() || self.allowed.iter().any(|one| one == value) {
            return None;
        }
        let fault = ValueFault::new(
            Code::NotAllowed,
            format!("{} is none of the allowed values", shown(self.input, value)),
        );
        if self.input.sensitive {
            return Some(fault);
        }
        let near = nearest(value, self.allowed.iter().map(String::as_str));
        Some(fault.hint(match near {
            Some(near) => format!(
                "did you mean `{}`? allowed: {}",
                printable(near),
                self.list_allowed()
            ),
            None => format!("allowed: {}", self.list_allowed()),
        }))
    }

    fn list_allowed(&self) -> String {
        const LISTED_MAX: usize = 12;
        let mut listed: Vec<String> = self
            .allowed
            .iter()
            .take(LISTED_MAX)
            .map(|one| format!("`{}`", printable(one)))
            .collect();
        if self.allowed.len() > LISTED_MAX {
            listed.push(format!("and {} more", self.allowed.len() - LISTED_MAX));
        }
        listed.join(", ")
    }

    fn against_pattern(&self, value: &str) -> Option<ValueFault> {
        let pattern = self.pattern.as_ref()?;
        if pattern.is_match(value) {
            return None;
        }
        let wanted = self.input.pattern.as_deref().unwrap_or_default();
        Some(
            ValueFault::new(
                Code::PatternMismatch,
                format!("{} does not match the pattern", shown(self.input, value)),
            )
            .hint(format!("the whole value must match `{wanted}`")),
        )
    }

    fn against_limits(&self, value: &str) -> Vec<ValueFault> {
        let Ok(number) = Decimal::parse(value) else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        let what = shown(self.input, value);
        let mut refuse = |message: String| faults.push(ValueFault::new(Code::OutOfRange, message));
        if let Some(min) = self.min.as_ref().filter(|min| number < **min) {
            refuse(format!("{what} is below the least number, `{min}`"));
        }
        if let Some(max) = self.max.as_ref().filter(|max| number > **max) {
            refuse(format!("{what} is above the greatest number, `{max}`"));
        }
        if self.input.integer && !number.is_integer() {
            faults.push(ValueFault::new(
                Code::WrongType,
                format!("expected a whole number, got {what}"),
            ));
        } else if self.input.integer && number.whole_digits() > INTEGER_DIGITS_MAX {
            faults.push(ValueFault::new(
                Code::OutOfRange,
                format!("{what} has more than {INTEGER_DIGITS_MAX} digits"),
            ));
        }
        faults
    }
}

/// Writes a scalar in the one form of its type, or says why it is not of that type.
fn canonical(input: &Input, kind: InputKind, text: &str) -> Result<String, ValueFault> {
    if text.contains('\0') {
        return Err(ValueFault::new(
            Code::Nul,
            "the value holds a NUL character, which no command can receive",
        ));
    }
    if text.len() > VALUE_BYTES_MAX {
        return Err(ValueFault::new(
            Code::TooLarge,
            format!(
                "a value has at most 1 MiB, this one has {} bytes",
                text.len()
            ),
        )
        .hint("put it in a file and give its path"));
    }
    match kind {
        InputKind::String => Ok(text.to_owned()),
        InputKind::Number => Decimal::parse(text)
            .map(|n| n.to_string())
            .map_err(|error| {
                ValueFault::new(
                    Code::WrongType,
                    format!("expected a number, got {}: {error}", shown(input, text)),
                )
                .hint(error.hint())
            }),
        InputKind::Boolean => match text {
            "true" | "false" => Ok(text.to_owned()),
            _ => Err(ValueFault::new(
                Code::WrongType,
                format!("expected true or false, got {}", shown(input, text)),
            )
            .hint("write `true` or `false`; `yes`, `no`, `1` and `0` are not read")),
        },
        InputKind::Date => date(input, text),
        InputKind::Path => path::parse(text).map_err(|error| {
            let message = format!("{} is refused: {error}", shown(input, text));
            let fault = ValueFault::new(Code::BadPath, message);
            match error.hint() {
                Some(hint) => fault.hint(hint),
                None => fault,
            }
        }),
        InputKind::Array => Err(definition_fault("a list of lists is not supported")),
    }
}

/// A day of the calendar from year 1 on, as `YYYY-MM-DD`.
fn date(input: &Input, text: &str) -> Result<String, ValueFault> {
    let refused = |why: &str| {
        ValueFault::new(
            Code::WrongType,
            format!("expected a date, got {}{why}", shown(input, text)),
        )
    };
    let Some((year, month, day)) = date_parts(text) else {
        return Err(refused("").hint("write it as `2026-01-31`"));
    };
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(_) if year > 0 => Ok(text.to_owned()),
        _ => Err(refused(": there is no such day in the calendar")),
    }
}

fn date_parts(text: &str) -> Option<(i32, u32, u32)> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, byte)| match i {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return None;
    }
    let mut parts = text.split('-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    Some((year, month, day))
}

/// Compiles a pattern so that it matches whole values only.
///
/// It is compiled by itself first: `a)|(b` must not escape from the anchors around it.
fn compile(pattern: &str) -> Result<Regex, ValueFault> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(definition_fault("the pattern exceeds 4 KiB"));
    }
    let build = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(PATTERN_MEMORY_MAX)
            .dfa_size_limit(PATTERN_MEMORY_MAX)
            .nest_limit(PATTERN_NEST_MAX)
            .build()
    };
    build(pattern)
        .and_then(|_| build(&format!(r"\A(?:{pattern})\z")))
        .map_err(|error| {
            let reason = match error {
                regex::Error::CompiledTooBig(_) => "it needs more than 1 MiB".to_owned(),
                other => last_line(&other.to_string()),
            };
            definition_fault(format!("the pattern is not usable: {reason}"))
                .hint("the syntax is that of Rust's `regex`: no look-around, no back-references")
        })
}

/// The expression's own error draws the pattern over several lines; its last line is the reason.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// What a definition says that no value can satisfy.
fn contradictions(input: &Input, scalar: InputKind) -> Vec<ValueFault> {
    let mut faults = Vec::new();
    if scalar == InputKind::Array {
        faults.push(definition_fault("a list of lists is not supported"));
    }
    let limits = [("min", input.min), ("max", input.max)];
    for (name, _) in limits
        .iter()
        .filter(|(_, n)| n.is_some_and(|n| !n.is_finite()))
    {
        faults.push(definition_fault(format!("`{name}` is not a finite number")));
    }
    if matches!((input.min, input.max), (Some(min), Some(max)) if min > max) {
        faults.push(definition_fault("`min` is greater than `max`"));
    }
    if matches!((input.min_length, input.max_length), (Some(min), Some(max)) if min > max) {
        faults.push(definition_fault(
            "`min_length` is greater than `max_length`",
        ));
    }
    let numeric = input.min.is_some() || input.max.is_some() || input.integer;
    if numeric && scalar != InputKind::Number {
        faults.push(
            definition_fault(format!(
                "`min`, `max` and `integer` are for numbers, and this is a {}",
                scalar.name()
            ))
            .hint("use `min_length` and `max_length` for text and lists"),
        );
    }
    faults
}

pub(super) fn definition_fault(message: impl Into<String>) -> ValueFault {
    ValueFault::new(Code::BadDefinition, message)
}
