//! `demo [DIR]`

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::init::{self, unwritable};
use super::run;
use crate::cli::exit::Exit;
use crate::cli::follow::{Follow, Followed, OnInterrupt, SignalListener, follow};
use crate::cli::globals::Site;
use crate::cli::io::Stream;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{ACTIVE, BOLD, DIM, GOOD, Line};
use crate::cli::render::{report, times};
use crate::cli::repository::{self, Commit};
use crate::cli::session::{Accept, Session};
use crate::model::{Diagnostic, Kind, Outcome, Zone};
use crate::protocol::{RunDetail, SubmitRequest};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The workspace, its state and its engine are the demonstration's own: \
    `--workspace`, `--state-dir` and `--socket` change nothing here."
)]
pub(crate) struct Args {
    /// Directory of the workspace, empty or missing; by default a new temporary directory, which
    /// is not deleted
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// What is run.
const SKILL: &str = "repo-steward/weekly-changes";

/// Who commits are by where git names nobody.
const AUTHOR: &str = "workerctl demo <demo@example.invalid>";

/// First line of the first commit.
const FIRST_MESSAGE: &str = "Add the example workers\n";

/// Names that are tried for a directory among the temporary files.
const NAMES_MAX: u32 = 100;

/// Bytes of the report that are shown.
const REPORT_BYTES_MAX: u64 = 64 * 1024;

/// What else there is to try, and what it does.
const NEXT: [(&str, &str); 5] = [
    ("workerctl show", "the run in full, with its timeline"),
    ("workerctl diff", "what it committed"),
    ("workerctl run host-watch/disk-report", "another example"),
    ("workerctl skills", "all of them"),
    ("workerctl new worker greeter", "one of your own"),
];

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let root = place(session, args)?;
    let began = begin(session, &root)?;
    let told = !session.json();
    if told {
        let err = &mut session.io.err;
        err.line(Line::of(GOOD, "  workspace  ").text(root.display().to_string()));
        let made = format!("{} of the example workers", short(&began));
        err.line(Line::of(GOOD, "  commit     ").text(made));
    }
    let site = site(session, &root);
    let control = session.engines.connect(&site, Accept::RunningElseHosted)?;
    let request = SubmitRequest {
        skill: SKILL.to_owned(),
        by: session.asked_by(),
        ..SubmitRequest::default()
    };
    let signals = SignalListener::open(session)?;
    let submitted = control.submit(&request)?;
    if told {
        let line = Line::of(BOLD, format!("run {}", submitted.run.short()));
        let line = line.text(format!("  {SKILL}"));
        let thread = format!("  {}", submitted.thread);
        session.io.err.line(line.styled(DIM, thread));
    }
    let how = Follow {
        on_interrupt: OnInterrupt::Cancel,
        until_asked: true,
        quiet: false,
        // The report is shown when it has been verified.
        lines: false,
        timeout_ms: None,
    };
    let followed = follow(session, signals, &control, submitted.run, how)?;
    let exit = match followed {
        Followed::Ended {
            detail,
            interrupted,
        } => {
            print(session, &root, &detail)?;
            run::exit_of(detail.summary.outcome.as_ref(), interrupted)
        }
        left @ (Followed::Left { .. } | Followed::Asked(_) | Followed::TimedOut) => {
            run::conclude(session, left, submitted.run, false)
        }
    };
    if told {
        session.io.out.flush();
        next(session, &root, exit);
    }
    Ok(exit)
}

/// The places of the demonstration; nothing of another workspace's engine reaches it.
fn site(session: &Session<'_>, root: &Path) -> Site {
    let mut environment = session.environment.clone();
    for name in ["STATE_DIRECTORY", "RUNTIME_DIRECTORY"] {
        environment.remove(name);
    }
    // The workspace's dates are in UTC, and so is what git makes of them.
    environment.insert("TZ".to_owned(), "UTC".to_owned());
    Site {
        workspace: root.to_owned(),
        state_dir: root.join("state"),
        socket: None,
        environment,
    }
}

/// An empty directory that lies in no repository, without links.
fn place(session: &Session<'_>, args: &Args) -> Result<PathBuf, Diagnostic> {
    let refused = |code: &str, message: String| Diagnostic::new(Kind::Conflict, code, message);
    let root = match &args.directory {
        None => among_temporary_files(session)?,
        Some(asked) => {
            let root = session.cwd.join(asked);
            fs::create_dir_all(&root).map_err(|error| unwritable(&root, &error))?;
            root
        }
    };
    let mut found = fs::read_dir(&root).map_err(|error| unwritable(&root, &error))?;
    if found.next().is_some() {
        let message = format!("`{}` is not empty", root.display());
        return Err(refused("not_empty", message)
            .hint("name an empty or new directory, or omit it to use a temporary one"));
    }
    root.canonicalize()
        .map_err(|error| unwritable(&root, &error))
}

fn among_temporary_files(session: &Session<'_>) -> Result<PathBuf, Diagnostic> {
    let parent = match session.environment.get("TMPDIR") {
        Some(set) if Path::new(set).is_absolute() => PathBuf::from(set),
        Some(_) | None => PathBuf::from("/tmp"),
    };
    let stem = format!("workerctl-demo-{}", session.clock.now().utc_compact());
    for number in 1..=NAMES_MAX {
        let root = parent.join(match number {
            1 => stem.clone(),
            more => format!("{stem}-{more}"),
        });
        // Others may read the directory's parent, so what lies in it is the user's alone.
        match DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => return Ok(root),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unwritable(&root, &error)),
        }
    }
    let taken = io::Error::from(io::ErrorKind::AlreadyExists);
    Err(unwritable(&parent.join(stem), &taken))
}

/// Writes the workspace and commits it; answers the commit.
fn begin(session: &Session<'_>, root: &Path) -> Result<String, Diagnostic> {
    if repository::create(root)?.is_none() {
        let message = format!("`{}` is in a git repository", root.display());
        return Err(
            Diagnostic::new(Kind::Conflict, "within_repository", message)
                .hint("name a directory outside the repository, or omit it to use a temporary one"),
        );
    }
    let (author, config) = match repository::author(root, None) {
        Ok(_) => (None, init::CONFIG_TEXT.to_owned()),
        Err(_) => (Some(AUTHOR), config_with_author()),
    };
    let files = init::write_files(root, &config, true)?;
    let now = session.clock.now();
    repository::first_commit(root, &files.written, author, FIRST_MESSAGE, now)
}

fn config_with_author() -> String {
    format!(
        "{}\n# Git has no user name, so the demonstration sets one.\n\
         commit:\n  author: \"{AUTHOR}\"\n",
        init::CONFIG_TEXT
    )
}

fn print(session: &mut Session<'_>, root: &Path, detail: &RunDetail) -> Result<(), Diagnostic> {
    let succeeded = matches!(detail.summary.outcome, Some(Outcome::Succeeded));
    let report = if succeeded {
        read_report(root, detail)?
    } else {
        None
    };
    let commit = match &detail.summary.commit {
        Some(commit) => repository::commit(root, commit)?,
        None => None,
    };
    if session.json() {
        let told = json!({
            "workspace": root.display().to_string(),
            "run": detail,
            "report": report.map(|report| report.text),
        });
        session.print_json(&told, "demo");
        return Ok(());
    }
    let out = &mut session.io.out;
    let (Some(report), Some(commit)) = (report, commit) else {
        report::ending(out, detail);
        return Ok(());
    };
    report::proved(out, detail);
    let place = Line::of(BOLD, "report").styled(DIM, format!("  {}", report.path));
    out.raw("\n");
    out.line(place);
    indented(out, &report.text);
    if report.truncated {
        out.line(Line::of(DIM, "  …"));
    }
    print_commit(session, &commit);
    let out = &mut session.io.out;
    out.raw("\n");
    out.line(Line::of(BOLD, "thread").styled(DIM, format!("  {}", detail.thread_path)));
    Ok(())
}

fn print_commit(session: &mut Session<'_>, commit: &Commit) {
    let out = &mut session.io.out;
    out.raw("\n");
    out.line(Line::of(BOLD, "commit").styled(DIM, format!("  {}", commit.oid)));
    let at = times::instant(commit.at, Zone::UTC);
    out.line(Line::from("  ").text(format!("{}, {at} UTC", commit.author)));
    out.raw("\n");
    indented(out, commit.message.trim_end());
    out.raw("\n");
    for file in &commit.files {
        out.line(Line::from("  ").text(file));
    }
    if commit.files_more > 0 {
        let more = format!("  and {} more", commit.files_more);
        out.line(Line::of(DIM, more));
    }
}

fn indented(out: &mut Stream<'_>, text: &str) {
    for line in text.lines() {
        if line.is_empty() {
            out.raw("\n");
        } else {
            out.line(Line::from("  ").text(line));
        }
    }
}

struct Report {
    path: String,
    text: String,
    truncated: bool,
}

/// The one declared file of the run, as its checks saw it.
fn read_report(root: &Path, detail: &RunDetail) -> Result<Option<Report>, Diagnostic> {
    let Some(path) = detail.outputs.iter().find_map(|output| output.path.clone()) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    File::open(root.join(&path))
        .and_then(|file| file.take(REPORT_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            let message = format!("the report `{path}` cannot be read: {error}");
            Diagnostic::new(Kind::Internal, "report_unreadable", message)
        })?;
    let kept = usize::try_from(REPORT_BYTES_MAX).unwrap_or(usize::MAX);
    let truncated = bytes.len() > kept;
    bytes.truncate(kept);
    Ok(Some(Report {
        path,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        truncated,
    }))
}

fn next(session: &mut Session<'_>, root: &Path, exit: Exit) {
    let err = &mut session.io.err;
    let cd = format!("cd {}", shell_word(&root.display().to_string()));
    if exit != Exit::Ok {
        diagnostic::hint(err, &format!("the workspace is kept: {}", root.display()));
        return;
    }
    err.raw("\n");
    err.line(Line::of(BOLD, "next"));
    err.line(Line::from("  ").styled(ACTIVE, cd));
    for (command, purpose) in NEXT {
        let column = Line::from("  ").styled(ACTIVE, format!("{command:<40}"));
        err.line(column.styled(DIM, purpose));
    }
}

fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}

/// A path as a shell reads it back.
fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
