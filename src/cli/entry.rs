//! From the process to a command and back to an exit code: the only place that touches the process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::engine::RealEngines;
use super::exit::{Ending, Exit};
use super::globals::ColorChoice;
use super::interrupts::ProcessInterrupts;
use super::io::{Io, Stream};
use super::render::diagnostic;
use super::session::Session;
use super::{Cli, completion, perform, usage};
use crate::clock::{SystemClock, zones};
use crate::model::{Diagnostic, Kind};

/// Columns where the terminal does not tell its width.
const WIDTH: usize = 80;

/// Keeps a mask that would take our own files from us to what it hides from others.
fn stay_able_to_use_own_files() {
    use rustix::fs::Mode;
    let mask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(mask & (Mode::RWXG | Mode::RWXO));
}

/// Performs the command line of this process.
pub fn main() -> ExitCode {
    stay_able_to_use_own_files();
    zones::use_those_of_the_machine();
    let args: Vec<OsString> = std::env::args_os().collect();
    if completion::answered(&args) {
        return ExitCode::SUCCESS;
    }
    let environment = crate::daemon::process_environment();
    let stdout_terminal = io::stdout().is_terminal();
    let stderr_terminal = io::stderr().is_terminal();
    let width = terminal_size::terminal_size()
        .map_or(WIDTH, |(terminal_size::Width(width), _)| usize::from(width));
    let stdout = io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let mut err = io::stderr();
    let mut input = io::stdin();
    let exit = {
        let mut io = Io {
            out: Stream::new(&mut out, stdout_terminal, false)
                .on(stdout.as_fd())
                .of_width(width),
            err: Stream::new(&mut err, stderr_terminal, false).of_width(width),
            input: &mut input,
            can_ask: io::stdin().is_terminal() && stderr_terminal,
            width,
        };
        performed(&args, &environment, &mut io)
    };
    // What could not be written was told; a reader that went away needs no more.
    let _ = out.flush();
    ExitCode::from(exit.code())
}

fn performed(args: &[OsString], environment: &BTreeMap<String, String>, io: &mut Io<'_>) -> Exit {
    let args = &versions(args);
    let cli = usage::command()
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match cli {
        Ok(cli) => cli,
        Err(told) => return misunderstood(&advised(told, args), args, environment, io),
    };
    io.out.color = wants_color(cli.globals.color, io.out.is_terminal, environment);
    io.err.color = wants_color(cli.globals.color, io.err.is_terminal, environment);
    within(&cli, environment, io)
}

/// Replaces `--version --json`, which clap would answer with text, by the command that prints all versions.
fn versions(args: &[OsString]) -> Vec<OsString> {
    let is_version = |arg: &OsString| arg == "--version" || arg == "-V";
    let options = args.get(1..).unwrap_or_default();
    let is_asked = options.len() == 2
        && options.iter().any(is_version)
        && options.iter().any(|arg| arg == "--json");
    if is_asked {
        let program = args.iter().take(1).cloned();
        program
            .chain(["version", "--json"].map(OsString::from))
            .collect()
    } else {
        args.to_vec()
    }
}

fn within(cli: &Cli, environment: &BTreeMap<String, String>, io: &mut Io<'_>) -> Exit {
    let cwd = std::env::current_dir();
    let clock = SystemClock::default();
    let engines = RealEngines {
        verbose: cli.globals.verbose,
    };
    let mut session = Session {
        io: Io {
            out: io.out.reborrow(),
            err: io.err.reborrow(),
            input: &mut *io.input,
            can_ask: io.can_ask,
            width: io.width,
        },
        globals: &cli.globals,
        environment,
        cwd: cwd.as_deref().unwrap_or(std::path::Path::new("/")),
        engines: &engines,
        interrupts: &ProcessInterrupts,
        clock: &clock,
    };
    if let Err(error) = &cwd {
        let gone = format!("the working directory cannot be found: {error}");
        session.print_diagnostic(&Diagnostic::new(Kind::Internal, "no_cwd", gone));
        return Exit::Failed;
    }
    concluded(&mut session, &cli.command)
}

/// Performs a command and tells what went wrong.
pub(super) fn concluded(session: &mut Session<'_>, command: &super::Command) -> Exit {
    let exit = match perform(session, command) {
        Ok(exit) => exit,
        Err(refused) => {
            session.io.out.flush();
            session.print_diagnostic(&refused);
            Exit::of(Ending::Refused(refused.kind))
        }
    };
    session.io.out.flush();
    session.io.err.flush();
    let Some(error) = session.io.out.failure() else {
        return exit;
    };
    let message = format!("standard output cannot be written: {error}");
    session.print_diagnostic(&Diagnostic::new(Kind::Internal, "output_failed", message));
    if exit == Exit::Ok { Exit::Failed } else { exit }
}

/// Commands of other programs, each with ours.
const FOREIGN: [(&[&str], &str); 10] = [
    (
        &["ls", "list", "history"],
        "`workerctl runs` lists runs, `workerctl skills` skills, `workerctl schedule` schedules",
    ),
    (
        &["ps", "top"],
        "`workerctl status` shows active runs, `workerctl runs` all runs",
    ),
    (
        &["validate", "lint", "verify", "test"],
        "`workerctl check` checks definitions",
    ),
    (
        &["start", "exec", "execute", "invoke", "submit", "trigger"],
        "`workerctl run SKILL` runs a skill, `workerctl daemon` starts the daemon",
    ),
    (
        &["stop", "kill", "abort"],
        "`workerctl cancel RUN` cancels a run, `workerctl daemon drain` stops the daemon",
    ),
    (
        &["restart", "rerun", "replay"],
        "`workerctl retry RUN` runs again with the same inputs",
    ),
    (
        &["log", "tail", "output"],
        "`workerctl logs RUN` prints the log of a run",
    ),
    (
        &["serve", "up", "service", "server"],
        "`workerctl daemon` starts the daemon, `workerctl web` opens the web UI",
    ),
    (
        &["info", "describe", "inspect", "get"],
        "`workerctl show RUN` shows a run, `workerctl skill show SKILL` a skill",
    ),
    (
        &["merge", "apply", "publish"],
        "`workerctl land RUN` lands a kept commit, `workerctl approve RUN` approves a result",
    ),
];

/// Replaces clap's proposal to pass an unknown option as a value, which only inputs are, and proposes commands for those
/// of other programs.
fn advised(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand {
        let given = match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(given)) => given.as_str(),
            _ => "",
        };
        if let Some((_, tip)) = FOREIGN.iter().find(|(words, _)| words.contains(&given)) {
            error.remove(ContextKind::SuggestedSubcommand);
            let tips = ContextValue::StyledStrs(vec![(*tip).into()]);
            error.insert(ContextKind::Suggested, tips);
        }
        return error;
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let is_value = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips
            .iter()
            .any(|tip| tip.to_string().contains("as a value")),
        _ => false,
    };
    if is_value {
        error.remove(ContextKind::Suggested);
    }
    let mut words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    let takes_inputs = words.any(|word| matches!(word, "run" | "render"));
    if takes_inputs && error.get(ContextKind::SuggestedArg).is_none() {
        let pair = words
            .map(|word| word.trim_start_matches('-'))
            .find(|word| word.contains('='))
            .unwrap_or("NAME=VALUE");
        let tip = format!("inputs are given as `{pair}`");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Help and version are data; everything else that clap tells is a refusal.
fn misunderstood(
    told: &clap::Error,
    args: &[OsString],
    environment: &BTreeMap<String, String>,
    io: &mut Io<'_>,
) -> Exit {
    let text = told.render();
    let styled = |terminal| {
        if wants_color(ColorChoice::Auto, terminal, environment) {
            text.ansi().to_string()
        } else {
            text.to_string()
        }
    };
    if !told.use_stderr() {
        let help = styled(io.out.is_terminal);
        io.out.raw(&help);
        io.out.flush();
        return Exit::Ok;
    }
    if args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json")
    {
        let message = text.to_string();
        let message = message.trim().trim_start_matches("error: ");
        diagnostic::print_json(&mut io.err, &Diagnostic::new(Kind::Usage, "usage", message));
    } else {
        let refusal = styled(io.err.is_terminal);
        io.err.raw(&refusal);
    }
    Exit::Usage
}

/// Whether a stream is to be coloured: what is asked for, else `NO_COLOR`, `TERM` and the terminal.
pub(super) fn wants_color(
    asked: ColorChoice,
    terminal: bool,
    environment: &BTreeMap<String, String>,
) -> bool {
    match asked {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let refused = environment
                .get("NO_COLOR")
                .is_some_and(|set| !set.is_empty());
            let dumb = environment.get("TERM").is_some_and(|term| term == "dumb");
            terminal && !refused && !dumb
        }
    }
}
