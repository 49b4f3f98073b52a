//! `schedule import-crontab FILE|-`

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::commands::init::unwritable;
use crate::cli::commands::new::id;
use crate::cli::definitions::{Definitions, path_of};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BAD, CARE, GOOD, Line};
use crate::cli::session::Session;
use crate::cli::whole_file::write_whole;
use crate::model::config::CONFIG_FILE;
use crate::model::{Diagnostic, Kind, Problem, Severity};
use crate::schedule::crontab::{
    CRONTAB_BYTES_MAX, CronJob, Crontab, Form, Note, read, users, worker_yaml,
};

/// Names of users, by which the system's form is told.
const PASSWD: &str = "/etc/passwd";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Crontab to read; `-` is standard input
    #[arg(value_name = "FILE|-")]
    file: String,
    /// Id of the worker [default: from the name of the file, or `crontab`]
    #[arg(long, value_name = "ID", value_parser = id)]
    worker: Option<String>,
    /// Print the worker instead of writing it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    form: Forms,
    /// Replace an existing worker
    #[arg(long)]
    force: bool,
}

/// What the crontab looks like; without either it is found out.
#[derive(Debug, clap::Args)]
struct Forms {
    /// Jobs have a user before the command, as in /etc/crontab [default: detect]
    #[arg(long, conflicts_with = "user")]
    system: bool,
    /// Jobs have no user before the command, as in `crontab -l` [default: detect]
    #[arg(long)]
    user: bool,
}

pub(super) fn import(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let workspace = session.globals.find_workspace(session.cwd)?;
    let bytes = contents(session, &args.file)?;
    let (form, may_have_users) = form(args, &bytes);
    let crontab = read(&bytes, form);
    let worker = args.worker.clone().unwrap_or_else(|| worker_of(&args.file));
    let source = if args.file == "-" {
        "a crontab"
    } else {
        args.file.as_str()
    };
    let yaml = worker_yaml(&crontab, &worker, source);
    let definitions = Definitions::load(&workspace);
    let place = definitions.new_worker(&worker)?;
    let path = workspace.join(&place);
    let (mut written, mut problems) = (None, Vec::new());
    if !crontab.jobs.is_empty() {
        is_free(&definitions, &workspace, &worker, &path)?;
    }
    if !args.dry_run && !crontab.jobs.is_empty() {
        write_whole(&path, &yaml, args.force).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => is_there(&path),
            _ => unwritable(&path, &error),
        })?;
        written = Some(shown(&workspace, &path));
        problems = found(session, &workspace, &path);
    } else if !crontab.jobs.is_empty() {
        if path.exists() && !args.force {
            return Err(is_there(&path));
        }
        problems = found_aside(session, &workspace, &place, &yaml)?;
    }
    let imported = Imported {
        worker: &worker,
        crontab: &crontab,
        yaml: args.dry_run.then_some(yaml.as_str()),
        written,
        problems,
        zone: &definitions.config().timezone,
    };
    if session.json() {
        session.print_json(&imported.json(), "imported");
    } else {
        imported.print(session);
    }
    if may_have_users {
        let text =
            "every command seems to begin with a user name: if so, import the file with `--system`";
        diagnostic::warning(&mut session.io.err, text);
    }
    Ok(imported.exit())
}

fn contents(session: &mut Session<'_>, file: &str) -> Result<Vec<u8>, Diagnostic> {
    let most = CRONTAB_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let taken = if file == "-" {
        (&mut *session.io.input).take(most).read_to_end(&mut bytes)
    } else {
        fs::File::open(session.cwd.join(file))
            .and_then(|open| open.take(most).read_to_end(&mut bytes))
    };
    taken.map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Usage,
        };
        Diagnostic::new(
            kind,
            "crontab_unreadable",
            format!("`{file}` cannot be read: {error}"),
        )
    })?;
    if bytes.len() > CRONTAB_BYTES_MAX {
        let message = format!("`{file}` has more than {CRONTAB_BYTES_MAX} bytes");
        return Err(Diagnostic::new(Kind::Usage, "crontab_too_large", message)
            .hint("import it in parts, each with a `--worker` of its own"));
    }
    Ok(bytes)
}

/// What its jobs look like, and whether they might as well have users.
fn form(args: &Args, bytes: &[u8]) -> (Form, bool) {
    let by_place = args.file == "/etc/crontab" || args.file.starts_with("/etc/cron.d/");
    if args.form.user || args.form.system || by_place {
        let form = if args.form.user {
            Form::User
        } else {
            Form::System
        };
        return (form, false);
    }
    let named = users(bytes);
    if named.is_empty() || !named.is_subset(&known_users()) {
        return (Form::User, false);
    }
    // `mail` and `git` are users and commands; nobody has a command `root`.
    if named.contains("root") {
        (Form::System, false)
    } else {
        (Form::User, true)
    }
}

/// Users of this machine, and `root`.
fn known_users() -> BTreeSet<String> {
    let text = fs::read_to_string(PASSWD).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split(':').next());
    let known = names.map(str::to_owned);
    known.chain(["root".to_owned()]).collect()
}

/// An id after the name of a file.
fn worker_of(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let name: String = stem
        .unwrap_or_default()
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = name.trim_matches('-');
    id(name).unwrap_or_else(|_| "crontab".to_owned())
}

fn shown(workspace: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(workspace).unwrap_or(path);
    relative.display().to_string()
}

/// The id belongs to no worker of another file.
fn is_free(
    definitions: &Definitions,
    workspace: &Path,
    worker: &str,
    path: &Path,
) -> Result<(), Diagnostic> {
    let workers = definitions.workers();
    let other = workers.iter().find(|one| {
        one.id.eq_ignore_ascii_case(worker) && path_of(&one.defined_at) != shown(workspace, path)
    });
    match other {
        None => Ok(()),
        Some(other) => Err(exists(format!(
            "the worker `{}` is defined at {}",
            other.id, other.defined_at
        ))),
    }
}

fn exists(message: String) -> Diagnostic {
    Diagnostic::new(Kind::Conflict, "exists", message).hint("choose another id with `--worker`")
}

fn is_there(path: &Path) -> Diagnostic {
    exists(format!("`{}` already exists", path.display())).hint("`--force` replaces it")
}

/// Errors of what was written, as `check` finds them.
fn found(session: &Session<'_>, workspace: &Path, path: &Path) -> Vec<Problem> {
    let loaded = Definitions::load_thoroughly(workspace, session.environment);
    let shown = shown(workspace, path);
    let all = loaded.problems().iter();
    all.filter(|one| *one.place.path == *shown && one.severity == Severity::Error)
        .cloned()
        .collect()
}

/// Errors of what would be written, as `check` finds them: it is read in a workspace that goes at once.
fn found_aside(
    session: &Session<'_>,
    workspace: &Path,
    place: &Path,
    yaml: &str,
) -> Result<Vec<Problem>, Diagnostic> {
    let temporary = session.environment.get("TMPDIR").map(Path::new);
    let name = format!("workerctl-import-{}", std::process::id());
    let scratch = Scratch(temporary.unwrap_or(Path::new("/tmp")).join(name));
    let path = scratch.0.join(place);
    let put = || -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(&scratch.0)?;
        match fs::copy(workspace.join(CONFIG_FILE), scratch.0.join(CONFIG_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir_all(path.parent().unwrap_or(&scratch.0))?;
        fs::write(&path, yaml)
    };
    put().map_err(|error| unwritable(&scratch.0, &error))?;
    Ok(found(session, &scratch.0, &path))
}

/// A directory that goes when it has served.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is a copy in a directory for such.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Imported<'a> {
    worker: &'a str,
    crontab: &'a Crontab,
    /// What would be written.
    yaml: Option<&'a str>,
    /// What was written.
    written: Option<String>,
    problems: Vec<Problem>,
    /// The workspace's zone.
    zone: &'a str,
}

impl Imported<'_> {
    fn refused(&self) -> impl Iterator<Item = &Note> {
        self.crontab.notes.iter().filter(|note| note.refused)
    }

    fn exit(&self) -> Exit {
        if self.refused().next().is_some() || !self.problems.is_empty() {
            Exit::InvalidDefinition
        } else {
            Exit::Ok
        }
    }

    fn json(&self) -> Value {
        let note =
            |note: &Note| json!({"line": note.line, "message": note.message, "hint": note.hint});
        let job = |job: &CronJob| {
            json!({
                "line": job.line, "skill": format!("{}/{}", self.worker, job.id), "cron": job.expression,
                "timezone": job.timezone, "user": job.user, "description": job.description,
            })
        };
        let notes = self.crontab.notes.iter().filter(|note| !note.refused);
        json!({
            "worker": self.worker,
            "written": self.written,
            "yaml": self.yaml,
            "jobs": self.crontab.jobs.iter().map(job).collect::<Vec<_>>(),
            "refused": self.refused().map(note).collect::<Vec<_>>(),
            "notes": notes.map(note).collect::<Vec<_>>(),
            "problems": self.problems,
        })
    }

    fn print(&self, session: &mut Session<'_>) {
        if let Some(yaml) = self.yaml.filter(|_| !self.crontab.jobs.is_empty()) {
            session.io.out.raw(yaml);
        }
        let err = &mut session.io.err;
        for note in &self.crontab.notes {
            let line = format!("line {}: ", note.line);
            let line = if note.refused {
                Line::of(BAD, line).text("not imported: ")
            } else {
                Line::of(CARE, line)
            };
            err.line(line.text(&note.message));
            if let Some(hint) = &note.hint {
                diagnostic::hint(err, hint);
            }
        }
        for problem in &self.problems {
            let text = format!("{}: {}", problem.place, problem.message);
            diagnostic::warning(err, &text);
        }
        let jobs = self.crontab.jobs.len();
        let noun = if jobs == 1 { "job" } else { "jobs" };
        let refused = self.refused().count();
        match &self.written {
            Some(path) => err.line(
                Line::of(GOOD, "written ")
                    .text(format!("{path}: {jobs} {noun}, {refused} not imported")),
            ),
            None => err.line(format!(
                "{jobs} {noun}, {refused} not imported, nothing written"
            )),
        }
        if self.crontab.jobs.iter().any(|job| job.timezone.is_none()) {
            let text = format!(
                "times without `CRON_TZ` now use the workspace's time zone, {}; cron used the machine's",
                self.zone
            );
            diagnostic::hint(err, &text);
        }
        if self.written.is_some() {
            let sandbox = "jobs run in a sandbox now: run each once; what writes elsewhere, such as logs and backups, needs `sandbox: {write: [DIR]}` or `off`";
            diagnostic::hint(err, sandbox);
            let text = "take the jobs out of the crontab, then `workerctl daemon reload`; `workerctl schedule next` shows what is due";
            diagnostic::hint(err, text);
        }
    }
}
