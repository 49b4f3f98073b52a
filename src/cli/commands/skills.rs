//! `skills`

use super::workers::{listed, one_line};
use crate::cli::exit::Exit;
use crate::cli::render::line::{CARE, DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::session::Session;
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::SkillView;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only of this worker
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let mut workers = listed(session)?;
    if let Some(wanted) = &args.worker {
        if !workers.iter().any(|worker| worker.id == *wanted) {
            let known = workers.iter().map(|worker| worker.id.as_str());
            return Err(suggest::unknown_worker(wanted, known));
        }
        workers.retain(|worker| worker.id == *wanted);
    }
    let skills: Vec<SkillView> = workers
        .into_iter()
        .flat_map(|worker| worker.skills)
        .collect();
    if session.json() {
        session.print_json(&skills, "skills");
    } else if skills.is_empty() {
        session.io.err.line("no skills");
    } else {
        let width = session.io.table_width();
        table(&skills).print(&mut session.io.out, width);
    }
    Ok(Exit::Ok)
}

fn table(skills: &[SkillView]) -> Table {
    let mut table = Table::new(&[
        Column::new("SKILL"),
        Column::new("INPUTS").cut().optional(),
        Column::new("ENDS IN").optional(),
        Column::new("DESCRIPTION").cut(),
    ]);
    for skill in skills {
        let inputs: Vec<String> = skill
            .inputs
            .iter()
            .map(|input| format!("{}{}", input.name, if input.required { "" } else { "?" }))
            .collect();
        let description = match skill.unavailable.first() {
            Some(why) => Line::of(CARE, format!("unavailable: {}", one_line(&why.reason))),
            None => one_line(&skill.description).into(),
        };
        table.row(vec![
            skill.address.as_str().into(),
            inputs.join(" ").into(),
            Line::of(DIM, if skill.mutating { "commit" } else { "" }),
            description,
        ]);
    }
    table
}
