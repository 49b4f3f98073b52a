//! Causes that the text of an error of the system leaves open: the limit of open files, and free inodes.

use std::path::Path;

use crate::machine::Event;
use crate::model::evidence::Ended;
use crate::process::open_files_cause;
use crate::store::Shortage;

/// Adds the cause to the failure that an event reports; the file systems of `places` are looked at for inodes.
pub(super) fn with_cause(mut event: Event, places: &[&Path]) -> Event {
    if let Some(message) = failure_of(&mut event)
        && let Some(cause) = cause_of(message, places)
    {
        message.push_str("; ");
        message.push_str(&cause);
    }
    event
}

fn cause_of(message: &str, places: &[&Path]) -> Option<String> {
    const NO_SPACE: [&str; 2] = ["No space left on device", "no storage space"];
    if let Some(cause) = open_files_cause(message) {
        return Some(cause);
    }
    let place = places
        .iter()
        .find(|place| Shortage::on(place) == Shortage::Inodes)?;
    let is_full = NO_SPACE.iter().any(|text| message.contains(text));
    is_full.then(|| {
        let (shortage, place) = (Shortage::Inodes, place.display());
        format!("{shortage} at `{place}`: {}", shortage.remedy())
    })
}

fn failure_of(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::ValidationFailed { failure, .. }
        | Event::PreparationFailed { failure }
        | Event::RecordingFailed { failure, .. }
        | Event::ChecksFinished {
            failure: Some(failure),
            ..
        }
        | Event::SaveFailed { failure }
        | Event::Conflicted { failure }
        | Event::CommitFailed { failure } => Some(&mut failure.message),
        Event::ExecutionFinished { execution, .. } => match &mut execution.ended {
            Ended::NotStarted { message, .. } => Some(message),
            _ => None,
        },
        _ => None,
    }
}
