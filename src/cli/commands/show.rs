//! `show RUN`

use crate::cli::exit::Exit;
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_named, zone_of};
use crate::cli::suggest;
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let detail = control.run(&run).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&detail, "run");
    } else {
        let zone = zone_of(control.as_ref())?;
        report::full(&mut session.io.out, &detail, zone);
    }
    Ok(Exit::Ok)
}
