//! What the service manager is told. It is never waited for: what it does not take is kept, the latest
//! word on each subject, until it does.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::Notify;

use crate::model::Zone;
use crate::protocol::Status;

/// How often the service manager is asked for more time.
pub(super) const EXTEND_EVERY: Duration = Duration::from_secs(5);
/// For how much it is asked, beyond the present moment.
pub(super) const EXTEND_BY: Duration = Duration::from_secs(30);
/// What a notice is about. A later one takes the place of an earlier one on the same subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Ready,
    Status,
    Extension,
    Watchdog,
    Reload,
    Stop,
}

/// Where notices go.
type Speak = Box<dyn Fn(Subject, &[NotifyState<'_>]) + Send + Sync>;

/// Tells the service manager about the daemon's life; silent where there is none.
pub struct Announcer {
    send: Speak,
    watchdog: Option<Duration>,
}

impl Announcer {
    /// Speaks to the service manager that started this process. Needs tokio's runtime around it, in which
    /// the notices are delivered.
    pub fn of_process() -> Announcer {
        let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
            return Announcer {
                send: Box::new(|_, _| {}),
                watchdog: None,
            };
        };
        let mailbox = Arc::new(Mailbox::default());
        tokio::spawn(deliver(Arc::clone(&mailbox), address));
        Announcer {
            send: Box::new(move |subject, states| mailbox.post(subject, states)),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Speaks to `receive`, each state as the line that a service manager would read.
    pub fn told_to(
        watchdog: Option<Duration>,
        receive: impl Fn(String) + Send + Sync + 'static,
    ) -> Announcer {
        Announcer {
            send: Box::new(move |_, states| {
                for state in states {
                    receive(state.to_string());
                }
            }),
            watchdog,
        }
    }

    /// Within how long the watchdog wants to be fed.
    pub(super) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub(super) fn ready(&self, text: &str) {
        let states = [NotifyState::Ready, NotifyState::Status(text)];
        (self.send)(Subject::Ready, &states);
    }

    pub(super) fn status(&self, status: &str) {
        (self.send)(Subject::Status, &[NotifyState::Status(status)]);
    }

    /// Recovering or ending still takes its time, but not more than `span` without a further word.
    pub(super) fn extend(&self, span: Duration) {
        let usec = u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        let states = [NotifyState::ExtendTimeoutUsec(usec)];
        (self.send)(Subject::Extension, &states);
    }

    pub(super) fn alive(&self) {
        (self.send)(Subject::Watchdog, &[NotifyState::Watchdog]);
    }

    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => (self.send)(Subject::Reload, &[NotifyState::Reloading, now]),
            // Newer service managers would take a reload without its time for a failure.
            Err(error) => {
                tracing::warn!(%error, "the service manager was not notified of the reload");
            }
        }
    }

    pub(super) fn stopping(&self, text: &str) {
        let states = [NotifyState::Stopping, NotifyState::Status(text)];
        (self.send)(Subject::Stop, &states);
    }
}

/// Notices that the service manager has not taken, oldest first; one on each subject at most.
#[derive(Debug, Default)]
struct Waiting(VecDeque<(Subject, String)>);

impl Waiting {
    fn add(&mut self, subject: Subject, text: String) {
        self.0.retain(|(earlier, _)| *earlier != subject);
        self.0.push_back((subject, text));
    }

    /// Hands notices to `send` until one is refused, which is kept.
    fn hand_over(&mut self, mut send: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        while let Some((_, text)) = self.0.front() {
            send(text)?;
            self.0.pop_front();
        }
        Ok(())
    }
}

/// Between the daemon's loop, which never waits, and the task that does.
#[derive(Debug, Default)]
struct Mailbox {
    waiting: Mutex<Waiting>,
    posted: Notify,
}

impl Mailbox {
    fn post(&self, subject: Subject, states: &[NotifyState<'_>]) {
        let lines: Vec<String> = states.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        self.with(|waiting| waiting.add(subject, text));
        self.posted.notify_one();
    }

    fn with<T>(&self, change: impl FnOnce(&mut Waiting) -> T) -> T {
        change(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends everything; waits as long as the service manager takes nothing.
    async fn empty_into(&self, address: &OsStr) -> io::Result<()> {
        let socket = connected(address)?;
        if let Some(sent) = self.hand_over(|text| socket.send(text)) {
            return sent;
        }
        tracing::warn!(
            "the service manager does not accept notifications; they are queued until it does"
        );
        let socket = tokio::net::UnixDatagram::from_std(socket)?;
        loop {
            socket.writable().await?;
            if let Some(sent) = self.hand_over(|text| socket.try_send(text)) {
                return sent;
            }
        }
    }

    /// Hands notices to `send`, which does not wait; `None`: some are left, since it would have to.
    fn hand_over(&self, send: impl Fn(&[u8]) -> io::Result<usize>) -> Option<io::Result<()>> {
        let ended =
            self.with(|waiting| waiting.hand_over(|text| send(text.as_bytes()).map(|_| ())));
        let must_wait = matches!(&ended, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        (!must_wait).then_some(ended)
    }
}

/// Delivers what is posted, for as long as the runtime lives.
async fn deliver(mailbox: Arc<Mailbox>, address: OsString) {
    loop {
        mailbox.posted.notified().await;
        if let Err(error) = mailbox.empty_into(&address).await {
            // Nobody is there to take them, and a later one must not be older than the moment it tells of.
            mailbox.with(|waiting| waiting.0.clear());
            tracing::warn!(%error, "the service manager could not be notified");
        }
    }
}

/// A socket that only sends and never waits, to an address as in `sd_notify(3)`: a path, or `@` and an abstract name.
fn connected(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

/// What `systemctl status` shows of a daemon, in one line.
pub(super) fn status_text(status: &Status) -> String {
    let mut parts = vec![status.counts()];
    if status.condition != "ready" {
        parts.push(status.condition.clone());
    }
    if let Some(next) = &status.next_due {
        let zone = next.timezone.parse().unwrap_or(Zone::UTC);
        let at = next.at.rfc3339_in(zone);
        parts.push(format!("next {} at {at}", next.schedule));
    }
    let overdue: Vec<&str> = status.overdue.iter().map(|one| &*one.schedule).collect();
    let failing = status.failing.iter().map(|one| &*one.schedule);
    let failing: Vec<&str> = failing.filter(|id| !overdue.contains(id)).collect();
    parts.extend(of_each(&overdue, "is overdue", "are overdue"));
    parts.extend(of_each(&failing, "fails", "fail"));
    if status.errors > 0 {
        parts.push(format!("{} errors in definitions", status.errors));
    }
    parts.join(", ")
}

fn of_each(ids: &[&str], does: &str, do_all: &str) -> Option<String> {
    let (first, others) = ids.split_first()?;
    Some(match others.len() {
        0 => format!("{first} {does}"),
        more => format!("{first} and {more} more {do_all}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_waits_the_latest_word_on_each_subject_is_kept_in_order() {
        let mut waiting = Waiting::default();
        for (subject, text) in [
            (Subject::Status, "recovering"),
            (Subject::Ready, "at first"),
            (Subject::Watchdog, "alive"),
            (Subject::Reload, "reloading"),
            (Subject::Ready, "again"),
            (Subject::Status, "1 running"),
            (Subject::Watchdog, "alive"),
        ] {
            waiting.add(subject, text.to_owned());
        }
        let mut told = Vec::new();
        let full = || io::Error::from(io::ErrorKind::WouldBlock);
        let refused = waiting.hand_over(|text| {
            if told.len() == 2 {
                return Err(full());
            }
            told.push(text.to_owned());
            Ok(())
        });
        assert_eq!(
            refused.map_err(|error| error.kind()),
            Err(full().kind()),
            "{told:?}"
        );
        waiting
            .hand_over(|text| {
                told.push(text.to_owned());
                Ok(())
            })
            .expect("taken");
        assert_eq!(told, ["reloading", "again", "1 running", "alive"]);
    }
}
