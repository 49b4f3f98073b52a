//! What the service manager is told.

use std::time::Duration;

use sd_notify::NotifyState;

/// Where states go.
type Speak = Box<dyn Fn(&[NotifyState<'_>]) + Send + Sync>;

/// Tells the service manager about the daemon's life; silent where there is none.
pub struct Announcer {
    send: Speak,
    watchdog: Option<Duration>,
}

impl Announcer {
    /// Speaks to the service manager that started this process.
    pub fn of_process() -> Announcer {
        Announcer {
            send: Box::new(|states| {
                if let Err(error) = sd_notify::notify(states) {
                    tracing::warn!(%error, "the service manager could not be told");
                }
            }),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Speaks to `hear`, each state as the line that a service manager would read.
    pub fn told_to(
        watchdog: Option<Duration>,
        hear: impl Fn(String) + Send + Sync + 'static,
    ) -> Announcer {
        Announcer {
            send: Box::new(move |states| {
                for state in states {
                    hear(state.to_string().trim_end().to_owned());
                }
            }),
            watchdog,
        }
    }

    /// Within how long the watchdog wants to be fed.
    pub(super) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub(super) fn ready(&self, status: &str) {
        (self.send)(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    pub(super) fn status(&self, status: &str) {
        (self.send)(&[NotifyState::Status(status)]);
    }

    /// Recovering or ending still takes its time, but not more than `span` without a further word.
    pub(super) fn extend(&self, span: Duration) {
        let usec = u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        (self.send)(&[NotifyState::ExtendTimeoutUsec(usec)]);
    }

    pub(super) fn alive(&self) {
        (self.send)(&[NotifyState::Watchdog]);
    }

    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => (self.send)(&[NotifyState::Reloading, now]),
            // Newer service managers would take a reload without its time for a failure.
            Err(error) => tracing::warn!(%error, "the service manager was not told of the reload"),
        }
    }

    pub(super) fn stopping(&self, status: &str) {
        (self.send)(&[NotifyState::Stopping, NotifyState::Status(status)]);
    }
}
