//! Maps of named values where a list of items is expected.

use std::fmt::Write as _;

use super::places::written;
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Reports a value that is not a list; of a map, shows its first entry as an item with its name in `name_key`.
pub(crate) fn not_a_list(view: View<'_>, key: &str, name_key: &str, report: &mut Report) {
    let Some((name, value)) = view.entries().next() else {
        view.wrong_type(key, "a list", report);
        return;
    };
    if let Some(name) = name.strip_prefix('-') {
        let message = "a space is missing after `-`".to_owned();
        let hint = format!("write `- {name}: …`");
        report.error("yaml-syntax", value.key_place(), message, &hint);
        return;
    }
    // The map may be the only item.
    let is_item = view
        .get(name_key)
        .is_some_and(|name| name.scalar_text().is_some());
    let (mut item, map) = if is_item {
        (String::new(), view)
    } else {
        (format!("{name_key}: {name}"), value)
    };
    for (key, value) in map.entries() {
        let _ = write!(item, ", {key}: {}", written(value));
    }
    if let Data::Text(_) = value.data()
        && !is_item
        && key == "inputs"
    {
        let _ = write!(item, ", type: {}", written(value));
    }
    let message = format!("`{key}` must be a list, not a map");
    let item = item.trim_start_matches(", ");
    let hint = format!("write each entry as an item: `- {{{item}}}`");
    report.error("wrong-type", view.place(), message, &hint);
}
