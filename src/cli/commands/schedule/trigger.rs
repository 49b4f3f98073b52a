//! `schedule trigger`

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

use super::slots::table_of;
use super::{schedule_meant, zone_of_schedule};
use crate::cli::exit::Exit;
use crate::cli::session::{Accept, Session};
use crate::model::schedule::Overlap;
use crate::model::{Diagnostic, Timestamp, Zone};
use crate::protocol::{Control, PolicyName, SlotView, TriggerRequest};

/// How a person's run differs from a slot.
#[derive(Debug, clap::Args)]
pub(super) struct TriggerArgs {
    /// Rule if an earlier run of the schedule is active [default: the rule of the schedule]
    #[arg(long, value_name = "RULE", value_parser = named(Overlap::ALL.map(Overlap::name)).try_map(|name| read::<Overlap>(&name)))]
    overlap: Option<Overlap>,
    /// Policies to override
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = named(PolicyName::ALL.map(PolicyName::name)).try_map(|name| read::<PolicyName>(&name)))]
    despite: Vec<PolicyName>,
}

fn named<const N: usize>(names: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

/// Reads a name as definitions and the API write it.
fn read<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    serde_json::from_value(name.into()).map_err(|error| error.to_string())
}

impl TriggerArgs {
    /// Names of the policies that are not respected, these among them, separated by commas.
    pub(super) fn despite_and(&self, more: &[PolicyName]) -> String {
        let all = self.despite.iter().chain(more);
        let names: Vec<&str> = all.map(|policy| policy.name()).collect();
        names.join(",")
    }

    /// The request for a slot, or for now.
    pub(super) fn request(
        &self,
        session: &Session<'_>,
        schedule: &str,
        slot: Option<Timestamp>,
    ) -> TriggerRequest {
        TriggerRequest {
            schedule: schedule.to_owned(),
            slot,
            overlap: self.overlap,
            despite: self.despite.clone(),
            by: session.asked_by(),
        }
    }
}

pub(super) fn trigger(
    session: &mut Session<'_>,
    schedule: &str,
    asked: &TriggerArgs,
) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningOnly)?;
    let request = asked.request(session, schedule, None);
    let row = control
        .trigger(&request)
        .map_err(|refused| schedule_meant(control.as_ref(), schedule, refused))?;
    show(session, control.as_ref(), &[row], "slot")?;
    Ok(Exit::Ok)
}

/// Shows rows that have been made, in the zone of their schedule.
pub(super) fn show(
    session: &mut Session<'_>,
    control: &dyn Control,
    rows: &[SlotView],
    name: &str,
) -> Result<(), Diagnostic> {
    if session.json() {
        match rows {
            [only] if name == "slot" => session.print_json(only, name),
            rows => session.print_json(&rows, name),
        }
        return Ok(());
    }
    let zone = match rows.first() {
        Some(row) => zone_of_schedule(control, &row.schedule)?,
        None => Zone::UTC,
    };
    let width = session.io.table_width();
    table_of(rows, zone).print(&mut session.io.out, width);
    Ok(())
}
