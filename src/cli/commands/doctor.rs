//! `doctor`

mod disk;
mod engine;
mod landings;
mod programs;
mod repository;
mod schedules;
mod threads;
mod unit;
mod zones;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::counted;
use crate::cli::definitions::{Definitions, Weights};
use crate::cli::exit::Exit;
use crate::cli::globals::{NO_WORKSPACE, Site};
use crate::cli::maintenance;
use crate::cli::render::line::{ACTIVE, BAD, BOLD, CARE, GOOD, Line};
use crate::cli::render::times;
use crate::cli::repository::{author, locate};
use crate::cli::session::Session;
use crate::model::config::CONFIG_FILE;
use crate::model::{Config, Diagnostic, Kind, Problem, Severity};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// It works, and somebody should know.
    Hint,
    /// It needs care.
    Care,
    /// Runs cannot succeed.
    Bad,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Hint => "hint",
            State::Care => "warning",
            State::Bad => "error",
        }
    }
}

struct Finding {
    name: &'static str,
    state: State,
    message: String,
    hints: Vec<String>,
}

impl Finding {
    fn new(name: &'static str, state: State, message: impl Into<String>) -> Finding {
        Finding {
            name,
            state,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    fn hint(mut self, hint: &str) -> Finding {
        self.hints.push(hint.to_owned());
        self
    }

    fn refused(name: &'static str, state: State, refused: Diagnostic) -> Finding {
        Finding {
            name,
            state,
            message: refused.message,
            hints: refused.hints,
        }
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    let site = match session.site_as_asked() {
        Ok(site) => site,
        Err(refused) if refused.code == NO_WORKSPACE => {
            let mut findings = vec![Finding::refused("workspace", State::Bad, refused)];
            findings.push(zones::zones(&BTreeSet::new(), session.clock.now()));
            findings.extend(unit::installed(session, None));
            return Ok(told(session, &findings));
        }
        Err(refused) => return Err(refused),
    };
    let definitions = Definitions::load_thoroughly(&site.workspace, session.environment);
    let mut findings = vec![workspace(&site)];
    findings.extend(git(&site, &definitions));
    let left = landings::left(&site);
    findings.extend(left.iter().map(landings::told));
    findings.extend(repository::sound(&site, &left, session.clock.now()));
    findings.push(checked(&definitions));
    findings.extend(definitions.unready().map(unready));
    findings.extend(programs::programs(&site, &definitions));
    findings.push(zones::zones(&definitions.zones(), session.clock.now()));
    let config = definitions.config();
    for directory in [&config.threads_dir, &config.metrics_dir] {
        if let Err(refused) = maintenance::directory_below(&site.workspace, directory) {
            findings.push(Finding::refused("threads", State::Bad, refused));
        }
    }
    match session.site() {
        Ok(site) => findings.extend(kept(session, &site, &definitions)),
        Err(refused) => findings.push(Finding::refused("state", State::Bad, refused)),
    }
    findings.extend(unit::installed(session, Some(&site)));
    Ok(told(session, &findings))
}

fn told(session: &mut Session<'_>, findings: &[Finding]) -> Exit {
    let care = findings
        .iter()
        .any(|one| matches!(one.state, State::Care | State::Bad));
    if session.json() {
        let shown: Vec<Value> = findings
            .iter()
            .map(|one| {
                json!({
                    "name": one.name,
                    "state": one.state.name(),
                    "message": one.message,
                    "hints": one.hints,
                })
            })
            .collect();
        session.print_json(&json!({"healthy": !care, "findings": shown}), "doctor");
    } else {
        for one in findings {
            print(session, one);
        }
    }
    if care { Exit::Failed } else { Exit::Ok }
}

/// What lies in the state directory, and who uses it.
fn kept(session: &Session<'_>, site: &Site, definitions: &Definitions) -> Vec<Finding> {
    let mut findings = vec![state_directory(site)];
    findings.extend(out_of_place(site));
    findings.extend(disk::space(site));
    findings.extend(engine::findings(session, site, definitions));
    findings.push(store(site));
    let control = schedules::connected(session, site);
    findings.extend(control.as_deref().map_or(Vec::new(), landings::standing));
    findings.extend(threads::threads(site, control.as_deref().ok()));
    findings.extend(schedules::schedules(site, control));
    findings
}

fn print(session: &mut Session<'_>, finding: &Finding) {
    let (sign, style) = match finding.state {
        State::Good => ("✓", GOOD),
        State::Hint => ("–", ACTIVE),
        State::Care => ("!", CARE),
        State::Bad => ("✗", BAD),
    };
    let out = &mut session.io.out;
    let mut lines = finding.message.lines();
    let name = Line::of(style, sign)
        .text(" ")
        .styled(BOLD, format!("{:<11} ", finding.name));
    out.prose(name.text(lines.next().unwrap_or_default()), 14);
    for line in lines {
        out.prose(Line::from(" ".repeat(14)).text(line), 14);
    }
    for line in finding.hints.iter().flat_map(|hint| hint.lines()) {
        let hint = Line::from(" ".repeat(14)).styled(ACTIVE, "hint: ");
        out.prose(hint.text(line), 16);
    }
}

fn workspace(site: &Site) -> Finding {
    let configured = site.workspace.join(CONFIG_FILE).is_file();
    let with = if configured {
        format!("with `{CONFIG_FILE}`")
    } else {
        "all defaults".to_owned()
    };
    Finding::new(
        "workspace",
        State::Good,
        format!("{}, {with}", site.workspace.display()),
    )
}

fn git(site: &Site, definitions: &Definitions) -> Vec<Finding> {
    let needed = definitions
        .workers()
        .iter()
        .any(|worker| worker.skills.iter().any(|skill| skill.mutating));
    let weight = if needed { State::Bad } else { State::Hint };
    let config: &Config = definitions.config();
    let found = match locate(&site.workspace) {
        Ok(found) => found,
        Err(refused) => {
            let finding = Finding::refused("git", weight, refused);
            return vec![if needed {
                finding.hint("mutating skills end in a commit and need a repository")
            } else {
                finding
            }];
        }
    };
    let place = format!("{}, on {}", found.workdir, found.branch);
    let mut findings = vec![if found.detached && needed {
        Finding::new("git", State::Care, place)
            .hint("check out a branch: commits on a detached HEAD belong to none")
    } else {
        Finding::new("git", State::Good, place)
    }];
    findings.push(
        match author(&site.workspace, config.commit_author.as_deref()) {
            Ok(author) => Finding::new("author", State::Good, author),
            Err(refused) => Finding::refused("author", weight, refused).hint(&format!(
                "or set `commit: {{author: \"Name <mail>\"}}` in `{CONFIG_FILE}`"
            )),
        },
    );
    findings
}

fn checked(definitions: &Definitions) -> Finding {
    let workers = definitions.workers();
    let skills: usize = workers.iter().map(|worker| worker.skills.len()).sum();
    let weights = Weights::of(definitions.problems());
    let size = format!(
        "{} and {}",
        counted(workers.len(), "worker"),
        counted(skills, "skill")
    );
    let found = format!(
        "{size}, {} and {}",
        counted(weights.errors, "error"),
        counted(weights.warnings, "warning")
    );
    match (weights.errors, weights.warnings, skills) {
        (0, 0, 0) => Finding::new("definitions", State::Hint, found)
            .hint("`workerctl new worker ID` writes one to start from"),
        (0, 0, _) => Finding::new("definitions", State::Good, found),
        (0, _, _) => {
            Finding::new("definitions", State::Hint, found).hint("`workerctl check` shows them")
        }
        _ => Finding::new("definitions", State::Bad, found).hint("`workerctl check` shows them"),
    }
}

fn unready(problem: &Problem) -> Finding {
    let state = match problem.severity {
        Severity::Note => State::Hint,
        Severity::Warning | Severity::Error => State::Care,
    };
    let message = match (&problem.worker, &problem.skill) {
        (Some(worker), Some(skill)) if !problem.message.contains(&format!("{skill}`")) => {
            format!("`{worker}/{skill}` cannot run: {}", problem.message)
        }
        _ => problem.message.clone(),
    };
    let finding = Finding::new("skill", state, message);
    match &problem.hint {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

fn state_directory(site: &Site) -> Finding {
    let shown = site.state_dir.display().to_string();
    let existing = disk::nearest_existing(&site.state_dir);
    let access = rustix::fs::access(
        existing,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    );
    match access {
        Ok(()) if existing == site.state_dir => Finding::new("state", State::Good, shown),
        Ok(()) => Finding::new(
            "state",
            State::Good,
            format!("{shown}, made by the first run"),
        ),
        Err(error) => Finding::new(
            "state",
            State::Bad,
            format!("{shown} cannot be written: {error}"),
        )
        .hint("run as its owner, or name another with `--state-dir`"),
    }
}

/// Directories of ours in whose place something else stands.
fn out_of_place(site: &Site) -> impl Iterator<Item = Finding> {
    let ours = ["live", "scratch", "secrets", "store"];
    let places = ours.map(|name| site.state_dir.join(name));
    let taken = places
        .into_iter()
        .filter(|path| std::fs::symlink_metadata(path).is_ok() && !path.is_dir());
    taken.map(|path| {
        let text = format!("{} is not a directory", path.display());
        Finding::new("state", State::Bad, text).hint("move it away: it is created again")
    })
}

fn store(site: &Site) -> Finding {
    if let Err(refused) = maintenance::check_identity(&site.workspace, &site.state_dir) {
        return Finding::refused("store", State::Bad, refused);
    }
    let info = match maintenance::info(&site.state_dir) {
        Ok(info) => info,
        Err(refused) => return Finding::refused("store", State::Bad, refused),
    };
    let Some(bytes) = info.database_bytes else {
        return match info.aside.last() {
            Some(aside) => Finding::new(
                "store",
                State::Bad,
                format!("`{aside}` was moved aside as damaged"),
            )
            .hint("`workerctl store rebuild` restores it from the threads"),
            None if info.version.is_some() => {
                Finding::new("store", State::Bad, "its database is missing")
                    .hint("restore the state directory, or rebuild the store from the threads with `workerctl store rebuild`")
            }
            None => Finding::new("store", State::Good, "none yet, made by the first run"),
        };
    };
    if info
        .version
        .is_some_and(|version| version > maintenance::STORE_VERSION)
    {
        return Finding::new("store", State::Bad, "a newer program wrote it")
            .hint("use the newer program, or another `--state-dir`");
    }
    let taken = times::bytes(bytes.saturating_add(info.payload_bytes));
    let commits = info.commits.unwrap_or(0);
    if info.in_use {
        return Finding::new(
            "store",
            State::Good,
            format!("{taken}, {commits} commits, in use"),
        );
    }
    match maintenance::verify(&site.state_dir) {
        Ok(report) if report.fault_count == 0 => Finding::new(
            "store",
            State::Good,
            format!("{taken}, {commits} commits, sound"),
        ),
        Ok(report) => Finding::new(
            "store",
            State::Bad,
            format!("{} faults", report.fault_count),
        )
        .hint("`workerctl store verify` lists them"),
        // It was opened by somebody in this moment.
        Err(refused) if refused.kind == Kind::Conflict => Finding::new(
            "store",
            State::Good,
            format!("{taken}, {commits} commits, in use"),
        ),
        Err(refused) => Finding::refused("store", State::Bad, refused),
    }
}
