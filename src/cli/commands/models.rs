//! `model list|test`

use std::fmt::Write;

use serde_json::json;

use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BAD, BOLD, DIM, GOOD, Line};
use crate::cli::session::{Accept, Session};
use crate::model::agent::{CONFIGURE_A_MODEL, DEFAULT_MODEL, Model};
use crate::model::{Diagnostic, Kind};
use crate::protocol::{Probe, ProbeRequest};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the configured models (the default)
    List {},
    /// Request one token from a model, to test its address, key and name
    ///
    /// The engine sends the request, with its own keys and network.
    Test {
        /// Alias of the model
        #[arg(default_value = DEFAULT_MODEL)]
        alias: String,
    },
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    match &args.what {
        None | Some(What::List {}) => list(session),
        Some(What::Test { alias }) => test(session, alias),
    }
}

/// Shows what came of something that was tried.
pub(super) fn print(session: &mut Session<'_>, probe: &Probe) {
    let mark = if probe.ok {
        Line::of(GOOD, "✓")
    } else {
        Line::of(BAD, "✗")
    };
    let line = mark.text(format!(" {}", probe.message));
    session.io.out.line(line);
    for hint in &probe.hints {
        diagnostic::hint(&mut session.io.err, hint);
    }
}

fn list(session: &mut Session<'_>) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let definitions = Definitions::load_with_home(&site.workspace, session.environment);
    let models = &definitions.config().models;
    if session.json() {
        let shown: Vec<_> = models.values().map(shown).collect();
        session.print_json(&shown, "models");
        return Ok(Exit::Ok);
    }
    if models.is_empty() {
        session.io.err.line("no models are configured".to_owned());
        diagnostic::hint(&mut session.io.err, CONFIGURE_A_MODEL);
    }
    for model in models.values() {
        let mut more = format!("  {}  {}", model.provider.name(), model.name);
        if let Some(url) = &model.base_url {
            let _ = write!(more, "  {url}");
        }
        if let Some(key) = &model.key {
            let _ = write!(more, "  {key}");
        }
        let line = Line::of(BOLD, model.alias.clone()).styled(DIM, more);
        session.io.out.line(line);
    }
    Ok(Exit::Ok)
}

fn shown(model: &Model) -> serde_json::Value {
    json!({
        "alias": model.alias,
        "provider": model.provider.name(),
        "model": model.name,
        "base_url": model.base_url,
        "key": model.key.as_ref().map(ToString::to_string),
        "max_output_tokens": model.max_output_tokens,
        "has_prices": model.prices.is_some(),
    })
}

fn test(session: &mut Session<'_>, alias: &str) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let request = ProbeRequest {
        model: Some(alias.to_owned()),
        ..ProbeRequest::default()
    };
    let probes = control.probe(&request)?;
    let Some(probe) = probes.into_iter().next() else {
        let message = "the engine answers nothing";
        return Err(Diagnostic::new(Kind::Internal, "no_answer", message));
    };
    let works = probe.ok;
    if session.json() {
        session.print_json(&probe, "model");
    } else {
        print(session, &probe);
    }
    Ok(if works { Exit::Ok } else { Exit::Failed })
}
