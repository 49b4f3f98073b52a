//! `worker list|show`

use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::globals::Site;
use crate::cli::io::Stream;
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::session::{Accept, Session};
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind, Severity};
use crate::protocol::{SkillView, WorkerView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List workers (the default)
    List,
    /// Show a worker with its skills and problems
    Show {
        /// Id of the worker
        #[arg(value_name = "WORKER")]
        id: String,
    },
}

/// The workers of the engine that runs; where none does, those of the files.
pub(crate) fn listed(session: &Session<'_>, site: &Site) -> Result<Vec<WorkerView>, Diagnostic> {
    let control = session.engines.connect(site, Accept::RunningOnly);
    match control.and_then(|control| control.workers()) {
        Ok(workers) => Ok(workers),
        Err(refused) if refused.kind == Kind::Unreachable => {
            Ok(Definitions::load(&site.workspace).workers())
        }
        Err(refused) => Err(refused),
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let workers = listed(session, &session.site()?)?;
    if let Some(What::Show { id }) = &args.what {
        let worker = workers.iter().find(|worker| worker.id == *id).or_else(|| {
            workers
                .iter()
                .find(|worker| worker.id.eq_ignore_ascii_case(id))
        });
        let Some(worker) = worker else {
            let known = workers.iter().map(|worker| worker.id.as_str());
            return Err(suggest::unknown_worker(id, known));
        };
        if session.json() {
            session.print_json(worker, "worker");
        } else {
            print_one(&mut session.io.out, worker);
        }
    } else if session.json() {
        session.print_json(&workers, "workers");
    } else if workers.is_empty() {
        session.io.err.line("no workers");
    } else {
        let width = session.io.table_width();
        table(&workers).print(&mut session.io.out, width);
    }
    Ok(Exit::Ok)
}

fn table(workers: &[WorkerView]) -> Table {
    let mut table = Table::new(&[
        Column::new("WORKER"),
        Column::new("SKILLS").right(),
        Column::new("TYPE").optional(),
        Column::new("STATE"),
        Column::new("DESCRIPTION").words().optional(),
    ]);
    for worker in workers {
        table.row(vec![
            worker.id.as_str().into(),
            worker.skills.len().to_string().into(),
            worker.kind.as_deref().unwrap_or_default().into(),
            state(worker),
            one_line(worker.description.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table
}

fn state(worker: &WorkerView) -> Line {
    let heaviest = worker.problems.iter().map(|problem| problem.severity).max();
    match (heaviest, worker.template) {
        (Some(Severity::Error), _) => Line::of(BAD, "errors"),
        (_, true) => Line::of(DIM, "template"),
        (Some(Severity::Warning), _) => Line::of(CARE, "warnings"),
        (Some(Severity::Note) | None, _) => "ok".into(),
    }
}

/// The first line of a text that may have several, which `…` tells.
pub(crate) fn one_line(text: &str) -> String {
    match text.trim().split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => text.trim().to_owned(),
    }
}

fn print_one(out: &mut Stream<'_>, worker: &WorkerView) {
    out.line(Line::of(BOLD, &worker.id).text("  ").text(&worker.name));
    for line in worker.description.iter().flat_map(|text| text.lines()) {
        out.line(Line::from("  ").text(line));
    }
    let facts = [
        ("type", worker.kind.as_deref()),
        ("version", worker.version.as_deref()),
        ("defined at", Some(worker.defined_at.as_str())),
        (
            "template",
            worker
                .template
                .then_some("its id holds a placeholder: listed, never run"),
        ),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            out.line(Line::of(DIM, format!("  {name:<10} ")).text(value));
        }
    }
    for skill in &worker.skills {
        print_skill(out, skill);
    }
    if !worker.kept.is_empty() {
        let keys: Vec<&str> = worker.kept.keys().map(String::as_str).collect();
        out.line(Line::of(DIM, "  kept, not evaluated: ").text(keys.join(", ")));
    }
    for problem in &worker.problems {
        let style = match problem.severity {
            Severity::Error => BAD,
            Severity::Warning => CARE,
            Severity::Note => DIM,
        };
        let line = Line::from("  ").styled(style, format!("[{}] ", problem.code));
        out.line(
            line.text(&problem.message)
                .styled(DIM, format!("  {}", problem.place)),
        );
    }
}

fn print_skill(out: &mut Stream<'_>, skill: &SkillView) {
    let nature = match (skill.mutating, skill.repeatable) {
        (true, false) => "  mutating",
        (true, true) => "  mutating, may be repeated",
        (false, true) => "",
        (false, false) => "  not repeated after a crash",
    };
    out.line(
        Line::from("  ")
            .styled(BOLD, &skill.address)
            .styled(DIM, nature),
    );
    out.line(Line::from("    ").text(one_line(&skill.description)));
    for reason in &skill.unavailable {
        out.line(Line::of(CARE, "    unavailable: ").text(&reason.reason));
    }
    for input in &skill.inputs {
        let mut line = Line::of(DIM, "    in   ")
            .text(&input.name)
            .styled(DIM, format!(": {}", input.kind));
        match &input.default {
            Some(default) => line = line.styled(DIM, format!(" = {default}")),
            None if input.required => line = line.styled(CARE, " required"),
            None => {}
        }
        if input.sensitive {
            line = line.styled(DIM, " secret");
        }
        if let Some(text) = &input.description {
            line = line.text("  ").text(one_line(text));
        }
        out.line(line);
    }
    for output in &skill.outputs {
        let line = Line::of(DIM, "    out  ")
            .text(&output.name)
            .styled(DIM, format!(": {}", output.kind));
        out.line(
            line.text("  ")
                .text(output.destination.as_deref().unwrap_or_default()),
        );
    }
}
