//! `schedule explain`

use super::subject::{Meant, Subject};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BOLD, CARE, DIM, Line};
use crate::cli::session::Session;
use crate::model::{Diagnostic, Timestamp, Zone};
use crate::protocol::ExplainedSchedule;
use crate::schedule::{Fire, words};
use crate::upcoming::{Explained, changes, zone_of};

pub(super) fn explain(session: &mut Session<'_>, subject: &Subject) -> Result<Exit, Diagnostic> {
    let now = session.clock.now();
    match subject.meant(session)? {
        Meant::Expression(recurrence, zone) => {
            let next = subject.fires_of(&recurrence, now, zone)?;
            let shown = next.iter().map(|due| due.rfc3339_in(zone)).collect();
            let explained = ExplainedSchedule {
                schedule: None,
                skill: None,
                description: words(&recurrence),
                next,
                clock_changes: changes(&recurrence, now),
                policies: None,
            };
            if session.json() {
                session.print_json(&explained, "explained");
            } else {
                print(session, &explained, shown);
            }
        }
        Meant::Schedules(views) => {
            let all: Vec<Explained<'_>> = subject.wanted(now, |wanted| {
                let all = views.iter().map(|view| Explained::of(view, wanted));
                all.collect()
            })?;
            if let Some(why) = views
                .iter()
                .find_map(|view| view.inactive_reason.as_deref())
            {
                diagnostic::warning(&mut session.io.err, why);
            }
            if !session.json() {
                print_all(session, &all);
            } else if let (true, [one]) = (subject.is_one(), all.as_slice()) {
                session.print_json(&one.document(), "explained");
            } else {
                let all: Vec<ExplainedSchedule> = all.iter().map(Explained::document).collect();
                session.print_json(&all, "explained");
            }
        }
    }
    Ok(Exit::Ok)
}

fn print_all(session: &mut Session<'_>, all: &[Explained<'_>]) {
    if all.is_empty() {
        session.io.err.line("no schedules");
    }
    for (index, explained) in all.iter().enumerate() {
        if index > 0 {
            session.io.out.line("");
        }
        let zone = zone_of(explained.view);
        let fires = explained.fires.iter().map(|fire| shown(*fire, zone));
        print(session, &explained.document(), fires.collect());
    }
}

fn shown(fire: Fire, zone: Zone) -> String {
    let at = |at: Timestamp| at.rfc3339_in(zone);
    if fire.starts == fire.due {
        return at(fire.due);
    }
    format!("{}, starts {}", at(fire.due), at(fire.starts))
}

fn print(session: &mut Session<'_>, explained: &ExplainedSchedule, fires: Vec<String>) {
    let out = &mut session.io.out;
    if let (Some(id), Some(skill)) = (&explained.schedule, &explained.skill) {
        out.prose(Line::of(BOLD, id).styled(DIM, format!(" runs {skill}")), 2);
    }
    out.prose(Line::of(BOLD, &explained.description), 2);
    for at in fires {
        out.prose(Line::from("  ").text(at), 4);
    }
    for change in &explained.clock_changes {
        out.prose(
            Line::of(CARE, format!("  {}  ", change.date)).text(&change.message),
            4,
        );
    }
    for sentence in explained.policies.iter().flatten() {
        out.prose(
            Line::of(DIM, format!("  {:<17}", sentence.key)).text(&sentence.text),
            19,
        );
    }
}
