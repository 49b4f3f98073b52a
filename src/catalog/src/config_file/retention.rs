//! `retention`: how long what is recorded stays.

use super::Reader;
use crate::bounds::RUNS_MIN_MAX;
use crate::isolation;
use crate::keys::CONFIG_RETENTION;
use crate::model::Retention;
use crate::model::retention::RUNS_MS_MIN;
use crate::report::Report;
use crate::view::View;

const CONTRADICTION: &str = "retention-contradiction";

impl<'a> Reader<'a, '_> {
    pub(super) fn retention(&mut self, report: &mut Report) {
        let Some(map) = self.map.written("retention") else {
            return;
        };
        CONFIG_RETENTION.is_map(map, "retention", "a map", report);
        let before = report.errors();
        let mut found = Retention::default();
        for (key, place) in [
            ("runs", &mut found.runs_ms),
            ("approvals", &mut found.approvals_ms),
            ("slots", &mut found.slots_ms),
        ] {
            let read = |view: View<'a>, report: &mut Report| view.millis(key, report);
            *place = self
                .value(&format!("retention.{key}"), report, read)
                .unwrap_or(*place);
        }
        let runs_min = self.value("retention.runs_min", report, |view, report| {
            view.whole("runs_min", 0..=RUNS_MIN_MAX, report)
        });
        found.runs_min = runs_min
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(found.runs_min);
        let threads = self.value("retention.threads", report, |view, report| {
            isolation::bytes(view, "threads", report)
        });
        found.threads_bytes = threads.unwrap_or(found.threads_bytes);
        // What follows from a value that cannot be read would only be told besides.
        if report.errors() == before {
            self.agrees(map, &found, report);
        }
        if report.errors() == before {
            self.config.retention = found;
        } else {
            let origins = self.config.origins.iter_mut();
            let of_retention = origins.filter(|(path, _)| path.starts_with("retention."));
            of_retention.for_each(|(_, origin)| "default".clone_into(origin));
        }
    }

    /// Tells what cannot hold together.
    fn agrees(&self, map: View<'a>, found: &Retention, report: &mut Report) {
        let output = self.config.output_bytes_max;
        let rules = [
            (
                found.runs_ms < RUNS_MS_MIN,
                "runs",
                "runs must be kept for at least 2 days, so that a repeated request finds its run"
                    .to_owned(),
                "write `runs: 2d`, or longer",
            ),
            (
                found.approvals_ms < found.runs_ms,
                "approvals",
                "approved and denied runs must be kept at least as long as other runs".to_owned(),
                "write at least as long as `runs`, whose default is 90d",
            ),
            (
                found.threads_bytes < output.saturating_mul(2),
                "threads",
                format!(
                    "one run can write more: up to `output_bytes_max` ({output} bytes) to each of its two streams"
                ),
                "raise `threads`, or lower `output_bytes_max`",
            ),
        ];
        for (_, key, why, hint) in rules.into_iter().filter(|(broken, ..)| *broken) {
            // `runs` alone can contradict the default of another key.
            let place = map
                .written(key)
                .or(map.written("runs"))
                .unwrap_or(map)
                .place();
            report.error(
                CONTRADICTION,
                place,
                format!("`retention.{key}`: {why}"),
                hint,
            );
        }
    }
}
