//! Expressions in the way of Unix: five fields, or a nickname, or six fields with seconds.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::clock_changes::TimesOfDay;
use super::error::ExpressionError;
use super::field::{Field, FieldValues, Fields};
use super::item::{Piece, read_field};
use super::matcher::Matcher;
use crate::model::schedule::Dst;

/// Bytes that a text may have.
const TEXT_MAX: usize = 1_024;

/// Names for what is written often, and what they stand for.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A schedule by fields of the calendar, without a zone. Two are equal when their texts are.
#[derive(Clone)]
pub struct Expression {
    text: Arc<str>,
    seconds: bool,
    fields: Arc<Fields>,
    /// Made when it is first asked: most expressions are only read.
    matcher: OnceLock<Arc<Matcher>>,
}

impl Expression {
    /// Reads five fields or a nickname; with `seconds` six fields, of which the first is the second.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to write instead; `@reboot` is one of them, see
    /// [`ExpressionError::is_reboot`].
    pub fn parse(text: &str, seconds: bool) -> Result<Expression, ExpressionError> {
        let whole = trimmed(text);
        refuse_foreign(text, whole)?;
        let fields = if whole.text.starts_with('@') {
            let text = nickname(whole)?;
            read_fields(&pieces(Piece { text, at: 0 }), false)?
        } else {
            let pieces = pieces(whole);
            count_fields(whole, &pieces, seconds)?;
            read_fields(&pieces, seconds)?
        };
        if !Matcher::fires(&fields) {
            return Err(never_fires(whole));
        }
        Ok(Expression {
            text: text.into(),
            seconds,
            fields: Arc::new(fields),
            matcher: OnceLock::new(),
        })
    }

    /// Whether it repeats through the day: its minute or hour starts with `*`.
    pub fn follows_real_time(&self) -> bool {
        self.fields().minute.star || self.fields().hour.star
    }

    /// The rule for changes of the clocks where none is chosen.
    pub fn default_dst(&self) -> Dst {
        if self.follows_real_time() {
            Dst::REAL_TIME
        } else {
            Dst::FIXED_TIME
        }
    }

    pub(crate) fn times_of_day(&self) -> TimesOfDay {
        let fields = self.fields();
        let parts = [
            (&fields.hour, 3_600),
            (&fields.minute, 60),
            (&fields.second, 1),
        ];
        let mut times = TimesOfDay { first: 0, count: 1 };
        for (field, seconds) in parts {
            times.first += seconds * field.values.iter().next().map_or(0, i64::from);
            times.count *= u64::from(field.values.len());
        }
        times
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(crate) fn matcher(&self) -> &Matcher {
        self.matcher
            .get_or_init(|| Arc::new(Matcher::new(&self.fields)))
    }
}

fn never_fires(whole: Piece) -> ExpressionError {
    ExpressionError::new(
        "cron-never-fires",
        whole.range(),
        "no such date exists in any year",
        "look at the day of the month and the month: February has 29 days at most, \
         April, June, September and November have 30",
    )
}

/// Without blanks around it.
fn trimmed(text: &str) -> Piece<'_> {
    let rest = text.trim_ascii_start();
    Piece {
        text: rest.trim_ascii_end(),
        at: text.len() - rest.len(),
    }
}

fn refuse_foreign(text: &str, whole: Piece) -> Result<(), ExpressionError> {
    if text.len() > TEXT_MAX {
        let mut end = TEXT_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        return Err(ExpressionError::new(
            "cron-too-long",
            end..text.len(),
            format!("an expression has at most {TEXT_MAX} bytes"),
            "use ranges and steps, or several schedules",
        ));
    }
    if whole.text.is_empty() {
        return Err(ExpressionError::new(
            "cron-too-few-fields",
            0..text.len(),
            "the expression is empty",
            "write five fields: minute, hour, day of the month, month, day of the week",
        ));
    }
    let first = whole.text.split_ascii_whitespace().next().unwrap_or("");
    if first.contains('=') {
        return Err(ExpressionError::new(
            "cron-assignment",
            whole.at..whole.at + first.len(),
            "a cron expression cannot set variables",
            match first.split_once('=') {
                Some(("TZ" | "CRON_TZ", zone)) => {
                    format!("write `timezone: {zone}` next to `cron`, and remove it here")
                }
                _ => "remove it; `env` sets variables of a skill".to_owned(),
            },
        ));
    }
    Ok(())
}

fn nickname(whole: Piece) -> Result<&'static str, ExpressionError> {
    let written = whole.text.to_ascii_lowercase();
    if written == "@reboot" {
        return Err(ExpressionError::new(
            ExpressionError::REBOOT,
            whole.range(),
            "`@reboot` is not supported in a cron expression",
            "it is a trigger of its own: it fires once after each start of the machine",
        ));
    }
    if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| *name == written) {
        return Ok(fields);
    }
    let near = NICKNAMES
        .iter()
        .map(|(name, _)| (strsim::damerau_levenshtein(name, &written), name))
        .min()
        .filter(|(distance, _)| *distance <= 3);
    let every = written.strip_prefix("@every");
    let hint = match (near, every.map(str::trim)) {
        (_, Some(span)) => format!(
            "write `every: {}` instead of `cron`",
            if span.is_empty() { "1h" } else { span }
        ),
        (Some((_, name)), None) => format!("did you mean `{name}`?"),
        (None, None) => {
            "write @yearly, @monthly, @weekly, @daily, @hourly, or five fields".to_owned()
        }
    };
    Err(ExpressionError::new(
        "cron-nickname-unknown",
        whole.range(),
        format!("there is no nickname `{}`", whole.text),
        hint,
    ))
}

fn pieces(whole: Piece) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = whole.at;
    for text in whole.text.split(|c: char| c.is_ascii_whitespace()) {
        if !text.is_empty() {
            pieces.push(Piece { text, at });
        }
        at += text.len() + 1;
    }
    pieces
}

fn in_words(fields: usize) -> &'static str {
    if fields == 6 { "six" } else { "five" }
}

fn count_fields(whole: Piece, pieces: &[Piece], seconds: bool) -> Result<(), ExpressionError> {
    let expected = if seconds { 6 } else { 5 };
    let found = pieces.len();
    let order = "minute, hour, day of the month, month, day of the week";
    if found < expected {
        let nickname = format!("@{}", whole.text.to_ascii_lowercase());
        let hint = if NICKNAMES.iter().any(|(name, _)| *name == nickname) {
            format!("write `{nickname}`")
        } else if seconds {
            format!("with `seconds: true` write six fields: second, {order}")
        } else {
            format!("write five fields: {order}")
        };
        return Err(ExpressionError::new(
            "cron-too-few-fields",
            whole.range(),
            match found {
                1 => format!(
                    "a cron expression has {} fields, `{}` has 1",
                    in_words(expected),
                    whole.text
                ),
                _ => format!(
                    "a cron expression has {} fields, this one has {found}",
                    in_words(expected)
                ),
            },
            hint,
        ));
    }
    if let Some(extra) = pieces.get(expected) {
        if let Some(zone) = pieces.iter().find(|piece| is_zone(piece.text)) {
            let remedy = format!(
                "write `timezone: {}` next to `cron`, and remove it here",
                zone.text
            );
            let message = "a cron expression has no field for the time zone";
            return Err(ExpressionError::new(
                "cron-zone",
                zone.range(),
                message,
                remedy,
            ));
        }
        let hint = too_many(pieces, seconds, order);
        return Err(ExpressionError::new(
            "cron-too-many-fields",
            extra.at..whole.range().end,
            format!("there are {found} fields instead of {expected}"),
            hint,
        ));
    }
    Ok(())
}

/// What to write instead of too many fields, of which `order` names the right ones.
fn too_many(pieces: &[Piece], seconds: bool, order: &str) -> String {
    let text = |pieces: &[Piece]| {
        let texts: Vec<&str> = pieces.iter().map(|piece| piece.text).collect();
        texts.join(" ")
    };
    let excess = pieces.get(5).filter(|piece| !is_field(piece.text));
    match (seconds, pieces) {
        (false, _) if excess.is_some() => format!(
            "write five fields: `{}`; users and commands of a crontab are not part of them",
            text(&pieces[..5])
        ),
        (false, [Piece { text: "0", .. }, rest @ ..]) if rest.len() == 5 => format!(
            "if the first field is for seconds, leave it out: `{}`, or set `seconds: true`",
            text(rest)
        ),
        (false, _) if pieces.len() == 6 => {
            format!("write five fields: {order}; a leading field of seconds needs `seconds: true`")
        }
        (false, _) => format!(
            "write five fields: {order}; a year cannot be written, and a leading field of seconds needs `seconds: true`"
        ),
        (true, _) => format!("write six fields: second, {order}; a year cannot be written"),
    }
}

/// Returns true if a text can be the field of the weekday.
fn is_field(text: &str) -> bool {
    let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let is_name = |name: &str| days.contains(&name.to_ascii_lowercase().as_str());
    text.get(..3).is_some_and(is_name)
        || text
            .chars()
            .all(|c| c.is_ascii_digit() || "*,-/#?LW".contains(c))
}

/// Returns true if a field looks like the name of a time zone, such as `Europe/Berlin` or `UTC`.
fn is_zone(text: &str) -> bool {
    let is_name = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.len() > 3;
    text == "UTC"
        || text
            .split_once('/')
            .is_some_and(|(area, city)| is_name(area) && is_name(city))
}

fn read_fields(pieces: &[Piece], seconds: bool) -> Result<Fields, ExpressionError> {
    let mut pieces = pieces.iter();
    let zero = Piece { text: "0", at: 0 };
    let mut read = Field::ALL.iter().map(|field| {
        let leading = *field == Field::Second && !seconds;
        let piece = if leading {
            &zero
        } else {
            pieces.next().unwrap_or(&zero)
        };
        read_field(*field, *piece)
    });
    let mut next = || read.next().unwrap_or_else(|| Ok(FieldValues::default()));
    Ok(Fields {
        second: next()?,
        minute: next()?,
        hour: next()?,
        day_of_month: next()?,
        month: next()?,
        day_of_week: next()?,
    })
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expression")
            .field("text", &self.text)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text && self.seconds == other.seconds
    }
}

impl Eq for Expression {}
