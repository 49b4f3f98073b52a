//! Where the next page of a list begins: behind what was shown last, whatever came or went meanwhile.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

use super::skills::Entry;

/// Why a cursor is refused.
pub(super) const FOREIGN: &str =
    "the cursor does not belong to this list: omit it to get the first page";

fn foreign() -> ErrorData {
    ErrorData::invalid_params(FOREIGN, None)
}

/// Refuses any cursor to a list that is one page.
pub(super) fn none(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    cursor.map_or(Ok(()), |_| Err(foreign()))
}

/// One page of skills in the order of their names, and the cursor of the next one. The name of the list stands in its
/// cursors, so that none leads into another list.
pub(super) fn page<'e>(
    list: &str,
    cursor: Option<&str>,
    skills: impl Iterator<Item = &'e Entry>,
    most: usize,
) -> Result<(Vec<&'e Entry>, Option<String>), ErrorData> {
    let before = cursor.map_or(Ok(""), |cursor| {
        shown_last(list, cursor).ok_or_else(foreign)
    })?;
    let mut rest = skills.filter(|entry| entry.name.as_str() > before);
    let page: Vec<&Entry> = rest.by_ref().take(most).collect();
    let more = rest.next().is_some();
    let end = page.last().filter(|_| more);
    let next = end.map(|entry| format!("{list}:{}", entry.name));
    Ok((page, next))
}

/// The name of what the page before ended with.
fn shown_last<'c>(list: &str, cursor: &'c str) -> Option<&'c str> {
    let name = cursor.strip_prefix(list)?.strip_prefix(':')?;
    (!name.is_empty()).then_some(name)
}
