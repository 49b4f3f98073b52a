//! The Model Context Protocol: skills and runs for clients that speak it.
//!
//! [`serve`] speaks over two streams until the input ends. The one place that names the protocol's SDK;
//! it sees an engine only as [`Control`](crate::protocol::Control), found or hosted when it is first needed.

use workerctl_catalog as catalog;
use workerctl_core::{model, protocol, thread};
use workerctl_engine as engine;

mod answer;
mod arguments;
mod asking;
mod batch;
mod calls;
mod consents;
mod cursor;
mod engines;
mod extension;
mod finding;
mod http;
mod input_schema;
mod kinds;
mod listing;
mod loading;
mod message;
mod offered;
mod page;
mod prompts;
mod refreshing;
mod resources;
mod results;
mod running;
mod server;
mod skills;
mod threads;
mod tools;
mod typed;
mod unwritten;
mod wave;
mod wire;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::service::serve_directly;
use tokio::signal::unix::{SignalKind, signal};

use crate::model::{Diagnostic, Kind};
use engines::Engines;
use server::Server;
use wire::Wire;

pub use engines::Connect;
pub use http::{
    Answer, Door, HttpOptions, HttpServer, PATH, Token, bearer, names_this_machine, only,
    random_secret,
};

/// What is served, and from where.
pub struct Options {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// Where engines come from.
    pub connect: Connect,
}

/// Threads for calls that wait for files or an engine.
const BLOCKING_THREADS_MAX: usize = 512;

/// Speaks the protocol, one message a line, until the input ends or the process is told to end. Runs of an
/// engine in this process are waited for then.
pub fn serve(
    options: Options,
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
) -> Result<(), Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()
        .map_err(|error| failed(&error))?;
    let engines = Arc::new(Engines::new(options.connect));
    let wire = Wire::open(input, output).map_err(|error| failed(&error))?;
    let unwritten = wire.outgoing().unwritten();
    let ended = wire.ended();
    let definitions = refreshing::Source {
        workspace: options.workspace,
        state_dir: options.state_dir.clone(),
        environment: options.environment,
    };
    let spoken = runtime.block_on(async {
        let skills = refreshing::start(definitions, Arc::clone(&engines));
        let server = Server::new(
            skills,
            Arc::clone(&engines),
            &options.state_dir,
            Arc::clone(&ended),
        )
        .answering_within(Arc::clone(&unwritten));
        // The wire holds requests to the handshake, so that one that comes late is honoured too.
        let speaking = async {
            let running = serve_directly(server, wire, None);
            let ended = running.waiting().await;
            ended.map(drop).map_err(|error| failed(&error))
        };
        tokio::select! {
            spoken = speaking => spoken,
            told = told_to_end() => {
                ended.store(true, Ordering::Release);
                told
            }
        }
    });
    // What was answered last must be out before the process ends; runs in this process come to their end.
    unwritten.flush();
    runtime.shutdown_background();
    engines.close();
    spoken
}

async fn told_to_end() -> Result<(), Diagnostic> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| failed(&error))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| failed(&error))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn failed(error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic::new(
        Kind::Internal,
        "mcp",
        format!(
            "the Model Context Protocol server failed: {}",
            crate::model::diagnostic::chain(error)
        ),
    )
}
