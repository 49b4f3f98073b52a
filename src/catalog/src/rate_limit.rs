//! `on_rate_limit`: whether runs wait for the end of a rate limit, how long and how often.

use super::keys::RATE_LIMIT;
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::bounds::RATE_LIMIT_WAITS_MAX;
use crate::model::spec::RateLimitWait;

/// What one level says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnRateLimit {
    /// Runs do not wait, whatever an outer level says.
    Fail,
    /// They do.
    Wait(RateLimitWait),
}

impl OnRateLimit {
    /// How they wait, if they do.
    pub(crate) const fn wait(self) -> Option<RateLimitWait> {
        match self {
            OnRateLimit::Fail => None,
            OnRateLimit::Wait(wait) => Some(wait),
        }
    }
}

/// Reads `on_rate_limit`.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Option<OnRateLimit> {
    if matches!(view.data(), Data::Bool(false)) {
        return Some(OnRateLimit::Fail);
    }
    let before = report.errors();
    let expected = "a map with `wait`, or `false`";
    if !RATE_LIMIT.is_map(view, "on_rate_limit", expected, report) {
        return None;
    }
    let Some(wait) = view.written("wait") else {
        if report.errors() == before {
            report.error(
                "missing-key",
                view.key_place(),
                "`on_rate_limit` does not say how long a run waits".to_owned(),
                "add `wait: 6h`",
            );
        }
        return None;
    };
    let wait_ms = wait.millis("wait", report)?;
    let times = match view.written("times") {
        Some(times) => times.whole("times", 1..=RATE_LIMIT_WAITS_MAX, report)?,
        None => 1,
    };
    Some(OnRateLimit::Wait(RateLimitWait {
        wait_ms,
        times: u32::try_from(times).unwrap_or(1),
    }))
}
