//! `schema worker|skill|config`

use crate::cli::definitions::{Written, json_schema};
use crate::cli::exit::Exit;
use crate::cli::render::json;
use crate::cli::session::Session;
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind of file
    #[arg(value_enum)]
    of: Written,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    // A schema is a document of its own: an editor could not read it with our version in front.
    let text = serde_json::to_string_pretty(&json_schema(args.of)).map_err(|error| {
        Diagnostic::new(
            crate::model::Kind::Internal,
            "schema_unprintable",
            error.to_string(),
        )
    })?;
    session.io.out.raw(&(json::escaped(&text) + "\n"));
    Ok(Exit::Ok)
}
