//! Keys that restrict what may run: malformed they reject, unsupported they make unavailable.
//! Nothing is ever run with less protection than it asks for.

use super::keys::suggest;
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::definition::Unavailable;

/// Keys that restrict what may happen: a near miss counts as what is meant.
pub(crate) const KEYS: &[&str] = &[
    "allowed-tools",
    "disallowed-tools",
    "required_tools",
    "disable-model-invocation",
    "user-invocable",
    "mutating",
    "approval_required",
];

/// The key that restricts and that `key` stands for, where `known` are the keys of its map.
pub(crate) fn meant(key: &str, known: &[&'static str]) -> Option<&'static str> {
    if key.starts_with("x-") {
        return None;
    }
    let exact = KEYS.iter().find(|one| **one == key).copied();
    exact.or_else(|| {
        let near = (!known.contains(&key)).then(|| suggest(key, known));
        near.flatten().filter(|one| KEYS.contains(one))
    })
}

/// Rejects a list of tools that cannot be understood. Returns whether it can.
pub(crate) fn check_tools(view: View<'_>, key: &str, report: &mut Report) -> bool {
    let fits = match view.data() {
        Data::Text(_) => true,
        Data::List(_) => view
            .items()
            .all(|item| matches!(item.data(), Data::Text(text) if !text.trim().is_empty())),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Map(_) => false,
    };
    if !fits {
        report.error(
            "restriction-malformed",
            view.place(),
            format!(
                "`{key}` must be a text or a list of texts, not {}",
                view.kind()
            ),
            &format!("write `{key}: [Read, Grep]`"),
        );
    }
    fits
}

/// Why a definition may not run whose `sandbox` means something to another program.
pub(crate) fn sandbox(view: View<'_>, report: &mut Report) -> Unavailable {
    let shown = view.scalar_text().unwrap_or_else(|| view.kind().to_owned());
    let reason = format!("`sandbox: {shown}` is not a known sandbox level");
    report.warning(
        "sandbox-unsupported",
        view.place(),
        reason.clone(),
        "write `sandbox: auto`, `required`, `private` or `off`",
    );
    Unavailable {
        code: "sandbox".to_owned(),
        reason,
    }
}
