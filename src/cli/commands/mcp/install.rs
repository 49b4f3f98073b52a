//! `mcp install`

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::clients::{Client, ConfigFile, SERVER, has_program};
use super::json_file::{self, Change};
use super::toml_file;
use crate::cli::commands::init::unwritable;
use crate::cli::globals::{Site, may_be_workspace};
use crate::cli::render::diagnostic;
use crate::cli::render::line::{DIM, GOOD, Line};
use crate::cli::session::Session;
use crate::cli::whole_file::rewrite_whole;
use crate::model::config::CONFIG_FILE;
use crate::model::{Diagnostic, Kind, MCP_TYPED_MAX};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Client [default: ask on a terminal]
    #[arg(long, value_name = "CLIENT")]
    client: Option<Client>,
    /// Print the configuration instead of writing it
    #[arg(long)]
    print: bool,
    /// Replace an existing entry `workerctl`
    #[arg(long, conflicts_with = "print")]
    force: bool,
    /// Offer up to N skills as separate tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MCP_TYPED_MAX))]
    typed: Option<u64>,
}

pub(super) fn perform(
    session: &mut Session<'_>,
    site: &Site,
    args: &Args,
) -> Result<(), Diagnostic> {
    let client = match args.client {
        Some(client) => client,
        None => choose(session, site)?,
    };
    let file = client.file(site)?;
    let shown = file.shown(site);
    if args.print {
        told(session, client, &shown, "printed", None);
        advise(session, site, args.typed);
        return Ok(());
    }
    let place = file.resolved(site)?;
    let text = read(&place)?;
    let change = match client.json_entry() {
        Some((section, entry)) => json_file::with_entry(&text, section, SERVER, &entry),
        None => toml_file::with_table(&text),
    };
    match change {
        Change::Present => told(session, client, &shown, "kept", None),
        Change::Written { text, replaced } => {
            if let Some(other) = replaced.as_ref().filter(|_| !args.force) {
                return Err(differs(client, &shown, other));
            }
            expect_own(&place, &shown)?;
            rewrite_whole(&place, &text).map_err(|error| refused(&place, &error))?;
            told(session, client, &shown, "written", replaced.as_ref());
        }
        Change::Unfit { why, hint } => {
            let message = format!("`{shown}` is not changed: {why}");
            return Err(Diagnostic::new(Kind::Blocked, "not_rewritten", message).hint(hint));
        }
        Change::Unclear(why) => {
            if !session.json() {
                session.io.out.raw(&client.document());
            }
            let message = format!("`{shown}` is not changed: {why}");
            return Err(Diagnostic::new(Kind::Blocked, "not_rewritten", message)
                .hint("add by hand what `--print` shows"));
        }
    }
    if !has_program(site, SERVER) {
        let text = format!("`{SERVER}` is not on your `PATH`; the client starts it by that name");
        diagnostic::warning(&mut session.io.err, &text);
    }
    advise(session, site, args.typed);
    Ok(())
}

/// The client that is meant where none was named.
fn choose(session: &mut Session<'_>, site: &Site) -> Result<Client, Diagnostic> {
    let all = Client::value_variants();
    let mut found: Vec<Client> = all
        .iter()
        .copied()
        .filter(|one| one.is_used(site))
        .collect();
    let names = |clients: &[Client]| {
        let names = clients.iter().map(|client| client.name());
        names.collect::<Vec<_>>().join(", ")
    };
    let unknown = |message: String| Diagnostic::new(Kind::Usage, "client_unknown", message);
    if !session.io.can_ask || session.json() {
        let here = match found.as_slice() {
            [] => "none is found here".to_owned(),
            found => format!("found here: {}", names(found)),
        };
        return Err(unknown("it is not said which client is meant".to_owned())
            .hint(format!("`--client` names one of {}; {here}", names(all))));
    }
    if found.is_empty() {
        found = all.to_vec();
    }
    for (nth, client) in found.iter().enumerate() {
        let line = Line::from(format!("  {}  {:<10}", nth + 1, client.name()));
        let file = client.file(site).map(|file| file.shown(site));
        session
            .io
            .err
            .line(line.styled(DIM, file.unwrap_or_default()));
    }
    let answer = session.io.ask("which client? [1]");
    let number = match answer.as_str() {
        "" => Some(1),
        answer => answer.parse::<usize>().ok(),
    };
    let chosen = match number {
        Some(number) => found.get(number.wrapping_sub(1)).copied(),
        None => Client::from_str(&answer, true).ok(),
    };
    chosen.ok_or_else(|| unknown(format!("no client is called `{answer}`")).hint(names(all)))
}

/// Tells what became of the file; what was printed is data.
fn told(
    session: &mut Session<'_>,
    client: Client,
    file: &str,
    state: &str,
    replaced: Option<&Value>,
) {
    let document = client.document();
    if session.json() {
        let told = json!({
            "client": client.name(),
            "file": file,
            "state": state,
            "text": document,
            "replaced": replaced,
        });
        session.print_json(&told, "mcp");
        return;
    }
    let err = &mut session.io.err;
    match state {
        "printed" => session.io.out.raw(&document),
        "kept" => {
            let text = format!("{file} has the entry already");
            err.prose(Line::of(DIM, "  kept     ").text(text), 4);
        }
        _ => {
            err.line(Line::of(GOOD, "  written  ").text(file));
            if let Some(other) = replaced {
                err.prose(Line::of(DIM, "  in place of ").text(other.to_string()), 4);
            }
            diagnostic::hint(err, client.notice());
        }
    }
}

/// Says how skills become tools of their own; on a terminal the person is asked whether they shall.
fn advise(session: &mut Session<'_>, site: &Site, typed: Option<u64>) {
    // Without a workspace nothing runs.
    if !may_be_workspace(&site.workspace) {
        if let Some(typed) = typed {
            let text = format!(
                "`--typed {typed}` needs a workspace, because no skill runs without one; `workerctl init` creates one"
            );
            diagnostic::warning(&mut session.io.err, &text);
        }
        return;
    }
    if session.json() {
        return;
    }
    let typed = match typed {
        Some(typed) => typed,
        None if session.io.can_ask => {
            let question = "offer at most how many runnable skills as separate tools? [0]";
            session
                .io
                .ask(question)
                .parse()
                .unwrap_or(0)
                .min(MCP_TYPED_MAX)
        }
        None => {
            let text = "to offer runnable skills as separate tools, use `--typed N`";
            diagnostic::hint(&mut session.io.err, text);
            return;
        }
    };
    if typed > 0 {
        let text = format!("for that, `{CONFIG_FILE}` needs `typed: {typed}` under `mcp`:");
        diagnostic::hint(&mut session.io.err, &text);
        session.io.err.line(format!("mcp: {{typed: {typed}}}"));
    }
}

impl ConfigFile {
    /// Its name for people.
    fn shown(&self, site: &Site) -> String {
        let of_project = self.path.strip_prefix(&site.workspace).ok();
        let shown = of_project.filter(|_| self.of_project).unwrap_or(&self.path);
        shown.display().to_string()
    }

    /// Where the file is written: what a link leads to. One of a project must lie in it, for whoever commits a link must
    /// not choose what else of the person's is written.
    fn resolved(&self, site: &Site) -> Result<PathBuf, Diagnostic> {
        let known = self
            .path
            .ancestors()
            .find(|path| path.symlink_metadata().is_ok());
        let known = known.unwrap_or(&self.path);
        let real = known
            .canonicalize()
            .map_err(|error| refused(known, &error))?;
        // A missing end of the path is taken as it is written.
        let rest = self.path.strip_prefix(known).unwrap_or(Path::new(""));
        let real = real.join(rest).components().collect::<PathBuf>();
        let project = site.workspace.canonicalize();
        let project = project.as_deref().unwrap_or(&site.workspace);
        if self.of_project && !real.starts_with(project) {
            let (path, real) = (self.path.display(), real.display());
            let message = format!("`{path}` leads out of the project, to `{real}`");
            return Err(Diagnostic::new(Kind::Blocked, "linked", message)
                .hint("add to that file what `--print` shows"));
        }
        Ok(real)
    }
}

/// What a file holds; nothing where there is none.
fn read(path: &Path) -> Result<String, Diagnostic> {
    let read = || {
        // A pipe would be waited for without end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        fs::read_to_string(path)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => {
            let message = format!("`{}` cannot be read: {error}", path.display());
            Err(Diagnostic::new(Kind::Blocked, "not_read", message)
                .hint("`--print` shows what it should hold"))
        }
        Ok(found) => Ok(found),
    }
}

/// Fails where a file is not to be written: its directory alone would let it be replaced.
fn expect_own(path: &Path, shown: &str) -> Result<(), Diagnostic> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(());
    };
    let access = rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
    if !found.permissions().readonly() && access.is_ok() {
        return Ok(());
    }
    let message = format!("`{shown}` is not changed: it is write-protected");
    Err(Diagnostic::new(Kind::Blocked, "write_protected", message)
        .hint("after `chmod u+w` it can be changed by its owner")
        .hint("`--print` shows what it should hold"))
}

fn differs(client: Client, file: &str, other: &Value) -> Diagnostic {
    let message = format!("`{file}` has another entry `{SERVER}`");
    let mut told = Diagnostic::new(Kind::Conflict, "entry_differs", message)
        .hint("`--force` replaces it; every other entry stays");
    let entry = client.json_entry().map(|(_, entry)| entry);
    let entry = entry.unwrap_or_else(toml_file::entry);
    told.details = vec![format!("there is {other}"), format!("wanted is {entry}")];
    told
}

fn refused(path: &Path, error: &io::Error) -> Diagnostic {
    let told = unwritable(path, error).hint("`--print` shows what it should hold");
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::NotFound => Diagnostic {
            kind: Kind::Blocked,
            ..told
        },
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::fake::{Console, Fake};
    use crate::cli::render::line::Line;

    fn console(input: &str) -> Console {
        let mut console = Console::new(Fake::default());
        (console.terminal, console.width) = (true, 80);
        console.input = input.as_bytes().to_vec();
        console
    }

    #[test]
    fn a_person_is_asked_for_the_client_and_for_tools() {
        for (answers, file, typed) in [
            ("\n\n", ".mcp.json", None),
            ("5\n0\n", ".cursor/mcp.json", None),
            ("opencode\n12\n", "opencode.json", Some("mcp: {typed: 12}")),
            ("", ".mcp.json", None),
        ] {
            let console = console(answers);
            let left = console.perform(&["mcp", "install"]);
            assert_eq!(left.code, 0, "{answers:?}: {left:?}");
            assert!(console.path().join(file).is_file(), "{answers:?}: {left:?}");
            assert!(left.err.contains("which client? [1]"), "{left:?}");
            match typed {
                Some(line) => assert!(left.err.contains(line), "{left:?}"),
                None => assert!(!left.err.contains("typed:"), "{left:?}"),
            }
            // A terminal breaks the line where the answer ends.
            for line in left.err.replace("] ", "]\n").lines() {
                assert!(Line::from(line).width() <= 80, "{line}");
            }
        }
        // Only what is used here is offered.
        let console = console("\n\n");
        std::fs::create_dir(console.path().join(".gemini")).unwrap();
        let left = console.perform(&["mcp", "install"]);
        assert!(!left.err.contains("claude"), "{left:?}");
        assert!(console.path().join(".gemini/settings.json").is_file());
        for wrong in ["9\n", "0\n", "-1\n", "emacs\n"] {
            let left = self::console(wrong).perform(&["mcp", "install"]);
            assert_eq!(left.code, 2, "{wrong:?}: {left:?}");
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_asked() {
        let mut console = console("7\n");
        console.terminal = false;
        let line = ["mcp", "install", "--client", "claude"];
        let left = console.perform(&line);
        assert!(left.err.contains("use `--typed N`"), "{left:?}");
        let left = console.perform(&[&line[..], &["--typed", "7", "--print"]].concat());
        assert!(left.err.contains("mcp: {typed: 7}"), "{left:?}");
        assert!(!left.out.contains("typed"), "{left:?}");
        // Without a workspace nothing runs, so there is nothing to offer.
        std::fs::remove_dir(console.path().join("workers")).unwrap();
        let left = console.perform(&line);
        assert!(left.code == 0 && !left.err.contains("typed"), "{left:?}");
    }
}
