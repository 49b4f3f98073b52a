//! `version`

use serde_json::json;

use crate::cli::exit::Exit;
use crate::cli::maintenance::{MACHINE_VERSION, STORE_VERSION};
use crate::cli::render::json::JSON_VERSION;
use crate::cli::session::Session;
use crate::clock::zones;
use crate::protocol::API_VERSION;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Exit {
    let Args {} = args;
    let data = zones::data();
    let program = env!("CARGO_PKG_VERSION");
    if session.json() {
        let versions = json!({
            "version": program,
            "protocol": API_VERSION,
            "store": STORE_VERSION,
            "machine": MACHINE_VERSION,
            "json": JSON_VERSION,
            "zones": {"version": data.version, "directory": data.directory},
        });
        session.print_json(&versions, "version");
    } else {
        let out = &mut session.io.out;
        out.line(format!("workerctl {program}"));
        out.line(format!("protocol  {API_VERSION}"));
        out.line(format!("store     {STORE_VERSION}"));
        out.line(format!("machine   {MACHINE_VERSION}"));
        out.line(format!("json      {JSON_VERSION}"));
        let version = data.version.as_deref().unwrap_or("of an unknown version");
        let of = match &data.directory {
            Some(directory) => format!("of {}", directory.display()),
            None => "built in, for the machine has none".to_owned(),
        };
        out.line(format!("zones     {version} {of}"));
    }
    Exit::Ok
}
