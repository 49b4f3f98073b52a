//! `schedule pause|resume`

use super::{due, schedule_meant};
use crate::cli::exit::Exit;
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;
use crate::protocol::{Control, PauseRequest, ResumeRequest, ScheduleView};

pub(super) fn pause(
    session: &mut Session<'_>,
    schedule: &str,
    reason: &str,
) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningOnly)?;
    let request = PauseRequest {
        schedule: schedule.to_owned(),
        reason: reason.to_owned(),
        by: session.asked_by(),
    };
    let paused = control.pause(&request);
    changed(session, control.as_ref(), schedule, paused)
}

pub(super) fn resume(session: &mut Session<'_>, schedule: &str) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningOnly)?;
    let request = ResumeRequest {
        schedule: schedule.to_owned(),
    };
    let resumed = control.resume(&request);
    changed(session, control.as_ref(), schedule, resumed)
}

fn changed(
    session: &mut Session<'_>,
    control: &dyn Control,
    schedule: &str,
    answer: Result<ScheduleView, Diagnostic>,
) -> Result<Exit, Diagnostic> {
    let view = answer.map_err(|refused| schedule_meant(control, schedule, refused))?;
    if session.json() {
        session.print_json(&view, "schedule");
        return Ok(Exit::Ok);
    }
    let zone = times::zone(&view.timezone);
    let line = match &view.paused {
        Some(pause) => format!("{} is paused: {}", view.id, pause.reason),
        None => format!("{} is due next {}", view.id, due(view.next, zone)),
    };
    session.io.err.line(line);
    Ok(Exit::Ok)
}
