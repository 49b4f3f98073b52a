//! `skill list`

use super::check::counted;
use super::workers::{listed, one_line};
use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BAD, CARE, DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::session::Session;
use crate::cli::suggest;
use crate::model::{Diagnostic, Severity};
use crate::protocol::{ListedSkill, SkillList};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Only this worker
    #[arg(long, value_name = "WORKER", conflicts_with = "source")]
    worker: Option<String>,
    /// Only this source: `worker`, or the label of a skill directory such as `.claude`
    #[arg(long, value_name = "LABEL")]
    source: Option<String>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site_anywhere()?;
    let mut workers = listed(session, &site)?;
    if let Some(wanted) = &args.worker {
        if !workers.iter().any(|worker| worker.id == *wanted) {
            let known = workers.iter().map(|worker| worker.id.as_str());
            return Err(suggest::unknown_worker(wanted, known));
        }
        workers.retain(|worker| worker.id == *wanted);
    }
    let definitions = Definitions::load_with_home(&site.workspace, session.environment);
    let mut list = definitions.skills(&workers, &site.state_dir);
    let wanted = match (&args.worker, &args.source) {
        (Some(_), _) => Some("worker"),
        (None, source) => source.as_deref(),
    };
    if let Some(wanted) = wanted {
        only_of(&mut list, wanted)?;
    }
    if session.json() {
        session.print_json(&list, "skills");
        return Ok(Exit::Ok);
    }
    if list.skills.is_empty() {
        session.io.err.line("no skills");
    } else {
        let width = session.io.table_width();
        table(&list.skills).print(&mut session.io.out, width);
    }
    let untrusted = list.skills.iter().any(|skill| is(skill, "untrusted"));
    if let Some(why) = definitions.why_untrusted().filter(|_| untrusted) {
        diagnostic::warning(&mut session.io.err, &why);
    }
    report_rest(session, &list);
    Ok(Exit::Ok)
}

/// Leaves what is of one source.
fn only_of(list: &mut SkillList, wanted: &str) -> Result<(), Diagnostic> {
    let known = list.roots.iter().map(|root| root.label.as_str());
    let known: Vec<&str> = std::iter::once("worker").chain(known).collect();
    if !known.contains(&wanted) {
        let refused = Diagnostic::new(
            crate::model::Kind::NotFound,
            "source_unknown",
            format!("there is no skill source `{wanted}`"),
        );
        return Err(refused.hint(format!("available sources: {}", known.join(", "))));
    }
    list.skills.retain(|skill| skill.source == wanted);
    list.omitted.retain(|one| one.source == wanted);
    list.roots.retain(|root| root.label == wanted);
    Ok(())
}

/// Says how many files were left out and how many roots cannot be read.
fn report_rest(session: &mut Session<'_>, list: &SkillList) {
    let broken = list
        .roots
        .iter()
        .flat_map(|root| &root.problems)
        .filter(|problem| problem.severity != Severity::Note);
    let mut told: Vec<String> = broken
        .map(|problem| format!("{}: {}", problem.place, problem.message))
        .collect();
    if !list.omitted.is_empty() {
        let count = counted(list.omitted.len(), "file");
        told.push(format!(
            "{count} left out; `workerctl skill validate` says why"
        ));
    }
    for text in told {
        diagnostic::warning(&mut session.io.err, &text);
    }
}

fn table(skills: &[ListedSkill]) -> Table {
    let of_roots = skills.iter().any(|skill| skill.source != "worker");
    let mut columns = vec![Column::new("SKILL")];
    if of_roots {
        columns.push(Column::new("SOURCE"));
        columns.push(Column::new("DIALECT").optional());
        columns.push(Column::new("TRUST"));
        columns.push(Column::new("STATE"));
    }
    columns.push(Column::new("INPUTS").words().optional());
    columns.push(Column::new("ENDS IN").optional());
    columns.push(Column::new("DESCRIPTION").words());
    let mut table = Table::new(&columns);
    for listed in skills {
        let skill = &listed.skill;
        let inputs: Vec<String> = skill
            .inputs
            .iter()
            .map(|input| format!("{}{}", input.name, if input.required { "" } else { "?" }))
            .collect();
        // That a skill of a root needs a model need not be said in each line.
        let why = skill
            .unavailable
            .first()
            .filter(|_| listed.source == "worker");
        let description = match why {
            Some(why) => Line::of(CARE, format!("unavailable: {}", one_line(&why.reason))),
            None => one_line(&skill.description).into(),
        };
        let mut row: Vec<Line> = vec![skill.address.as_str().into()];
        if of_roots {
            row.push(Line::of(DIM, &listed.source));
            row.push(Line::of(DIM, &listed.dialect));
            row.push(trust(listed));
            row.push(state(listed));
        }
        row.push(inputs.join(" ").into());
        row.push(Line::of(DIM, if skill.mutating { "commit" } else { "" }));
        row.push(description);
        table.row(row);
    }
    table
}

/// Whether this is among the reasons for which it does not run.
fn is(listed: &ListedSkill, code: &str) -> bool {
    let mut reasons = listed.skill.unavailable.iter();
    reasons.any(|one| one.code == code)
}

fn state(listed: &ListedSkill) -> Line {
    let worst = listed.problems.iter().map(|problem| problem.severity).max();
    match (listed.shadowed_by.is_some(), worst) {
        (true, _) => Line::of(DIM, "shadowed"),
        _ if is(listed, "skill-invalid") => Line::of(BAD, "invalid"),
        (false, Some(Severity::Error)) => Line::of(BAD, "errors"),
        (false, Some(Severity::Warning)) => Line::of(CARE, "warnings"),
        (false, Some(Severity::Note) | None) => "ok".into(),
    }
}

/// What is not handed out for want of trust stands out.
fn trust(listed: &ListedSkill) -> Line {
    let style = if is(listed, "untrusted") { CARE } else { DIM };
    Line::of(style, &listed.trust)
}
