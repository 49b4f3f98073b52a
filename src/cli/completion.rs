//! Completions of a shell: the shell asks this program, so that skills, runs and schedules are those of now.

use std::ffi::OsString;
use std::io;

use clap::builder::Str;
use clap::{Command, FromArgMatches};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCandidates, CompleteEnv, CompletionCandidate};

use super::definitions::Definitions;
use super::engine::{RealEngines, process_environment};
use super::globals::{Globals, Site};
use super::session::{Accept, Engines};
use super::usage;
use crate::model::Diagnostic;
use crate::model::outcome::Outcome;
use crate::protocol::{LATEST, RunSummary, RunsQuery};

/// The variable by which a shell's function asks.
const VARIABLE: &str = "WORKERCTL_COMPLETE";
/// Newest runs that are offered.
const RUNS: u32 = 50;

/// Answers a shell that asks what could be written next; whether one asks.
pub(super) fn answered(args: &[OsString]) -> bool {
    let cwd = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(|| offering(usage::complete())).var(VARIABLE);
    // A shell shows nothing where nothing can be offered; there is nobody to tell.
    complete.try_complete(args, cwd.as_deref()).unwrap_or(true)
}

/// The function that a shell is to define.
pub(super) fn script(shell: &str) -> io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let found = shells.completer(shell);
    let found = found.ok_or_else(|| io::Error::other("it is not known"))?;
    let (mut script, name) = (Vec::new(), "workerctl");
    found.write_registration(VARIABLE, name, name, name, &mut script)?;
    Ok(script)
}

/// Offers values for arguments by the name that help shows for them.
fn offering(command: Command) -> Command {
    let runs = if takes_latest(command.get_name()) {
        runs
    } else {
        run_ids
    };
    let command = command.mut_args(|arg| {
        let shown = arg.get_value_names().and_then(|names| names.first());
        let known = match shown.map(Str::as_str) {
            Some("SKILL" | "NAME" | "NAMES") => skills,
            Some("RUN") => runs,
            Some("WORKER") => workers,
            Some("SCHEDULE" | "ID|EXPRESSION") => schedules,
            Some("SKILL|SCHEDULE") => skills_and_schedules,
            _ => return arg,
        };
        arg.add(ArgValueCandidates::new(known))
    });
    command.mut_subcommands(offering)
}

fn skills() -> Vec<CompletionCandidate> {
    let Some((site, _)) = places() else {
        return Vec::new();
    };
    let workers = Definitions::load(&site.workspace).workers();
    let all = workers.into_iter().flat_map(|worker| worker.skills);
    all.map(|skill| told(skill.address, skill.name)).collect()
}

fn skills_and_schedules() -> Vec<CompletionCandidate> {
    let (mut all, skills) = (schedules(), skills());
    let is_new = |one: &CompletionCandidate| all.iter().all(|it| it.get_value() != one.get_value());
    let new: Vec<_> = skills.into_iter().filter(is_new).collect();
    all.extend(new);
    all
}

fn workers() -> Vec<CompletionCandidate> {
    let Some((site, _)) = places() else {
        return Vec::new();
    };
    let workers = Definitions::load(&site.workspace).workers();
    let all = workers
        .into_iter()
        .map(|worker| told(worker.id, worker.name));
    all.collect()
}

fn schedules() -> Vec<CompletionCandidate> {
    let Some((site, _)) = places() else {
        return Vec::new();
    };
    let all = Definitions::load(&site.workspace).schedule_ids();
    all.into_iter().map(CompletionCandidate::new).collect()
}

/// Runs are asked of a daemon: where none runs, opening the store would be more than a key press is worth.
fn runs() -> Vec<CompletionCandidate> {
    let mut all = vec![told(LATEST.to_owned(), "the newest run".to_owned())];
    all.extend(run_ids());
    all
}

/// Returns whether a command accepts `latest` for a run.
fn takes_latest(command: &str) -> bool {
    !["approve", "deny", "resolve", "land", "discard"].contains(&command)
}

fn run_ids() -> Vec<CompletionCandidate> {
    let known = places().and_then(|(site, engines)| newest(&site, &engines).ok());
    let mut all = Vec::new();
    for run in known.unwrap_or_default() {
        let ended = run.outcome.as_ref().map(Outcome::name);
        let what = format!("{} {}", run.skill, ended.unwrap_or("under way"));
        all.push(told(run.run.to_string(), what));
    }
    all
}

fn newest(site: &Site, engines: &RealEngines) -> Result<Vec<RunSummary>, Diagnostic> {
    engines
        .connect(site, Accept::RunningOnly)?
        .runs(&RunsQuery {
            limit: RUNS,
            ..RunsQuery::default()
        })
}

fn told(value: String, help: String) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.into()))
}

/// The places of the line that is being written, whose end may be missing.
fn places() -> Option<(Site, RealEngines)> {
    let asked = std::env::args_os().skip_while(|arg| arg != "--").skip(1);
    let line = usage::command().ignore_errors(true);
    let globals = Globals::from_arg_matches(&line.try_get_matches_from(asked).ok()?).ok()?;
    let cwd = std::env::current_dir().ok()?;
    let environment = process_environment();
    let site = globals.site_as_asked(&cwd, &environment).ok()?;
    Some((site, RealEngines { verbose: 0 }))
}
