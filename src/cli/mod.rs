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
#[cfg(test)]
mod reference;
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
    explain, init, land, logs, man, mcp, metrics, models, new, notify, reload, render as rendering,
    resolve, retry, run, runs, schedule, schema, show, skill, stats, status, store, threads, unit,
    version, wait, web, why, workers,
};
use exit::Exit;
use globals::Globals;
use session::Session;

use crate::model::Diagnostic;

/// Run workers from a git repository unattended: validated, verified, committed exactly once
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

/// Commands in the order of the help, which [`usage`] divides into groups. Those at its end are earlier names.
#[derive(Debug, Subcommand)]
enum Command {
    /// Create a workspace with example workers
    Init(init::Args),
    /// Create a new workspace, run an example in it, and show the commit
    Demo(demo::Args),
    /// Create a worker or a skill from a template
    New(new::Args),
    /// Check all definitions
    Check(check::Args),
    /// Diagnose problems that keep runs from succeeding
    Doctor(doctor::Args),
    /// Explain the code of a problem or an error
    Explain(explain::Args),
    /// Run a skill and show its progress
    ///
    /// If you follow the run to its end in a terminal, `notify` does not report its failure or success, unless
    /// `notify: {foreground: true}` is set.
    Run(run::Args),
    /// List runs, newest first
    Runs(runs::Args),
    /// Show a run
    Show(show::Args),
    /// Print the log of a run
    Logs(logs::Args),
    /// Wait until a run ends
    Wait(wait::Args),
    /// Show the changes of a run
    Diff(diff::Args),
    /// Cancel a run
    Cancel(cancel::Args),
    /// Run again with the same inputs
    Retry(retry::Args),
    /// Approve a pending run, and follow it to its end
    Approve(approve::Args),
    /// Deny a pending run
    Deny(deny::Args),
    /// Record the outcome of a run whose outcome is unknown
    Resolve(resolve::Args),
    /// Land the kept commit of a run on its branch
    Land(land::Args),
    /// Delete the kept commit of a run that has not landed
    Discard(discard::Args),
    /// List, show or verify the threads of runs
    #[command(visible_alias = "threads")]
    Thread(threads::Args),
    /// Show run counts, success rates, durations and costs
    Stats(stats::Args),
    /// List workers, or show one
    #[command(visible_alias = "workers")]
    Worker(workers::Args),
    /// List, show, validate, convert or trust skills
    #[command(visible_alias = "skills")]
    Skill(skill::Args),
    /// List models, or test one
    #[command(visible_alias = "models")]
    Model(models::Args),
    /// Show the configuration and the origin of each value
    Config(config::Args),
    /// Print the JSON Schemas of definition files
    Schema(schema::Args),
    /// List, preview, pause, trigger or backfill schedules
    Schedule(schedule::Args),
    /// Explain the current state of a skill or schedule
    Why(why::Args),
    /// Show the state of the engine
    Status(status::Args),
    /// Run and control the workspace daemon
    Daemon(daemon::Args),
    /// Open the web UI in a browser
    Web(web::Args),
    /// Serve skills to an MCP client over standard input and output
    Mcp(mcp::Args),
    /// Send a test notification
    Notify(notify::Args),
    /// Print Prometheus metrics, or write them to a file
    Metrics(metrics::Args),
    /// Inspect, verify or repair the store
    Store(store::Args),
    /// Print shell completions
    Completions(completions::Args),
    /// Print or write manual pages
    Man(man::Args),
    #[command(hide = true)]
    Render(rendering::Args),
    #[command(hide = true)]
    Reload(reload::Args),
    #[command(hide = true)]
    Drain(drain::Args),
    #[command(hide = true)]
    Unit(unit::Args),
    #[command(hide = true)]
    Version(version::Args),
}

/// Performs a command.
fn perform(session: &mut Session<'_>, command: &Command) -> Result<Exit, Diagnostic> {
    match command {
        Command::Init(args) => init::perform(session, args),
        Command::Demo(args) => demo::perform(session, args),
        Command::New(args) => new::perform(session, args),
        Command::Check(args) => check::perform(session, args),
        Command::Explain(args) => explain::perform(session, args),
        Command::Config(args) => config::perform(session, args),
        Command::Render(args) => rendering::perform(session, args),
        Command::Run(args) => run::perform(session, args),
        Command::Runs(args) => runs::perform(session, args),
        Command::Why(args) => why::perform(session, args),
        Command::Show(args) => show::perform(session, args),
        Command::Logs(args) => logs::perform(session, args),
        Command::Thread(args) => threads::perform(session, args),
        Command::Cancel(args) => cancel::perform(session, args),
        Command::Retry(args) => retry::perform(session, args),
        Command::Approve(args) => approve::perform(session, args),
        Command::Deny(args) => deny::perform(session, args),
        Command::Resolve(args) => resolve::perform(session, args),
        Command::Land(args) => land::perform(session, args),
        Command::Discard(args) => discard::perform(session, args),
        Command::Wait(args) => wait::perform(session, args),
        Command::Diff(args) => diff::perform(session, args),
        Command::Worker(args) => workers::perform(session, args),
        Command::Skill(args) => skill::perform(session, args),
        Command::Model(args) => models::perform(session, args),
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
