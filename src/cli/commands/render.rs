//! `render SKILL`

use crate::cli::exit::Exit;
use crate::cli::invocation::Invocation;
use crate::cli::io::Stream;
use crate::cli::render::line::{BOLD, CARE, DIM, Line};
use crate::cli::session::{Accept, Session};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::{Rendered, RenderedCheck, RenderedInstructions, SubmitRequest};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    invocation: Invocation,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let request = args.invocation.request(session)?;
    show(session, &request)
}

/// Renders a request and shows it.
pub(crate) fn show(session: &mut Session<'_>, request: &SubmitRequest) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let rendered = control
        .render(request)
        .map_err(|refused| suggest::skill_meant(control.as_ref(), &request.skill, refused))?;
    if session.json() {
        session.print_json(&rendered, "rendered");
    } else {
        print(&mut session.io.out, &rendered);
    }
    Ok(Exit::Ok)
}

fn print(out: &mut Stream<'_>, rendered: &Rendered) {
    out.line(Line::of(BOLD, &rendered.skill).styled(
        DIM,
        if rendered.mutating {
            "  mutating: ends in a commit"
        } else {
            "  not mutating"
        },
    ));
    out.line(Line::of(DIM, "  in  ").text(&rendered.cwd));
    if let Some(told) = &rendered.instructions {
        instructions(out, told);
    } else {
        section(out, "command");
        for argument in &rendered.argv {
            block(out, argument);
        }
    }
    if !rendered.substitutions.is_empty() {
        section(out, "placeholders");
        for one in &rendered.substitutions {
            let line = Line::from(format!("    line {:<3} ", one.line))
                .text(&one.placeholder)
                .styled(DIM, " becomes ")
                .text(&one.becomes)
                .styled(DIM, " holding ")
                .text(&one.value);
            out.line(line);
        }
    }
    if !rendered.environment.is_empty() || !rendered.env_names.is_empty() {
        section(out, "environment");
        for (name, value) in &rendered.environment {
            out.line(Line::from("    ").text(name).text("=").text(value));
        }
        for name in &rendered.env_names {
            out.line(
                Line::from("    ")
                    .text(name)
                    .styled(DIM, "  secret, passed on"),
            );
        }
    }
    if !rendered.outputs.is_empty() {
        section(out, "outputs");
        for (name, path) in &rendered.outputs {
            let path = path.as_deref().unwrap_or("no path");
            out.line(Line::from("    ").text(name).styled(DIM, "  ").text(path));
        }
    }
    checks(out, &rendered.checks);
    if !rendered.hooks.is_empty() {
        section(out, "hooks");
    }
    for hook in &rendered.hooks {
        block(out, hook);
    }
    if let Some(remote) = &rendered.push {
        section(out, "pushes to");
        block(out, remote);
    }
    if let Some(message) = &rendered.commit_message {
        section(out, "commit message");
        block(out, message);
    }
    for note in rendered.notes.iter().chain(&rendered.budget_spent) {
        out.line(Line::of(CARE, "  note: ").text(note));
    }
}

fn instructions(out: &mut Stream<'_>, told: &RenderedInstructions) {
    section(out, "instructions");
    block(out, &told.text);
    let (model, name, turns) = (&told.model, &told.model_name, told.max_iterations);
    out.line(Line::of(DIM, "  model  ").text(format!("{model} ({name}), at most {turns} turns")));
    out.prose(Line::of(DIM, "  tools  ").text(told.tools.join(", ")), 9);
}

fn checks(out: &mut Stream<'_>, checks: &[RenderedCheck]) {
    if checks.is_empty() {
        return;
    }
    section(out, "checks");
    for check in checks {
        let mut line = Line::from("    ").text(&check.description);
        if !check.must_pass {
            line = line.styled(DIM, "  need not pass");
        }
        out.line(line);
        match &check.command {
            Some(command) => {
                for line in command.lines() {
                    out.line(Line::of(DIM, "      $ ").text(line));
                }
            }
            None => out.line(Line::of(DIM, "      manual: a person looks")),
        }
    }
}

fn section(out: &mut Stream<'_>, title: &str) {
    out.line(Line::of(BOLD, format!("  {title}")));
}

fn block(out: &mut Stream<'_>, text: &str) {
    for line in text.split('\n') {
        out.line(Line::of(DIM, "    │ ").text(line));
    }
}
