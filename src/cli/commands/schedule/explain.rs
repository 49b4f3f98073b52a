//! `schedule explain`

use serde_json::{Value, json};

use super::subject::{Meant, Subject, planned};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BOLD, CARE, DIM, Line};
use crate::cli::session::Session;
use crate::model::{Diagnostic, Timestamp};
use crate::protocol::ScheduleView;
use crate::schedule::{DstWarning, Facts, Recurrence, Sentence, dst_warnings, sentences, words};

/// How far ahead changes of the clock are told, in milliseconds: two years.
const WARNED_MS: u64 = 2 * 366 * 24 * 3_600_000;

/// What is told of a schedule or an expression.
struct Explained {
    /// Its id, where it has one.
    schedule: Option<(String, String)>,
    words: String,
    /// The next slots, as they are shown and as they are.
    next: Vec<(Timestamp, String)>,
    changes: Vec<DstWarning>,
    sentences: Vec<Sentence>,
}

pub(super) fn explain(session: &mut Session<'_>, subject: &Subject) -> Result<Exit, Diagnostic> {
    let now = session.clock.now();
    match subject.meant(session)? {
        Meant::Expression(recurrence, zone) => {
            let fires = subject.fires_of(&recurrence, now, zone)?;
            let explained = Explained {
                schedule: None,
                words: words(&recurrence),
                next: fires.iter().map(|at| (*at, at.rfc3339_in(zone))).collect(),
                changes: changes(&recurrence, now),
                sentences: Vec::new(),
            };
            if session.json() {
                session.print_json(&explained.json(), "explained");
            } else {
                explained.print(session);
            }
        }
        Meant::Schedules(views) => {
            let all = views.iter().map(|view| of_schedule(view, subject, now));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            if let Some(why) = views.iter().find_map(|view| view.held.as_deref()) {
                diagnostic::warning(&mut session.io.err, why);
            }
            if !session.json() {
                print_all(session, &all);
            } else if let (true, [one]) = (subject.is_one(), all.as_slice()) {
                session.print_json(&one.json(), "explained");
            } else {
                let all: Vec<Value> = all.iter().map(Explained::json).collect();
                session.print_json(&all, "explained");
            }
        }
    }
    Ok(Exit::Ok)
}

fn print_all(session: &mut Session<'_>, all: &[Explained]) {
    if all.is_empty() {
        session.io.err.line("no schedules");
    }
    for (index, explained) in all.iter().enumerate() {
        if index > 0 {
            session.io.out.line("");
        }
        explained.print(session);
    }
}

fn changes(recurrence: &Recurrence, now: Timestamp) -> Vec<DstWarning> {
    dst_warnings(recurrence, now, now.plus_millis(WARNED_MS))
}

fn of_schedule(
    view: &ScheduleView,
    subject: &Subject,
    now: Timestamp,
) -> Result<Explained, Diagnostic> {
    let planned = planned(view, now);
    let facts = Facts {
        attempts: view.plan.attempts,
        failures: view.failures,
    };
    let preview = subject.preview_of(view, now, None)?;
    let fires = preview.fires.iter().filter(|_| view.held.is_none());
    Ok(Explained {
        schedule: Some((view.id.clone(), view.skill.clone())),
        words: view.when.clone(),
        next: fires
            .map(|fire| {
                let due = fire.due.rfc3339_in(planned.zone);
                if fire.starts == fire.due {
                    return (fire.due, due);
                }
                let starts = fire.starts.rfc3339_in(planned.zone);
                (fire.due, format!("{due}, starts {starts}"))
            })
            .collect(),
        changes: planned
            .recurrence()
            .map(|recurrence| changes(&recurrence, now))
            .unwrap_or_default(),
        sentences: sentences(&planned, facts),
    })
}

impl Explained {
    fn json(&self) -> Value {
        let mut explained = json!({
            "words": self.words,
            "next": self.next.iter().map(|(at, _)| at).collect::<Vec<_>>(),
            "clock_changes": self.changes,
        });
        if let (Some((id, skill)), Some(fields)) = (&self.schedule, explained.as_object_mut()) {
            fields.insert("schedule".to_owned(), json!(id));
            fields.insert("skill".to_owned(), json!(skill));
            fields.insert("policies".to_owned(), json!(self.sentences));
        }
        explained
    }

    fn print(&self, session: &mut Session<'_>) {
        let out = &mut session.io.out;
        if let Some((id, skill)) = &self.schedule {
            out.prose(Line::of(BOLD, id).styled(DIM, format!(" runs {skill}")), 2);
        }
        out.prose(Line::of(BOLD, &self.words), 2);
        for (_, at) in &self.next {
            out.prose(Line::from("  ").text(at), 4);
        }
        for change in &self.changes {
            out.prose(
                Line::of(CARE, format!("  {}  ", change.date)).text(&change.what),
                4,
            );
        }
        for sentence in &self.sentences {
            out.prose(
                Line::of(DIM, format!("  {:<17}", sentence.about)).text(&sentence.says),
                19,
            );
        }
    }
}
