//! The engine of the workspace: whether one runs, which, and what it reports.

use std::path::Path;

use super::{Finding, State};
use crate::cli::commands::check::counted;
use crate::cli::commands::status::ACCEPT_CONFIG;
use crate::cli::definitions::Definitions;
use crate::cli::globals::Site;
use crate::cli::maintenance::{self, LockHolder};
use crate::cli::session::{Accept, Session};
use crate::model::Kind;
use crate::model::config::CONFIG_FILE;
use crate::protocol::{Control, Probe, ProbeRequest, Status};

/// The engine that runs, and whether it keeps runs where this command would.
pub(super) fn findings(
    session: &Session<'_>,
    site: &Site,
    definitions: &Definitions,
) -> Vec<Finding> {
    match session.engines.connect(site, Accept::RunningOnly) {
        Ok(control) => match control.status() {
            Ok(status) => {
                let elsewhere = kept_elsewhere(site, "the engine", &status.state_dir);
                std::iter::once(answering(&status))
                    .chain(without_store(&status))
                    .chain(config_fallback_reason(&status))
                    .chain(elsewhere)
                    .chain(probed(control.as_ref()))
                    .collect()
            }
            Err(refused) => vec![Finding::refused("engine", State::Bad, refused)],
        },
        Err(refused) if refused.kind == Kind::Unreachable => silent(site, definitions),
        Err(refused) => vec![Finding::refused("engine", State::Bad, refused)],
    }
}

fn answering(status: &Status) -> Finding {
    let text = format!(
        "{} (process {}), {}: {} running, {} queued",
        status.host.replace('_', "-"),
        status.pid,
        status.condition,
        status.running,
        status.queued
    );
    let own = env!("CARGO_PKG_VERSION");
    if status.version != own {
        let other = format!("{text}; its version is {}, ours {own}", status.version);
        return Finding::new("engine", State::Care, other).hint("restart the daemon");
    }
    let state = if status.condition == "ready" {
        State::Good
    } else {
        State::Care
    };
    Finding::new("engine", state, text)
}

/// The engine has another configuration than the file.
fn config_fallback_reason(status: &Status) -> Option<Finding> {
    let why = status.config_fallback_reason.as_ref()?;
    Some(Finding::new("config", State::Care, format!("{CONFIG_FILE}: {why}")).hint(ACCEPT_CONFIG))
}

/// What the engine says of what skills need: a service may be forbidden what this command may do.
fn probed(control: &dyn Control) -> Vec<Finding> {
    let found = |probe: Probe| Finding {
        name: "in engine",
        state: if probe.ok { State::Good } else { State::Bad },
        message: probe.message,
        hints: probe.hints,
    };
    match control.probe(&ProbeRequest::default()) {
        Ok(probes) => probes.into_iter().map(found).collect(),
        Err(refused) => vec![Finding::refused("in engine", State::Care, refused)],
    }
}

/// The engine writes to files that have no name any more, or to others than those that are there.
fn without_store(status: &Status) -> Option<Finding> {
    let found = maintenance::info(Path::new(&status.state_dir)).ok()?;
    if found.in_use {
        return None;
    }
    let text = format!(
        "the files of the engine's store in {} were removed or replaced: what it records is lost",
        status.state_dir
    );
    let hint = format!(
        "end process {}; restore the state directory, or rebuild the store from the threads with `workerctl store rebuild`",
        status.pid
    );
    Some(Finding::new("store", State::Bad, text).hint(&hint))
}

/// No engine answers: none runs, or one that cannot be reached.
fn silent(site: &Site, definitions: &Definitions) -> Vec<Finding> {
    let (pid, state_dir) = match maintenance::holder(&site.workspace) {
        Ok(LockHolder::Free) => {
            return vec![no_daemon(definitions)];
        }
        Ok(LockHolder::By { pid, state_dir }) => (pid, state_dir),
        Err(refused) => return vec![Finding::refused("engine", State::Bad, refused)],
    };
    let who = pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    );
    let text = format!("{who} has locked the workspace and does not respond");
    let hint = match pid {
        Some(_) => "give `--socket` if it serves elsewhere; else end that process",
        None => maintenance::UNNAMED_HINT,
    };
    let finding = Finding::new("engine", State::Bad, text).hint(hint);
    let elsewhere = state_dir.and_then(|place| kept_elsewhere(site, "the engine", &place));
    std::iter::once(finding).chain(elsewhere).collect()
}

/// No daemon runs: an error only if schedules wait for one.
fn no_daemon(definitions: &Definitions) -> Finding {
    match definitions.schedule_ids().len() {
        0 => Finding::new(
            "engine",
            State::Hint,
            "no daemon is running; each command runs the engine in its own process",
        )
        .hint("`workerctl daemon` starts queued runs, and its runs continue after you close the terminal"),
        schedules => {
            let schedules = counted(schedules, "schedule");
            let text = format!("no daemon is running, so {schedules} will not fire");
            Finding::new("engine", State::Bad, text).hint(
                "start one with `workerctl daemon`, or as a service with `workerctl daemon install`",
            )
        }
    }
}

/// Two stores for one workspace: each knows nothing of the other's runs.
pub(super) fn kept_elsewhere(site: &Site, who: &str, state_dir: &str) -> Option<Finding> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if state_dir.is_empty() || real(Path::new(state_dir)) == real(&site.state_dir) {
        return None;
    }
    let text = format!(
        "{who} stores runs in {state_dir}, but a command that finds no engine would use {}",
        site.state_dir.display()
    );
    let hint = format!(
        "set `WORKERCTL_STATE_DIR={state_dir}` for the shells that use this workspace, or give `--state-dir`"
    );
    Some(Finding::new("state", State::Care, text).hint(&hint))
}
