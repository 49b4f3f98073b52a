//! `schedule backfill`

use super::trigger::{TriggerArgs, show};
use super::{schedule_meant, zone_of_schedule};
use crate::cli::exit::Exit;
use crate::cli::render::line::{CARE, GOOD, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::{diagnostic, times};
use crate::cli::session::{Accept, Session};
use crate::model::{Diagnostic, RunId};
use crate::protocol::{BackfillQuery, BackfillSlot, Control, PolicyName, SlotView};

/// Policies that are asked about run by run: what they refuse is told.
const REFUSED: [PolicyName; 3] = [
    PolicyName::Pause,
    PolicyName::Blackout,
    PolicyName::MaxActions,
];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Id of the schedule
    schedule: String,
    /// First slot, in the time zone of the schedule: `2026-11-20`, `2026-11-20T09:00`, or `3d` ago
    #[arg(long, value_name = "TIME")]
    from: String,
    /// Last slot
    #[arg(long, value_name = "TIME")]
    to: String,
    /// Print the slots that would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    asked: TriggerArgs,
}

pub(super) fn backfill(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let accept = if args.dry_run {
        Accept::RunningElseHosted
    } else {
        Accept::RunningOnly
    };
    let control = session.connect(accept)?;
    let slots = past(session, control.as_ref(), args)?;
    if args.dry_run {
        return plan(session, control.as_ref(), args, &slots);
    }
    let wanted: Vec<&BackfillSlot> = slots
        .iter()
        .filter(|slot| slot.skip_reason.is_none())
        .collect();
    let mut made: Vec<SlotView> = Vec::new();
    let mut refused = None;
    let mut blocked = 0_usize;
    for slot in &wanted {
        let request = args.asked.request(session, &args.schedule, Some(slot.slot));
        match control.trigger(&request) {
            Ok(row) => made.push(row),
            // Somebody else, or the daemon, was quicker.
            Err(error) if error.code == "has_run" => {}
            Err(error) if error.code == "blackout" => blocked += 1,
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    if made.is_empty() && refused.is_none() {
        session
            .io
            .err
            .line("no slot of that range is left to be run");
    }
    if !made.is_empty() || session.json() {
        show(session, control.as_ref(), &made, "slots")?;
    }
    if blocked > 0 {
        let why = format!(
            "{blocked} slots lie in blocked hours or dates; `--despite blackout` runs them too"
        );
        diagnostic::warning(&mut session.io.err, &why);
    }
    match refused {
        None => Ok(Exit::Ok),
        Some(error) if error.code != "queue_full" => Err(error),
        Some(error) => {
            let left = wanted.len().saturating_sub(made.len());
            let hint = format!("{left} slots are left: the same command goes on with them");
            Err(error.hint(hint))
        }
    }
}

fn past(
    session: &Session<'_>,
    control: &dyn Control,
    args: &Args,
) -> Result<Vec<BackfillSlot>, Diagnostic> {
    let zone = zone_of_schedule(control, &args.schedule)?;
    let now = session.clock.now();
    let query = BackfillQuery {
        schedule: args.schedule.clone(),
        from_ms: times::parse_instant("--from", &args.from, now, zone)?.millis(),
        to_ms: times::parse_instant("--to", &args.to, now, zone)?.millis(),
        despite: args
            .asked
            .despite_and(if args.dry_run { &[] } else { &REFUSED }),
    };
    control
        .backfill(&query)
        .map_err(|refused| schedule_meant(control, &args.schedule, refused))
}

fn plan(
    session: &mut Session<'_>,
    control: &dyn Control,
    args: &Args,
    slots: &[BackfillSlot],
) -> Result<Exit, Diagnostic> {
    if session.json() {
        session.print_json(&slots, "slots");
        return Ok(Exit::Ok);
    }
    let zone = zone_of_schedule(control, &args.schedule)?;
    let mut table = Table::new(&[
        Column::new("DUE").words(),
        Column::new("WAS"),
        Column::new("RUN").optional(),
        Column::new("WOULD").words(),
    ]);
    for slot in slots {
        let would = match &slot.skip_reason {
            None => Line::of(GOOD, "run"),
            Some(why) => Line::of(CARE, format!("not run: {why}")),
        };
        table.row(vec![
            slot.slot.rfc3339_in(zone).into(),
            slot.status
                .map_or("unknown to the schedule", |status| status.name())
                .into(),
            slot.run.map(RunId::short).unwrap_or_default().into(),
            would,
        ]);
    }
    let width = session.io.table_width();
    table.print(&mut session.io.out, width);
    let count = slots
        .iter()
        .filter(|slot| slot.skip_reason.is_none())
        .count();
    let line = format!("{count} of {} slots would run", slots.len());
    diagnostic::hint(&mut session.io.err, &line);
    Ok(Exit::Ok)
}
