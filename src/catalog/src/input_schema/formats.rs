//! Formats of texts that validation checks; others are annotations, as the specification has it.

use std::net::{Ipv4Addr, Ipv6Addr};

use chrono::{DateTime, NaiveDate, NaiveTime};

use crate::model::channel::Url;

/// Returns true if a text has a format, and for formats that are not checked.
pub(super) fn matches_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" => DateTime::parse_from_rfc3339(text).is_ok() && !text.contains(' '),
        "date" => text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
        "time" => is_time(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uri" => Url::parse(text).is_ok(),
        "uuid" => is_uuid(text),
        "regex" => regex::Regex::new(text).is_ok(),
        _ => true,
    }
}

/// Returns true for a time of day with an offset (RFC 3339).
fn is_time(text: &str) -> bool {
    let dated = format!("2000-01-01T{text}");
    DateTime::parse_from_rfc3339(&dated).is_ok()
        && NaiveTime::parse_from_str(text.get(..8).unwrap_or_default(), "%H:%M:%S").is_ok()
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '@';
        (1..=64).contains(&local.len()) && local.chars().all(is_plain) && is_hostname(domain)
    })
}

/// Returns true for labels of letters, digits and hyphens (RFC 1123).
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut parts = text.split('-');
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits = |length| {
        parts
            .next()
            .is_some_and(|part| part.len() == length && is_hex(part))
    };
    lengths.into_iter().all(fits) && text.len() == 36
}
