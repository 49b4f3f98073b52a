//! Who did what about a run.

use crate::machine::{Entry, Event};
use crate::model::RunSpec;
use crate::protocol::AuditEntry;

/// What somebody did by this entry; nobody does anything by most.
pub(super) fn of(entry: &Entry, spec: &RunSpec) -> Option<AuditEntry> {
    let (act, by, note) = match &entry.event {
        Event::Submitted { .. } => ("submitted", Some(&spec.submitted_by), None),
        Event::CancelRequested { by, .. } => ("cancelled", Some(by), None),
        Event::Approved { approval } => ("approved", Some(&approval.by), approval.note.as_ref()),
        Event::Denied { by, note } => ("denied", Some(by), Some(note)),
        Event::Resolved { note, by, .. } => ("resolved", by.as_ref(), Some(note)),
        Event::LandedLater { by, .. } => ("landed", by.as_ref(), None),
        Event::Discarded { by } => ("discarded", by.as_ref(), None),
        _ => return None,
    };
    Some(AuditEntry {
        at: entry.at,
        action: act.to_owned(),
        by: by.cloned(),
        note: note.filter(|note| !note.is_empty()).cloned(),
        run: None,
    })
}
