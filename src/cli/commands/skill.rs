//! `skill list|show|files|validate|convert|trust|distrust`

use std::path::PathBuf;

use serde_json::json;

use super::check::counted;
use super::skills;
use super::workers::one_line;
use crate::cli::definitions::{Definitions, Form, FoundSkill, Weights, write};
use crate::cli::exit::Exit;
use crate::cli::globals::{Site, expect_person};
use crate::cli::io::Stream;
use crate::cli::maintenance;
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, GOOD, Line};
use crate::cli::render::problem;
use crate::cli::session::Session;
use crate::model::spec::Gate;
use crate::model::{Diagnostic, Problem};
use crate::protocol::{InputView, ShownSkill, SkillFileView};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: skills::Args,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List skills of workers and of skill directories (the default)
    List(skills::Args),
    /// Show a skill with its resolved interface
    Show {
        /// Name, qualified name such as `.claude:git`, or path
        name: String,
    },
    /// List the files of a skill's directory, or print one
    Files {
        /// Name, qualified name, or path
        name: String,
        /// Path of one file, relative to the skill
        path: Option<String>,
    },
    /// Check skills, including the links in their text
    Validate {
        /// Names or paths; by default every skill of every skill directory
        names: Vec<String>,
        /// Accept only what the Agent Skills specification allows
        #[arg(long)]
        portable: bool,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Convert a skill to another dialect; all keys are kept
    Convert {
        /// Name, qualified name, or path
        name: String,
        /// Dialect to write
        #[arg(long)]
        to: Form,
        /// Write the skill and its files below this directory instead of printing it
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Trust the current content of a skill
    Trust {
        /// Name, qualified name, or path
        name: String,
    },
    /// Revoke the trust in a skill
    Distrust {
        /// Name, qualified name, or path
        name: String,
    },
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let what = match &args.what {
        None => return skills::perform(session, &args.filter),
        Some(What::List(filter)) => return skills::perform(session, filter),
        Some(what) => what,
    };
    let site = session.site_anywhere()?;
    let definitions = Definitions::load_with_home(&site.workspace, session.environment);
    let find = |name: &str| definitions.skill(name, session.cwd);
    match what {
        What::List(_) => {}
        What::Show { name } => {
            let shown = find(name)?.show(&site.state_dir)?;
            if session.json() {
                session.print_json(&shown, "skill");
            } else {
                print(&mut session.io.out, &shown);
            }
        }
        What::Files { name, path } => {
            let skill = find(name)?;
            return files(session, &skill, path.as_deref());
        }
        What::Validate {
            names,
            portable,
            strict,
        } => {
            let (found, of_roots) = if names.is_empty() {
                (definitions.root_skills(), definitions.problems_of_roots())
            } else {
                let found = names.iter().map(|name| find(name));
                (found.collect::<Result<_, _>>()?, Vec::new())
            };
            return Ok(validate(
                session,
                &definitions,
                &found,
                of_roots,
                (*portable, *strict),
            ));
        }
        What::Convert { name, to, output } => {
            let skill = find(name)?;
            return convert(session, &skill, *to, output.as_ref());
        }
        What::Trust { name } => {
            expect_person("workerctl skill trust")?;
            let digest = find(name)?.trust(&where_kept(&site)?)?;
            if session.json() {
                session.print_json(&json!({"trust": "content", "digest": digest}), "trust");
            } else {
                let line = Line::of(GOOD, "✓").text(format!(" `{name}` is trusted as it is now"));
                session.io.err.line(line);
            }
        }
        What::Distrust { name } => {
            let had = find(name)?.distrust(&where_kept(&site)?)?;
            if session.json() {
                session.print_json(&json!({"trust": "untrusted", "was_trusted": had}), "trust");
            } else {
                let text = if had {
                    "is not trusted any more"
                } else {
                    "was not trusted"
                };
                session.io.err.line(format!("`{name}` {text}"));
            }
        }
    }
    Ok(Exit::Ok)
}

/// The state directory, behind no link: without a workspace nobody has looked yet.
fn where_kept(site: &Site) -> Result<PathBuf, Diagnostic> {
    maintenance::state_directory(&site.workspace, &site.state_dir)
}

fn files(
    session: &mut Session<'_>,
    skill: &FoundSkill,
    path: Option<&str>,
) -> Result<Exit, Diagnostic> {
    let site = session.site_anywhere()?;
    let Some(path) = path else {
        let shown = skill.show(&site.state_dir)?;
        if session.json() {
            let found =
                json!({"directory": shown.directory, "files": shown.files, "cut": shown.files_cut});
            session.print_json(&found, "files");
        } else {
            for file in &shown.files {
                session.io.out.line(of_file(file));
            }
            if shown.files_cut {
                session
                    .io
                    .err
                    .line("there are more files than are looked at");
            }
        }
        return Ok(Exit::Ok);
    };
    let bytes = skill.file(path)?;
    let text = String::from_utf8(bytes);
    if session.json() {
        let found = match text {
            Ok(text) => json!({"path": path, "text": text}),
            Err(error) => json!({"path": path, "text": null, "bytes": error.as_bytes().len()}),
        };
        session.print_json(&found, "file");
    } else {
        match text {
            Ok(text) => session.io.out.raw(&text),
            Err(error) => {
                let message = format!("`{path}` is no text: {} bytes", error.as_bytes().len());
                return Err(Diagnostic::new(
                    crate::model::Kind::Usage,
                    "not_text",
                    message,
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

fn of_file(file: &SkillFileView) -> Line {
    let line = Line::from("").text(&file.path);
    match (&file.refused, file.bytes, &file.description) {
        (Some(why), _, _) => line.styled(BAD, format!("  {why}")),
        (None, _, Some(description)) => line.styled(DIM, format!("  {}", one_line(description))),
        (None, Some(bytes), None) => line.styled(DIM, format!("  {bytes} bytes")),
        (None, None, None) => line,
    }
}

fn validate(
    session: &mut Session<'_>,
    definitions: &Definitions,
    found: &[FoundSkill],
    of_roots: Vec<Problem>,
    (portable, strict): (bool, bool),
) -> Exit {
    let of_skills = found.iter().flat_map(|one| one.problems(portable));
    let problems: Vec<Problem> = of_skills.chain(of_roots).collect();
    let omitted = found
        .iter()
        .any(|one| matches!(one, FoundSkill::Rejected(_)));
    let weights = Weights::of(&problems);
    let invalid = weights.errors > 0 || omitted || (strict && weights.warnings > 0);
    if session.json() {
        let told = json!({
            "valid": !invalid,
            "portable": portable,
            "skill_count": found.len(),
            "error_count": weights.errors,
            "warning_count": weights.warnings,
            "note_count": weights.notes,
            "problems": problems,
        });
        session.print_json(&told, "validate");
    } else {
        let width = session.io.table_width();
        for one in &problems {
            let source = definitions.source_line(one);
            let out = &mut session.io.out;
            out.raw(&problem::show(one, source.as_deref(), out.color, width));
        }
        let (sign, style) = if invalid { ("✗", BAD) } else { ("✓", GOOD) };
        let counts = if problems.is_empty() {
            "no problems".to_owned()
        } else {
            format!(
                "{}, {}, {}",
                counted(weights.errors, "error"),
                counted(weights.warnings, "warning"),
                counted(weights.notes, "note")
            )
        };
        session.io.out.flush();
        let line = Line::of(style, sign);
        session
            .io
            .err
            .line(line.text(format!(" {}: {counts}", counted(found.len(), "skill"))));
    }
    if invalid {
        Exit::InvalidDefinition
    } else {
        Exit::Ok
    }
}

fn convert(
    session: &mut Session<'_>,
    skill: &FoundSkill,
    to: Form,
    output: Option<&PathBuf>,
) -> Result<Exit, Diagnostic> {
    let rewritten = skill.convert(to)?;
    let Some(output) = output else {
        if session.json() {
            let converted = &rewritten.converted;
            let paths: Vec<&str> = rewritten
                .files
                .iter()
                .map(|(path, _)| path.as_str())
                .collect();
            let told = json!({"path": converted.path, "text": converted.text, "files": paths});
            session.print_json(&told, "convert");
        } else {
            session.io.out.raw(&rewritten.converted.text);
        }
        return Ok(Exit::Ok);
    };
    let written = write(&rewritten, &session.cwd.join(output))?;
    let written: Vec<String> = written
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if session.json() {
        session.print_json(&json!({"written": written}), "convert");
    } else {
        for path in written {
            session.io.out.line(path);
        }
    }
    Ok(Exit::Ok)
}

fn print(out: &mut Stream<'_>, shown: &ShownSkill) {
    let listed = &shown.listed;
    let skill = &listed.skill;
    out.line(Line::of(BOLD, &skill.name).styled(DIM, format!("  {}", listed.qualified)));
    for line in skill.description.lines() {
        out.line(Line::from("  ").text(line));
    }
    fact(out, "source", &listed.source);
    fact(out, "dialect", &listed.dialect);
    fact(out, "trust", &listed.trust);
    fact(out, "defined at", &skill.defined_at);
    if let Some(by) = &listed.shadowed_by {
        fact(out, "shadowed by", by);
    }
    let turns = shown.max_iterations.map(|turns| turns.to_string());
    for (name, value) in [
        ("model", shown.model.as_ref()),
        ("iterations", turns.as_ref()),
    ] {
        if let Some(value) = value {
            fact(out, name, value);
        }
    }
    for (name, list) in [
        ("needs tools", Some(&shown.required_tools)),
        ("only tools", shown.allowed_tools.as_ref()),
        ("tool sets", Some(&shown.toolsets)),
    ] {
        match list {
            Some(list) if !list.is_empty() => fact(out, name, &list.join(", ")),
            Some(_) if name == "only tools" => fact(out, name, "none"),
            Some(_) | None => {}
        }
    }
    for (name, may) in [
        ("for models", shown.model_invocable),
        ("for people", shown.user_invocable),
    ] {
        if !may {
            fact(out, name, "no");
        }
    }
    print_what_it_does(out, shown);
    for reason in &skill.unavailable {
        out.line(Line::of(CARE, "  unavailable: ").text(&reason.reason));
    }
    print_rest(out, shown);
}

fn fact(out: &mut Stream<'_>, name: &str, value: &str) {
    out.line(Line::of(DIM, format!("  {name:<12} ")).text(value));
}

/// What goes in and comes out, and what holds for its runs.
fn print_what_it_does(out: &mut Stream<'_>, shown: &ShownSkill) {
    let skill = &shown.listed.skill;
    if let Some(schema) = &shown.input_schema {
        fact(out, "input", &schema.to_string());
    }
    for input in &skill.inputs {
        fact(out, "input", &told_of_input(input));
    }
    for output in &skill.outputs {
        let to = output.destination.as_deref();
        let to = to.map_or_else(String::new, |to| format!(", {to}"));
        fact(
            out,
            "output",
            &format!("{}: {}{to}", output.name, output.kind),
        );
    }
    let checks = format!("{} after its command", skill.checks);
    let asked = match skill.approval {
        Some(Gate::Execution) => "a person has to approve its command",
        Some(Gate::Landing) => "a person has to approve its result before it lands",
        None => "",
    };
    for (name, value, holds) in [
        ("mutating", "ends in a commit", skill.mutating),
        ("checks", checks.as_str(), skill.checks > 0),
        ("sandbox", &skill.sandbox, !skill.sandbox.is_empty()),
        ("approval", asked, !asked.is_empty()),
    ] {
        if holds {
            fact(out, name, value);
        }
    }
}

/// The name and type of an input, what may be given and what holds where nothing is.
fn told_of_input(input: &InputView) -> String {
    let mut parts = vec![format!("{}: {}", input.name, input.kind)];
    if !input.allowed.is_empty() {
        parts.push(format!("one of {}", input.allowed.join(" ")));
    }
    parts.extend(input.sensitive.then(|| "secret".to_owned()));
    parts.push(match &input.default {
        Some(value) => format!("default {value}"),
        None if input.required => "required".to_owned(),
        None => "optional".to_owned(),
    });
    let said = parts.join(", ");
    match &input.description {
        Some(description) => format!("{said}; {}", one_line(description)),
        None => said,
    }
}

fn print_rest(out: &mut Stream<'_>, shown: &ShownSkill) {
    for file in &shown.files {
        let mut line = Line::of(DIM, "  file         ");
        line = line.text(&file.path);
        if let Some(text) = file.description.as_deref().or(file.refused.as_deref()) {
            line = line.styled(DIM, format!("  {}", one_line(text)));
        }
        out.line(line);
    }
    for problem in &shown.listed.problems {
        let line = Line::from("  ").styled(CARE, format!("[{}] ", problem.code));
        let line = line.text(&problem.message);
        out.line(line.styled(DIM, format!("  {}", problem.place)));
    }
    if let Some(text) = &shown.instructions {
        out.line("");
        for line in text.lines() {
            out.line(line);
        }
    }
}
