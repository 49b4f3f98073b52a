//! `new worker ID`, `new skill WORKER ID`

use std::path::{Path, PathBuf};

use serde_json::json;

use super::init::write_new;
use crate::cli::definitions::{Definitions, path_of};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{GOOD, Line};
use crate::cli::session::Session;
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind};

/// Longest id of a new worker or skill.
const ID_CHARS_MAX: usize = 63;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Create a worker with one skill
    Worker {
        /// Id: lower-case letters, digits and dashes
        #[arg(value_parser = id)]
        id: String,
    },
    /// Create a skill of a worker
    Skill {
        /// Id of the worker
        worker: String,
        /// Id: lower-case letters, digits and dashes
        #[arg(value_parser = id)]
        id: String,
        /// The skill changes files and ends in a commit
        #[arg(long)]
        mutating: bool,
        /// A model executes the skill from instructions
        #[arg(long)]
        agent: bool,
    },
}

/// Reads an id as new definitions have it.
pub(super) fn id(text: &str) -> Result<String, String> {
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let goes_on = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if begins && goes_on && text.len() <= ID_CHARS_MAX {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "an ID has at most {ID_CHARS_MAX} lower-case letters, digits and dashes, and does not begin with a dash"
        ))
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let workspace = session.globals.find_workspace(session.cwd)?;
    let definitions = Definitions::load(&workspace);
    let (file, text) = match &args.what {
        What::Worker { id } => new_worker(&workspace, &definitions, id)?,
        What::Skill {
            worker,
            id,
            mutating,
            agent,
        } => {
            let scaffold = if *agent { instructed } else { commanded };
            let text = scaffold(id, &title(id), *mutating);
            (new_skill(&workspace, &definitions, worker, id)?, text)
        }
    };
    if !write_new(&file, &text)? {
        return Err(exists(format!("`{}` already exists", file.display())));
    }
    let shown = file
        .strip_prefix(&workspace)
        .unwrap_or(&file)
        .display()
        .to_string();
    if session.json() {
        session.print_json(&json!({"written": [shown]}), "new");
        return Ok(Exit::Ok);
    }
    session.io.err.line(Line::of(GOOD, "written ").text(&shown));
    if let What::Skill { .. } = &args.what {
        let loaded = Definitions::load(&workspace);
        let mut of_file = loaded
            .problems()
            .iter()
            .filter(|one| *one.place.path == *shown);
        if let Some(lack) = of_file.find(|one| one.code == "no-executor") {
            diagnostic::warning(&mut session.io.err, &lack.message);
            if let Some(hint) = &lack.hint {
                diagnostic::hint(&mut session.io.err, hint);
            }
        }
    }
    diagnostic::hint(&mut session.io.err, "run `workerctl check` after each edit");
    Ok(Exit::Ok)
}

fn exists(message: String) -> Diagnostic {
    Diagnostic::new(Kind::Conflict, "exists", message)
}

fn new_worker(
    workspace: &Path,
    definitions: &Definitions,
    id: &str,
) -> Result<(PathBuf, String), Diagnostic> {
    let taken = definitions
        .workers()
        .into_iter()
        .find(|worker| worker.id.eq_ignore_ascii_case(id));
    if let Some(worker) = taken {
        return Err(exists(format!(
            "the worker `{}` is already defined at {}",
            worker.id, worker.defined_at
        )));
    }
    let text = format!(
        "\
# Purpose of this worker, in one sentence.

worker:
  id: {id}
  name: \"{title}\"
  type: OpsWorker
  version: \"1.0\"
  description: \"Describe {id} here\"

execution:
  mode: on_demand
  max_runtime: 10m

# Skills. Each file `skills/*.md` is a skill too.
skills:
  - id: hello
    name: \"Hello\"
    description: \"Writes a greeting to a report\"
    mutating: false
    timeout: 1m
    interface:
      inputs:
        - {{name: name, type: string, default: world, min_length: 1, description: \"Person to greet\"}}
      outputs:
        - {{name: report, type: markdown, destination: \"workspace/reports/{{date}}-{id}-hello.md\"}}
    # The command does not write `report`, so its output becomes the report.
    run: |
      printf '# Hello\\n\\nHello, %s!\\n' {{name}}
    verification:
      - description: \"the report contains the greeting\"
        command: \"grep -qF -e {{name}} {{report}}\"
",
        title = title(id)
    );
    Ok((workspace.join(definitions.new_worker(id)?), text))
}

/// Returns the file of a new skill.
fn new_skill(
    workspace: &Path,
    definitions: &Definitions,
    worker: &str,
    id: &str,
) -> Result<PathBuf, Diagnostic> {
    let workers = definitions.workers();
    let Some(found) = workers.iter().find(|one| one.id == worker) else {
        return Err(suggest::unknown_worker(
            worker,
            workers.iter().map(|one| one.id.as_str()),
        ));
    };
    let address = format!("{}/{id}", found.id);
    if let Some(taken) = found
        .skills
        .iter()
        .find(|one| one.address.eq_ignore_ascii_case(&address))
    {
        return Err(exists(format!(
            "the skill `{address}` is already defined at {}",
            taken.defined_at
        )));
    }
    let path = path_of(&found.defined_at);
    let directory = Path::new(path).parent().unwrap_or(Path::new(""));
    let skills = workspace.join(directory).join("skills");
    Ok(skills.join(format!("{id}.md")))
}

/// Returns a skill with a command.
fn commanded(id: &str, title: &str, mutating: bool) -> String {
    format!(
        "\
---
skill:
  id: {id}
  name: \"{title}\"
  description: \"Describe {id} here\"
  mutating: {mutating}
  timeout: 5m
  interface:
    outputs:
      - {{name: report, type: markdown, destination: \"workspace/reports/{{date}}-{{worker}}-{id}.md\"}}
  # The command does not write `report`, so its output becomes the report.
  run: |
    printf '# {title}\\n\\nMade on %s.\\n' {{date}}
  verification:
    - description: \"the report contains its date\"
      command: \"grep -qF -e {{date}} {{report}}\"
---

# {title}

Purpose of this skill, its users, and how its result is verified.
"
    )
}

/// Returns a skill with instructions.
fn instructed(id: &str, title: &str, mutating: bool) -> String {
    format!(
        "\
---
skill:
  id: {id}
  name: \"{title}\"
  description: \"Describe {id} here\"
  mutating: {mutating}
  timeout: 15m
  # Maximum number of model turns. An attempt that reaches it fails.
  max_iterations: 10
  # Tools that the model may call. Default: all tools of the skill.
  # allowed-tools: [read_file, list_directory, glob, grep, \"Bash(git log:*)\"]
  # Limits for one run, and the number of runs per day.
  # budget: {{tokens: 200_000, per_day: {{runs: 10}}}}
  interface:
    outputs:
      - {{name: report, type: markdown, destination: \"workspace/reports/{{date}}-{{worker}}-{id}.md\"}}
  # The model sees the descriptions. The commands verify its result.
  verification:
    - description: \"the first line of the report is `# {title}`\"
      command: \"head -n 1 {{report}} | grep -qxF -e '# {title}'\"
---

# {title}

Describe here what the model has to do, step by step. It also receives the inputs, the outputs and the checks.

Submit the output `report` with `submit_output`. Its first line is `# {title}`.
"
    )
}

/// `weekly-report` as `Weekly report`.
fn title(id: &str) -> String {
    let words = id.replace('-', " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_ascii_uppercase().to_string() + chars.as_str(),
        None => words,
    }
}
