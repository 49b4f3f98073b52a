//! `init [DIR]`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::definitions::directory_of_new_workers;
use crate::cli::examples::EXAMPLES;
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{DIM, GOOD, Line};
use crate::cli::repository;
use crate::cli::session::Session;
use crate::model::config::CONFIG_FILE;
use crate::model::isolation::branch_name;
use crate::model::worker_paths::WORKERS_DIR;
use crate::model::{Diagnostic, Kind};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the workspace; created if it is missing
    #[arg(default_value = ".", value_name = "DIR")]
    directory: PathBuf,
    /// Write no example workers
    #[arg(long)]
    bare: bool,
    /// Do not create a git repository
    #[arg(long)]
    no_git: bool,
}

/// Patterns for `.gitignore`.
const IGNORED: [&str; 4] = [
    "/workspace/threads/",
    "/workspace/metrics/",
    "/state/",
    "/.workerctl/",
];

/// Every key with its default, so that the file shows what can be set.
pub(crate) const CONFIG_TEXT: &str = "\
# Configuration of this workspace. To set a key, remove the `#` before it. The values of `timezone`, `commit`, `hooks` and
# `models` are examples; all others are the defaults.
# `workerctl config` prints the effective values, `workerctl schema config` describes all keys.

# Sandbox of commands: `auto` (what the kernel supports), `required` (or refuse to run), `private` (a container) or `off`.
# To grant access: {level: auto, write: [~/.cache/npm]}.
# sandbox: auto

# Limits of one command.
# limits: {processes: 1000, written: 32GiB}

# Time to answer a request for approval; then the run is denied.
# approval: {expires: 7d}

# Other users who may use the daemon.
# access: {admin: {users: [], groups: []}, read: {users: [], groups: []}}

# Time zone of dates, schedules and displayed times.
# timezone: Europe/Berlin

# Number of runs that execute at once; 0 is the number of processors, at least 2.
# max_parallel: 0

# Number of runs that may be queued.
# queue: {max: 10000}

# Author and subject line of commits. The default author is that of git's configuration.
# commit:
#   author: \"Ada Lovelace <ada@example.com>\"
#   message: \"{{skill}}: {{title}}\"

# Branch on which results land. Default: for runs that you start, the branch that is checked out; for schedules, the branch
# of `origin/HEAD`.
# branch:

# Remote to push landed results to; `true` is `origin`. A push has its own time limit.
# push: false
# push_timeout: 5m

# How long landing waits for git locks and locally changed files; then the run fails.
# land_wait: 10m

# Worktrees that are kept for later runs, the disk space they leave free, and when unused ones are deleted.
# trees: {max: 8, min_free: 1GiB, idle: 14d}

# Time limit of one attempt, and time between the request to terminate and SIGKILL.
# timeout: 1h
# grace: 5s

# How long the daemon waits for active runs when it stops.
# drain_grace: 60s

# Bytes kept of each output stream of a command. Longer output keeps its first and last half.
# output_bytes_max: 10485760

# Commands that run before and after the commit of each mutating run, with the event as JSON on standard input.
# `post_tools` can block the commit with exit code 2.
# hooks:
#   post_tools: [\"./scripts/allowed\"]
#   post_commit: [\"./scripts/announce\"]

# Models for skills without `run`: the model's name at its provider, and where the API key is.
# models:
#   default: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}
# budget: {tokens: 5000000, turns: 200}

# Directories with workers; `*` matches one name, as in `packages/*/workers`.
# workers: {paths: [workers]}

# Where to find skills that belong to no worker: standard directories of the workspace and of your home, additional
# directories, and those that need `workerctl skill trust` first.
# skills:
#   families: [.agents, .agent, .claude, .wave]
#   personal: true
#   roots: []
#   untrusted: []
";

/// First line of the first commit.
const FIRST_MESSAGE: &str = "Set up workerctl\n";

/// What became of the files of a workspace, paths relative to its root.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Those that were not there.
    pub(crate) written: Vec<String>,
    /// Those that were there and stay as they are.
    pub(crate) kept: Vec<String>,
}

/// A repository that this command has made.
struct NewRepository {
    branch: String,
    /// The first commit in hex; absent without an author.
    commit: Option<String>,
    /// Why there is no commit.
    unknown: Option<Diagnostic>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    // `-C` is obeyed as git obeys it; a variable that names another workspace for all commands is not.
    let inherited = session
        .environment
        .get("WORKERCTL_WORKSPACE")
        .map(Path::new);
    let asked = session.globals.workspace.as_deref();
    let asked = asked.filter(|asked| Some(*asked) != inherited);
    let base = session.cwd.join(asked.unwrap_or(Path::new("")));
    // Without the `.` at its end, below which nothing can be made before it is there.
    let root: PathBuf = base.join(&args.directory).components().collect();
    fs::create_dir_all(&root).map_err(|error| unwritable(&root, &error))?;
    // Where no repository can be made, nothing is written.
    let repository = if args.no_git {
        None
    } else {
        repository::create(&root)?
    };
    let files = write_files(&root, &config_text(&root), !args.bare)?;
    let made = match repository {
        Some(made) => Some(begin(session, &root, made.branch, &files)?),
        None => None,
    };
    let missing = missing_lines(&root.join(".gitignore"));
    if session.json() {
        let told = json!({
            "workspace": root.display().to_string(),
            "written": files.written,
            "kept": files.kept,
            "gitignore_lacks": missing,
            "repository": made.as_ref().map(|made| json!({
                "branch": made.branch,
                "commit": made.commit,
            })),
        });
        session.print_json(&told, "init");
        return Ok(Exit::Ok);
    }
    let err = &mut session.io.err;
    for path in &files.written {
        err.line(Line::of(GOOD, "  written  ").text(path));
    }
    for path in &files.kept {
        err.line(Line::of(DIM, "  kept     ").text(path));
    }
    if let Some(made) = &made {
        let on = format!("git repository on `{}`", made.branch);
        err.line(Line::of(GOOD, "  made     ").text(on));
        if let Some(commit) = &made.commit {
            let short: String = commit.chars().take(10).collect();
            err.line(Line::of(GOOD, "  commit   ").text(short));
        }
    }
    advise(session, (&root, args.bare), &missing, made.as_ref());
    Ok(Exit::Ok)
}

/// The configuration, with the branch that is checked out where there is one.
fn config_text(root: &Path) -> String {
    let on_branch = repository::locate(root)
        .ok()
        .filter(|found| !found.detached);
    match on_branch.filter(|found| branch_name(&found.branch) == Ok(&found.branch)) {
        Some(found) => {
            let written = format!(
                "# The branch that was checked out when this file was created.\nbranch: {}\n",
                yaml_text(&found.branch)
            );
            CONFIG_TEXT.replacen("# branch:\n", &written, 1)
        }
        None => CONFIG_TEXT.to_owned(),
    }
}

/// A text as YAML, quoted unless it is plain for every reader.
fn yaml_text(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    if plain && !word {
        text.to_owned()
    } else {
        // What JSON writes is YAML too.
        json!(text).to_string()
    }
}

/// Writes what is missing of a workspace, with or without the example workers.
pub(crate) fn write_files(root: &Path, config: &str, examples: bool) -> Result<Files, Diagnostic> {
    let ignored = IGNORED.join("\n") + "\n";
    let mut texts = vec![
        (CONFIG_FILE.to_owned(), config),
        (".gitignore".to_owned(), ignored.as_str()),
    ];
    // A configuration that is there may have workers read from elsewhere.
    let directory = directory_of_new_workers(root);
    if examples {
        let placed = |path: &str| match path.strip_prefix(WORKERS_DIR) {
            Some(rest) => format!("{directory}{rest}"),
            None => path.to_owned(),
        };
        texts.extend(EXAMPLES.iter().map(|one| (placed(one.path), one.text)));
    } else {
        let directory = root.join(&directory);
        fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, &error))?;
    }
    let mut files = Files::default();
    for (path, text) in texts {
        if write_new(&root.join(&path), text)? {
            files.written.push(path);
        } else {
            files.kept.push(path);
        }
    }
    Ok(files)
}

/// Commits what was written, when git knows by whom.
fn begin(
    session: &Session<'_>,
    root: &Path,
    branch: String,
    files: &Files,
) -> Result<NewRepository, Diagnostic> {
    let mut made = NewRepository {
        branch,
        commit: None,
        unknown: None,
    };
    match repository::author(root, None) {
        Err(unknown) => made.unknown = Some(unknown),
        Ok(_) if files.written.is_empty() => {}
        Ok(_) => {
            let now = session.clock.now();
            let commit = repository::first_commit(root, &files.written, None, FIRST_MESSAGE, now)?;
            made.commit = Some(commit);
        }
    }
    Ok(made)
}

fn advise(
    session: &mut Session<'_>,
    (root, is_bare): (&Path, bool),
    missing: &[&str],
    made: Option<&NewRepository>,
) {
    let located = repository::locate(root);
    let err = &mut session.io.err;
    if !missing.is_empty() {
        let text = format!(
            "`.gitignore` was there before and lacks {}",
            quoted(missing)
        );
        diagnostic::warning(err, &text);
    }
    if let Err(refused) = located {
        if refused.code == "not_a_repository" {
            diagnostic::hint(
                err,
                "mutating skills need a git repository with a commit: `git init`, then commit",
            );
        } else {
            diagnostic::warning(err, &refused.message);
            for hint in &refused.hints {
                diagnostic::hint(err, hint);
            }
        }
    }
    if let Some(unknown) = made.and_then(|made| made.unknown.as_ref()) {
        diagnostic::warning(err, &format!("nothing was committed: {}", unknown.message));
        for line in unknown.hints.iter().flat_map(|hint| hint.lines()) {
            diagnostic::hint(err, line);
        }
    }
    let hint = if is_bare {
        "`workerctl new worker ID` creates a worker"
    } else {
        "`workerctl skills` lists what can be run, `workerctl doctor` what is missing"
    };
    diagnostic::hint(err, hint);
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lines that the file lacks, in any of the forms that mean the same.
fn missing_lines(path: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let bare = |line: &str| line.trim().trim_matches('/').to_owned();
    let present: Vec<String> = text.lines().map(bare).collect();
    IGNORED
        .into_iter()
        .filter(|line| !present.contains(&bare(line)))
        .collect()
}

/// Writes a file that is not there yet; `false`: something is there, and stays as it is.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<bool, Diagnostic> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    }
    let created = fs::File::options().write(true).create_new(true).open(path);
    match created {
        Ok(mut file) => file
            .write_all(text.as_bytes())
            .map(|()| true)
            .map_err(|error| unwritable(path, &error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unwritable(path, &error)),
    }
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    let message = format!("`{}` cannot be written: {error}", path.display());
    Diagnostic::new(Kind::Internal, "not_written", message)
}
