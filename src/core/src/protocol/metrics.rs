//! What the engine, its runs and its schedules do, in the text format of Prometheus.

use std::fmt::{Display, Write};

use super::{Control, ScheduleView, SchedulesQuery, StatsLine, StatsQuery, Status};
use crate::model::schedule::SlotStatus;
use crate::model::{Diagnostic, Timestamp, Zone};

/// Content type of the format.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of an engine.
pub fn metrics(control: &dyn Control, now: Timestamp) -> Result<String, Diagnostic> {
    let status = control.status()?;
    let zone = status.timezone.parse().unwrap_or(Zone::UTC);
    let today = now.date_in(zone);
    let of_today = StatsQuery {
        from: Some(today.clone()),
        to: Some(today),
        ..StatsQuery::default()
    };
    let mut page = Page::default();
    page.engine(&status);
    page.runs(&control.stats(&of_today)?);
    page.schedules(&control.all_schedules(&SchedulesQuery::default())?);
    Ok(page.text)
}

/// The one metric that is told where no daemon answers.
pub fn metrics_of_nobody() -> String {
    let mut page = Page::default();
    page.is_up(false);
    page.text
}

/// Kinds of metrics.
#[derive(Clone, Copy)]
enum Is {
    Gauge,
    Counter,
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn about(&mut self, name: &str, is: Is, help: &str) {
        let kind = match is {
            Is::Gauge => "gauge",
            Is::Counter => "counter",
        };
        // Writing to text does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.as_slice() {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, is: Is, help: &str, value: impl Display) {
        self.about(name, is, help);
        self.sample(name, &[], value);
    }

    fn is_up(&mut self, is_up: bool) {
        let help = "Whether a daemon answers.";
        self.one("workerctl_up", Is::Gauge, help, u8::from(is_up));
    }

    fn runs(&mut self, today: &[StatsLine]) {
        let name = "workerctl_runs_ended_today";
        let help = "Runs that ended today, in the zone of the workspace, by how.";
        self.about(name, Is::Gauge, help);
        for line in today {
            for (outcome, count) in &line.outcomes {
                let labels = [("skill", line.name.as_str()), ("outcome", outcome)];
                self.sample(name, &labels, count);
            }
        }
    }

    fn engine(&mut self, status: &Status) {
        self.is_up(status.host == "daemon");
        let name = "workerctl_info";
        self.about(name, Is::Gauge, "Always 1; who answers.");
        let labels = [
            ("version", status.version.as_str()),
            ("host", &status.host),
            ("workspace", &status.workspace),
        ];
        self.sample(name, &labels, 1);
        let name = "workerctl_ready";
        let help = "Whether runs are accepted and started.";
        self.one(name, Is::Gauge, help, u8::from(status.condition == "ready"));
        let uptime = seconds(status.uptime_ms);
        let name = "workerctl_uptime_seconds";
        self.one(name, Is::Gauge, "Time since the engine is ready.", uptime);
        let name = "workerctl_runs";
        self.about(name, Is::Gauge, "Runs that have not ended.");
        self.sample(name, &[("state", "running")], status.running);
        self.sample(name, &[("state", "awaiting_approval")], status.awaiting);
        self.sample(name, &[("state", "queued")], status.queued);
        self.sample(name, &[("state", "backing_off")], status.backing_off);
        let name = "workerctl_git_writable";
        let help = "Whether results can be committed to the repository.";
        let is_writable = u8::from(status.git_problem.is_none());
        self.one(name, Is::Gauge, help, is_writable);
        let name = "workerctl_push_failures";
        let help = "Failed pushes in a row of each branch whose last push failed.";
        self.about(name, Is::Gauge, help);
        for push in &status.failed_pushes {
            let labels = [
                ("repository", push.repository.as_str()),
                ("remote", &push.remote),
                ("branch", &push.branch),
            ];
            self.sample(name, &labels, push.tries);
        }
        let name = "workerctl_definition_problems";
        self.about(name, Is::Gauge, "Problems of definitions.");
        self.sample(name, &[("severity", "error")], status.errors);
        self.sample(name, &[("severity", "warning")], status.warnings);
        let name = "workerctl_store_commits_total";
        let help = "Commits to the store since the engine started.";
        self.one(name, Is::Counter, help, status.commits);
        let name = "workerctl_store_syncs_total";
        let help = "Syncs to disk since the engine started.";
        self.one(name, Is::Counter, help, status.syncs);
    }

    /// One sample for each schedule that has one.
    fn each<V: Display>(
        &mut self,
        schedules: &[ScheduleView],
        (name, is, help): (&str, Is, &str),
        value: impl Fn(&ScheduleView) -> Option<V>,
    ) {
        self.about(name, is, help);
        for view in schedules {
            if let Some(value) = value(view) {
                self.sample(name, &[("schedule", &view.id)], value);
            }
        }
    }

    fn schedules(&mut self, schedules: &[ScheduleView]) {
        let name = "workerctl_schedule_overdue";
        let help = "Whether the schedule has not succeeded in time.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            Some(u8::from(view.overdue))
        });
        let name = "workerctl_schedule_expected_by_timestamp_seconds";
        let help = "By when the schedule is to have succeeded.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            view.expected_by.map(instant)
        });
        let name = "workerctl_schedule_next_due_timestamp_seconds";
        let help = "The next slot.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            view.next.map(instant)
        });
        let name = "workerctl_schedule_last_success_timestamp_seconds";
        let help = "When a run of the schedule last succeeded.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            view.succeeded_at.map(instant)
        });
        let name = "workerctl_schedule_consecutive_failures";
        let help = "Failures since the last success.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            Some(view.failures)
        });
        let name = "workerctl_schedule_paused";
        let help = "Whether the schedule is paused.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            Some(u8::from(view.paused.is_some()))
        });
        let name = "workerctl_schedule_kept";
        let help = "Whether it is kept as it was before an error in its definition.";
        self.each(schedules, (name, Is::Gauge, help), |view| {
            Some(u8::from(view.fallback_reason.is_some()))
        });
        let name = "workerctl_schedule_runs_total";
        let help = "Runs that the schedule has led to.";
        self.each(schedules, (name, Is::Counter, help), |view| {
            Some(view.actions)
        });
        let name = "workerctl_schedule_due_times_total";
        self.about(name, Is::Counter, "Slots by what became of them.");
        for view in schedules {
            for status in SlotStatus::ALL {
                let count = view.totals.get(&status).copied().unwrap_or(0);
                let labels = [("schedule", view.id.as_str()), ("status", status.name())];
                self.sample(name, &labels, count);
            }
        }
    }
}

/// Milliseconds as seconds.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

/// Seconds since the epoch.
fn instant(at: Timestamp) -> String {
    match u64::try_from(at.millis()) {
        Ok(millis) => seconds(millis),
        Err(_) => at.millis().div_euclid(1_000).to_string(),
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped_and_times_are_seconds() {
        let mut page = Page::default();
        page.sample("m", &[("a", "x\"\\\n"), ("b", "")], 1);
        assert_eq!(page.text, "m{a=\"x\\\"\\\\\\n\",b=\"\"} 1\n");
        assert_eq!(
            instant(Timestamp::from_millis(1_795_000_000_007)),
            "1795000000.007"
        );
        assert_eq!(instant(Timestamp::from_millis(-1)), "-1");
    }
}
