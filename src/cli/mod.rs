//! The command line: one file per command, rendering, exit codes.
//!
//! Commands see an engine only as [`Control`](crate::protocol::Control); what they need of other rooms
//! goes through one file each: `engine` (daemon), `definitions` (catalog), `maintenance` (store),
//! `repository` (git). Data goes to standard output, everything else to standard error.

mod browser;
mod commands;
mod completion;
mod definitions;
mod engine;
mod entry;
mod examples;
mod exit;
#[cfg(test)]
mod fake;
mod follow;
mod globals;
mod interrupts;
mod invocation;
mod io;
mod maintenance;
mod render;
mod repository;
mod session;
mod signals;
mod suggest;
mod usage;
mod whole_file;

pub use entry::main;
pub use signals::handle_ignored;

use clap::{Parser, Subcommand};

use commands::{
    approve, cancel, check, completions, config, daemon, demo, deny, diff, discard, doctor, drain,
    init, land, logs, man, mcp, metrics, models, new, notify, reload, render as rendering, resolve,
    retry, run, runs, schedule, schema, show, skill, skills, stats, status, store, threads, unit,
    version, wait, web, why, workers,
};
use exit::Exit;
use globals::Globals;
use session::Session;

use crate::model::Diagnostic;

/// Run workers kept in a git repository: validated, verified, committed exactly once
#[derive(Debug, Parser)]
#[command(
    name = "workerctl",
    version,
    max_term_width = 100,
    propagate_version = true
)]
#[command(
    after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 invalid definition, \
    5 verification failed, 6 blocked, 7 unreachable, 8 conflict or busy, 9 outcome unknown, \
    124 timed out, 130 interrupted"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a workspace with example workers
    Init(init::Args),
    /// Make a workspace of its own, run an example in it and show the commit
    Demo(demo::Args),
    /// Write a worker or a skill to start from
    New(new::Args),
    /// Read all definitions and list what is wrong with them
    Check(check::Args),
    /// Show the configuration, each value with its origin
    Config(config::Args),
    /// Show exactly what a run would execute
    Render(rendering::Args),
    /// Run a skill and show what happens
    ///
    /// If you follow the run to its end in a terminal, `notify` does not report its failure or success, unless
    /// `notify: {foreground: true}` is set.
    Run(run::Args),
    /// List runs, newest first
    Runs(runs::Args),
    /// Say how a skill or schedule does: its last run, what is next, and what is in the way
    Why(why::Args),
    /// Show one run in full
    Show(show::Args),
    /// Print the log of a run
    Logs(logs::Args),
    /// List the threads of runs, show one, or verify them
    Threads(threads::Args),
    /// End a run
    Cancel(cancel::Args),
    /// Run again what a run did, with the same inputs
    Retry(retry::Args),
    /// Approve what a run waits with, and follow it to its end
    Approve(approve::Args),
    /// Refuse what a run waits with
    Deny(deny::Args),
    /// Settle a run whose outcome is unknown
    Resolve(resolve::Args),
    /// Land the kept commit of a run on its branch
    Land(land::Args),
    /// Drop the kept commit of a run that has not landed
    Discard(discard::Args),
    /// Wait for a run to end
    Wait(wait::Args),
    /// Show what a run changed
    Diff(diff::Args),
    /// List workers, or show one
    Workers(workers::Args),
    /// List skills of workers and of roots
    Skills(skills::Args),
    /// Show, check, convert or trust one skill
    Skill(skill::Args),
    /// List the configured models, or test one
    Models(models::Args),
    /// Send a test notice to those whom `notify` tells how runs went
    Notify(notify::Args),
    /// Show run counts, success rates, durations and costs by skill, worker, schedule or day
    Stats(stats::Args),
    /// Print metrics in the text format of Prometheus, or write them to a file
    Metrics(metrics::Args),
    /// Show what the engine is doing
    Status(status::Args),
    /// Show schedules and what became of their slots
    Schedule(schedule::Args),
    /// Diagnose problems that would keep runs from succeeding
    Doctor(doctor::Args),
    /// Run the workspace daemon in the foreground
    Daemon(daemon::Args),
    /// Print or install the systemd units of the daemon
    Unit(unit::Args),
    /// Open the web page of the daemon in a browser
    Web(web::Args),
    /// Serve skills and runs to a Model Context Protocol client over standard input and output
    Mcp(mcp::Args),
    /// Make the daemon read definitions again
    Reload(reload::Args),
    /// Let the daemon finish what runs, then end it
    Drain(drain::Args),
    /// Maintain the store
    Store(store::Args),
    /// Print the shell completions for commands, skills and runs
    Completions(completions::Args),
    /// Print or write manual pages
    Man(man::Args),
    /// Print the JSON Schema of definition files
    Schema(schema::Args),
    /// Print the versions of the program and of its formats
    Version(version::Args),
}

/// Performs a command.
fn perform(session: &mut Session<'_>, command: &Command) -> Result<Exit, Diagnostic> {
    match command {
        Command::Init(args) => init::perform(session, args),
        Command::Demo(args) => demo::perform(session, args),
        Command::New(args) => new::perform(session, args),
        Command::Check(args) => check::perform(session, args),
        Command::Config(args) => config::perform(session, args),
        Command::Render(args) => rendering::perform(session, args),
        Command::Run(args) => run::perform(session, args),
        Command::Runs(args) => runs::perform(session, args),
        Command::Why(args) => why::perform(session, args),
        Command::Show(args) => show::perform(session, args),
        Command::Logs(args) => logs::perform(session, args),
        Command::Threads(args) => threads::perform(session, args),
        Command::Cancel(args) => cancel::perform(session, args),
        Command::Retry(args) => retry::perform(session, args),
        Command::Approve(args) => approve::perform(session, args),
        Command::Deny(args) => deny::perform(session, args),
        Command::Resolve(args) => resolve::perform(session, args),
        Command::Land(args) => land::perform(session, args),
        Command::Discard(args) => discard::perform(session, args),
        Command::Wait(args) => wait::perform(session, args),
        Command::Diff(args) => diff::perform(session, args),
        Command::Workers(args) => workers::perform(session, args),
        Command::Skills(args) => skills::perform(session, args),
        Command::Skill(args) => skill::perform(session, args),
        Command::Models(args) => models::perform(session, args),
        Command::Notify(args) => notify::perform(session, args),
        Command::Metrics(args) => metrics::perform(session, args),
        Command::Stats(args) => stats::perform(session, args),
        Command::Status(args) => status::perform(session, args),
        Command::Schedule(args) => schedule::perform(session, args),
        Command::Doctor(args) => doctor::perform(session, args),
        Command::Daemon(args) => daemon::perform(session, args),
        Command::Unit(args) => unit::perform(session, args),
        Command::Web(args) => web::perform(session, args),
        Command::Mcp(args) => mcp::perform(session, args),
        Command::Reload(args) => reload::perform(session, args),
        Command::Drain(args) => drain::perform(session, args),
        Command::Store(args) => store::perform(session, args),
        Command::Completions(args) => completions::perform(session, args),
        Command::Man(args) => man::perform(session, args),
        Command::Schema(args) => schema::perform(session, args),
        Command::Version(args) => Ok(version::perform(session, args)),
    }
}
