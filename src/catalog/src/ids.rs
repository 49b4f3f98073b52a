//! How ids of workers and skills may look.

use super::report::Report;
use crate::model::Place;
use crate::model::ids::parse_name;

/// Longest id in characters before it is told.
const ID_CHARS: usize = 64;

/// Says what is unusual about an id, and rejects what could leave its directory or forge output.
pub(crate) fn check_id(id: &str, what: &str, place: &Place, report: &mut Report) {
    if let Err(error) = parse_name(id) {
        report.error(
            "id-invalid",
            place.clone(),
            format!(
                "the {what}'s id is refused: {}",
                error.to_string().escape_debug()
            ),
            "use lower-case letters, digits and dashes",
        );
        return;
    }
    let usual = id.chars().count() <= ID_CHARS
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
        && !id.starts_with('_');
    if !usual && !id.contains('{') {
        report.warning(
            "id-unusual",
            place.clone(),
            format!(
                "the {what}'s id `{}` is accepted as it is",
                id.escape_debug()
            ),
            "use lower-case letters, digits and dashes, at most 64",
        );
    }
}
