//! Decimal numbers as text, compared and written exactly: no value passes through a float.

use std::cmp::Ordering;
use std::fmt;

/// Longest number that is read, in bytes; leading zeros count.
const READ_BYTES_MAX: usize = 256;

/// Longest number in canonical text, in bytes.
const CANONICAL_BYTES_MAX: usize = 64;

/// Most digits of an `integer: true` input: what every 64-bit shell arithmetic can hold.
pub(super) const INTEGER_DIGITS_MAX: usize = 18;

/// From this magnitude on a float no longer holds every integer.
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// Why a text is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NumberError {
    /// Nothing stands there.
    #[error("a number is missing")]
    Empty,
    /// An exponent.
    #[error("exponents are not read")]
    Exponent,
    /// `nan`, `inf`.
    #[error("not a finite number")]
    NotFinite,
    /// Anything else.
    #[error("not a decimal number")]
    Shape,
    /// More digits than are kept.
    #[error("a number has at most 64 characters")]
    TooLong,
    /// A JSON number that reached us rounded.
    #[error("too large to arrive exactly as a JSON number")]
    Rounded,
}

impl NumberError {
    /// What to write instead.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            NumberError::Empty => "leave the input out, or write digits such as `6` or `-2.5`",
            NumberError::Exponent => "write all digits: `1000`, not `1e3`",
            NumberError::NotFinite | NumberError::Shape => {
                "write digits with an optional sign and decimal point, such as `6`, `-2` or `0.5`"
            }
            NumberError::TooLong => "declare the input as a `string` if it is not a quantity",
            NumberError::Rounded => "put the digits in quotes, then all of them are kept",
        }
    }
}

/// A number in canonical form: no leading zeros, no trailing zeros of the fraction, no `-0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Decimal {
    /// Reads `6`, `+6`, `08`, `-2.50`; surrounding blanks are ignored, leading zeros are decimal.
    pub(super) fn parse(text: &str) -> Result<Decimal, NumberError> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if text.is_empty() {
            return Err(NumberError::Empty);
        }
        if text.len() > READ_BYTES_MAX {
            return Err(NumberError::TooLong);
        }
        let decimal = Decimal::read(text)?;
        if decimal.to_string().len() > CANONICAL_BYTES_MAX {
            return Err(NumberError::TooLong);
        }
        Ok(decimal)
    }

    /// Takes a number out of JSON, where digits that a float cannot hold are lost before we see them.
    pub(super) fn from_json(number: &serde_json::Number) -> Result<Decimal, NumberError> {
        match number.as_f64() {
            Some(float) if number.is_f64() => {
                if float.abs() >= EXACT_FLOAT_MAX {
                    Err(NumberError::Rounded)
                } else {
                    Decimal::parse(&float.to_string())
                }
            }
            _ => Decimal::parse(&number.to_string()),
        }
    }

    /// A limit of a definition in the shortest digits that mean it; `None` where it is not finite.
    pub(super) fn of_limit(limit: f64) -> Option<Decimal> {
        if limit.is_finite() {
            Decimal::read(&limit.to_string()).ok()
        } else {
            None
        }
    }

    /// Whether there is no fraction.
    pub(super) fn is_integer(&self) -> bool {
        self.fraction.is_empty()
    }

    /// Digits before the decimal point.
    pub(super) fn whole_digits(&self) -> usize {
        self.whole.len()
    }

    fn read(text: &str) -> Result<Decimal, NumberError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(NumberError::Shape),
            None => (digits, ""),
        };
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return Err(classify(digits));
        }
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            rest => rest,
        };
        let fraction = fraction.trim_end_matches('0');
        Ok(Decimal {
            negative: negative && !(whole == "0" && fraction.is_empty()),
            whole: whole.to_owned(),
            fraction: fraction.to_owned(),
        })
    }

    fn magnitude(&self, other: &Decimal) -> Ordering {
        self.whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(&other.whole))
            .then_with(|| self.fraction.cmp(&other.fraction))
    }
}

fn classify(digits: &str) -> NumberError {
    let lower = digits.to_ascii_lowercase();
    if matches!(lower.as_str(), "nan" | "inf" | "infinity") {
        return NumberError::NotFinite;
    }
    match lower.split_once('e') {
        Some((mantissa, _)) if mantissa.starts_with(|c: char| c.is_ascii_digit()) => {
            NumberError::Exponent
        }
        _ => NumberError::Shape,
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let point = if self.fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{point}{}", self.whole, self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way() {
        let table = [
            ("6", Ok("6")),
            ("6.0", Ok("6")),
            ("6.50", Ok("6.5")),
            ("+6", Ok("6")),
            (" 6\n", Ok("6")),
            ("08", Ok("8")),
            ("000", Ok("0")),
            ("-0", Ok("0")),
            ("-0.0", Ok("0")),
            ("-0.10", Ok("-0.1")),
            ("9007199254740993", Ok("9007199254740993")),
            (
                "123456789012345678901234567890",
                Ok("123456789012345678901234567890"),
            ),
            ("", Err(NumberError::Empty)),
            (" ", Err(NumberError::Empty)),
            ("1e3", Err(NumberError::Exponent)),
            ("1.5E-3", Err(NumberError::Exponent)),
            ("NaN", Err(NumberError::NotFinite)),
            ("-inf", Err(NumberError::NotFinite)),
            (".5", Err(NumberError::Shape)),
            ("5.", Err(NumberError::Shape)),
            ("--5", Err(NumberError::Shape)),
            ("-", Err(NumberError::Shape)),
            ("0x10", Err(NumberError::Shape)),
            ("1_000", Err(NumberError::Shape)),
            ("1,5", Err(NumberError::Shape)),
            ("1.2.3", Err(NumberError::Shape)),
            ("٣", Err(NumberError::Shape)),
            ("e", Err(NumberError::Shape)),
        ];
        for (text, expected) in table {
            let read = Decimal::parse(text).map(|d| d.to_string());
            assert_eq!(read, expected.map(str::to_owned), "{text:?}");
        }
        let long = "1".repeat(65);
        assert_eq!(Decimal::parse(&long), Err(NumberError::TooLong));
        let zeros = format!("{}7", "0".repeat(200));
        assert_eq!(Decimal::parse(&zeros).unwrap().to_string(), "7");
        assert_eq!(
            Decimal::parse(&"0".repeat(300)),
            Err(NumberError::TooLong),
            "what is read is bounded too"
        );
    }

    #[test]
    fn json_numbers_that_were_rounded_are_refused() {
        let table = [
            ("6", Ok("6")),
            ("6.0", Ok("6")),
            ("1e3", Ok("1000")),
            ("0.1", Ok("0.1")),
            ("-0", Ok("0")),
            ("18446744073709551615", Ok("18446744073709551615")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("18446744073709551616", Err(NumberError::Rounded)),
            ("1e300", Err(NumberError::Rounded)),
            ("1e-300", Err(NumberError::TooLong)),
        ];
        for (text, expected) in table {
            let number: serde_json::Number = serde_json::from_str(text).unwrap();
            let read = Decimal::from_json(&number).map(|d| d.to_string());
            assert_eq!(read, expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn comparison_is_exact() {
        let ascending = [
            "-100",
            "-20",
            "-2.5",
            "-2.49",
            "0",
            "0.0999",
            "0.1",
            "0.11",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
        ];
        let numbers: Vec<Decimal> = ascending
            .iter()
            .map(|text| Decimal::parse(text).unwrap())
            .collect();
        for (i, left) in numbers.iter().enumerate() {
            for (j, right) in numbers.iter().enumerate() {
                assert_eq!(left.cmp(right), i.cmp(&j), "{left} {right}");
            }
        }
        assert_eq!(Decimal::of_limit(f64::NAN), None);
        assert_eq!(Decimal::of_limit(f64::INFINITY), None);
        assert!(Decimal::of_limit(f64::MAX).unwrap() > numbers[11]);
        assert_eq!(Decimal::of_limit(0.1).unwrap(), numbers[6]);
    }
}
