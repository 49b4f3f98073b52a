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
    let mut item = format!("{name_key}: {name}");
    for (key, value) in value.entries() {
        let _ = write!(item, ", {key}: {}", written(value));
    }
    if let Data::Text(_) = value.data()
        && key == "inputs"
    {
        let _ = write!(item, ", type: {}", written(value));
    }
    let message = format!("`{key}` must be a list, not a map");
    let hint = format!("write each entry as an item: `- {{{item}}}`");
    report.error("wrong-type", view.place(), message, &hint);
}
