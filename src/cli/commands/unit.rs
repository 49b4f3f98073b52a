//! `daemon unit`, `daemon install`

mod text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::init::unwritable;
use crate::cli::exit::Exit;
use crate::cli::globals::Site;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{DIM, GOOD, Line};
use crate::cli::repository;
use crate::cli::session::Session;
use crate::cli::whole_file::write_whole;
use crate::model::{Diagnostic, Kind};
use text::{SERVICE, SOCKET, UnitPaths};

/// Where units of the system lie that an administrator writes.
const OF_SYSTEM: &str = "/etc/systemd/system";

/// Directories that the system unit hides or replaces (`ProtectHome=`, `PrivateTmp=`).
const HIDDEN: [(&str, &str); 5] = [
    ("/home", "ProtectHome=yes"),
    ("/root", "ProtectHome=yes"),
    ("/run/user", "ProtectHome=yes"),
    ("/tmp", "PrivateTmp=yes"),
    ("/var/tmp", "PrivateTmp=yes"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print a systemd unit with this program and this workspace
    Print(PrintArgs),
    /// Install the systemd units
    Install(InstallArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PrintArgs {
    #[command(flatten)]
    whose: Whose,
    /// Print the unit of the control socket instead of the service
    #[arg(long, conflicts_with = "user")]
    socket_unit: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    whose: Whose,
    /// Install the unit of the control socket as well, which starts the service at the first connection
    #[arg(long, conflicts_with = "user")]
    socket_unit: bool,
    /// Replace units that differ
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
struct Whose {
    /// Use the systemd user manager instead of the system manager
    #[arg(long)]
    user: bool,
    /// Account that the system service runs as
    #[arg(
        long,
        value_name = "NAME",
        default_value = "workerctl",
        value_parser = account,
        conflicts_with = "user"
    )]
    run_as: String,
}

/// A name as systemd takes it for `User=`.
fn account(given: &str) -> Result<String, &'static str> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let valid = given.bytes().all(safe) && !given.starts_with('-');
    if valid && (1..=31).contains(&given.len()) {
        Ok(given.to_owned())
    } else {
        Err("name an account: letters, digits, `_` and `-`")
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    match &args.what {
        What::Print(args) => print(session, args),
        What::Install(args) => write_units(session, args),
    }
}

/// `daemon unit`
pub(crate) fn print(session: &mut Session<'_>, args: &PrintArgs) -> Result<Exit, Diagnostic> {
    let places = places(&session.site()?, &args.whose)?;
    let text = if args.socket_unit {
        text::socket(&places)
    } else {
        text::service(&places)?
    };
    session.io.out.raw(&text);
    if let Some(hidden) = hidden(&places) {
        diagnostic::warning(&mut session.io.err, &hidden.message);
        for hint in &hidden.hints {
            diagnostic::hint(&mut session.io.err, hint);
        }
    }
    Ok(Exit::Ok)
}

/// `daemon install`
pub(crate) fn write_units(
    session: &mut Session<'_>,
    args: &InstallArgs,
) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let places = places(&site, &args.whose)?;
    if let Some(hidden) = hidden(&places) {
        return Err(hidden);
    }
    let mut units = vec![(SERVICE, text::service(&places)?)];
    if args.socket_unit {
        units.push((SOCKET, text::socket(&places)));
    }
    let installed = install(&directory(&site, &args.whose)?, &units, args.force)?;
    show(session, &places, &installed, args.socket_unit);
    Ok(Exit::Ok)
}

fn places(site: &Site, whose: &Whose) -> Result<UnitPaths, Diagnostic> {
    let program = std::env::current_exe().map_err(|error| {
        let text = format!("the path of this program is not known: {error}");
        Diagnostic::new(Kind::Internal, "no_program", text)
    })?;
    // A service keeps its state where the unit says, unless something else was asked for.
    let own = site.workspace.join("state");
    let state_dir = Some(site.state_dir.clone()).filter(|asked| *asked != own);
    Ok(UnitPaths {
        program,
        workspace: site.workspace.clone(),
        state_dir,
        repository: repository::outside(&site.workspace),
        account: (!whose.user).then(|| whose.run_as.clone()),
    })
}

/// What the system unit would not see.
fn hidden(places: &UnitPaths) -> Option<Diagnostic> {
    places.account.as_ref()?;
    let below = |path: &Path| HIDDEN.iter().find(|(place, _)| path.starts_with(place));
    let told = |path: &Path, line: &str, hint: String| {
        let text = format!(
            "the system service cannot access `{}`: its unit sets `{line}`",
            path.display()
        );
        Diagnostic::new(Kind::Blocked, "hidden", text).hint(hint)
    };
    if let Some((_, line)) = below(&places.workspace) {
        let hint = "clone the workspace below `/srv`, or install a user service with `--user`";
        return Some(told(&places.workspace, line, hint.to_owned()));
    }
    let (_, line) = below(&places.program)?;
    let hint = format!(
        "`sudo install -m 0755 '{}' /usr/local/bin/workerctl`, then call that one",
        places.program.display()
    );
    Some(told(&places.program, line, hint))
}

fn directory(site: &Site, whose: &Whose) -> Result<PathBuf, Diagnostic> {
    if !whose.user {
        return Ok(PathBuf::from(OF_SYSTEM));
    }
    let below = |variable: &str, rest: &str| {
        let value = site.environment.get(variable)?;
        Some(Path::new(value).join(rest)).filter(|path| path.is_absolute())
    };
    below("XDG_CONFIG_HOME", "systemd/user")
        .or_else(|| below("HOME", ".config/systemd/user"))
        .ok_or_else(|| {
            let text = "the directory of your systemd units is unknown: neither `HOME` nor `XDG_CONFIG_HOME` is set";
            Diagnostic::new(Kind::Usage, "no_home", text).hint("set `HOME`")
        })
}

/// A unit, and whether it was written or was there already.
struct Installed {
    path: PathBuf,
    written: bool,
}

/// Writes units; none where one that differs would be replaced without `force`.
fn install(
    directory: &Path,
    units: &[(&str, String)],
    force: bool,
) -> Result<Vec<Installed>, Diagnostic> {
    let mut installed = Vec::new();
    for (name, text) in units {
        let path = directory.join(name);
        let written = match fs::read(&path) {
            Ok(found) if found == text.as_bytes() => false,
            Ok(_) if !force => return Err(differs(&path)),
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere is somebody's as well.
                if fs::symlink_metadata(&path).is_ok() && !force {
                    return Err(differs(&path));
                }
                true
            }
            Err(error) => return Err(refused(&path, &error)),
        };
        installed.push(Installed { path, written });
    }
    for (one, (_, text)) in installed.iter().zip(units).filter(|(one, _)| one.written) {
        write_whole(&one.path, text, true).map_err(|error| refused(&one.path, &error))?;
    }
    Ok(installed)
}

fn differs(path: &Path) -> Diagnostic {
    let text = format!("`{}` already exists with different content", path.display());
    Diagnostic::new(Kind::Conflict, "unit_differs", text)
        .hint("`workerctl daemon unit` shows what would be written; `--force` replaces it. Changes of your own belong into `systemctl edit workerctl`")
}

fn refused(path: &Path, error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Diagnostic {
            kind: Kind::Blocked,
            ..unwritable(path, error)
        }
        .hint("run it as root, or install a service of yours with `--user`"),
        _ => unwritable(path, error),
    }
}

fn show(session: &mut Session<'_>, places: &UnitPaths, installed: &[Installed], socket_unit: bool) {
    let next = next(places, socket_unit);
    let shown = |written: bool| -> Vec<String> {
        let chosen = installed.iter().filter(|one| one.written == written);
        chosen.map(|one| one.path.display().to_string()).collect()
    };
    let (written, kept) = (shown(true), shown(false));
    if session.json() {
        let told = json!({"written": written, "kept": kept, "next": next});
        session.print_json(&told, "unit");
        return;
    }
    let err = &mut session.io.err;
    for path in &written {
        err.line(Line::of(GOOD, "  written  ").text(path));
    }
    for path in &kept {
        err.line(Line::of(DIM, "  kept     ").text(path));
    }
    err.line(Line::of(DIM, "  next:"));
    for command in &next {
        session.io.out.line(Line::from(command.as_str()));
    }
}

/// What is to be done until the service runs, as commands.
fn next(places: &UnitPaths, socket_unit: bool) -> Vec<String> {
    let Some(account) = &places.account else {
        return vec![
            "systemctl --user daemon-reload".to_owned(),
            "systemctl --user enable --now workerctl".to_owned(),
            "loginctl enable-linger".to_owned(),
        ];
    };
    let mut next = Vec::new();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_known = accounts
        .lines()
        .any(|line| line.split(':').next() == Some(account));
    if !is_known {
        let home = "--home-dir /var/lib/workerctl --shell /usr/sbin/nologin";
        next.push(format!("useradd --system {home} {account}"));
    }
    next.push("systemctl daemon-reload".to_owned());
    next.push("systemctl enable --now workerctl".to_owned());
    if socket_unit {
        next.push("systemctl enable --now workerctl.socket".to_owned());
    }
    next
}
