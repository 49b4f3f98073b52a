//! The core loop's one inbox, with two lanes: results are never refused, requests are bounded.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::refusals::busy;
use super::request::{Answer, Envelope, Request, Submission};
use super::trigger_probe::ProbeResult;
use super::work::{NoticeResult, PushResult};
use crate::machine::Event;
use crate::model::{Diagnostic, FailedPush, Kind, RunId};

/// Most requests that may wait for the loop; beyond, the engine is busy.
pub(super) const REQUESTS_MAX: usize = 1_024;

/// How long what nobody waits for may wait for something else that is committed: at once, its own sync would stand in
/// the way of the next turn. A model takes longer to answer, so that little is lost by it with an engine.
const NOTED_FOR: Duration = Duration::from_millis(5);

/// Where the one answer to a request arrives.
pub(super) type Answered = Receiver<Result<Answer, Diagnostic>>;

/// What an executor thread hands back.
#[derive(Debug)]
pub(super) enum Delivery {
    /// The result of one action.
    Result {
        /// Whose action it was.
        run: RunId,
        /// What happened.
        event: Event,
        /// What happened next, where the executor went on at once.
        then: Option<Box<Event>>,
    },
    /// What an action learnt that goes on.
    Progress {
        /// Whose action it is.
        run: RunId,
        /// What happened, in this order.
        events: Vec<Event>,
        /// Who waits until it is durable; dropped unused where it never will be.
        durable: Option<SyncSender<()>>,
    },
    /// The run of a slot, or why there is none.
    Prepared {
        /// The schedule.
        schedule: String,
        /// What was made.
        made: Box<Result<Submission, Diagnostic>>,
    },
    /// What a schedule waits for, as it is now.
    Probed {
        /// The schedule.
        schedule: String,
        /// Whether it is looked at because a run of the schedule's own has ended.
        own: bool,
        /// What was seen, or why nothing can be.
        probe: Result<ProbeResult, String>,
    },
    /// The command of a notice has ended, or was stopped.
    Notified {
        /// Whose notice it is.
        subject: String,
        /// How it ended.
        told: NoticeResult,
    },
    /// A push without a run has ended.
    Pushed {
        /// The branch as it was when the push started.
        push: Box<FailedPush>,
        /// How it ended.
        result: PushResult,
    },
    /// Thread and metrics files written before the request are durable.
    Sealed {
        /// Ended runs whose files find no space yet.
        unwritten: BTreeSet<RunId>,
    },
}

/// What one turn of the loop takes out.
#[derive(Default)]
pub(super) struct Mail {
    /// Results, oldest first.
    pub deliveries: Vec<Delivery>,
    /// Requests, oldest first.
    pub requests: Vec<Envelope>,
}

#[derive(Default)]
struct Lanes {
    deliveries: VecDeque<Delivery>,
    requests: VecDeque<Envelope>,
    /// How many of the deliveries nobody waits for, and since when there are any.
    noted: Option<(usize, Instant)>,
    closed: bool,
}

impl Lanes {
    fn hold(&self, wanted: usize) -> bool {
        let noted = self.noted.map_or(0, |(count, _)| count);
        self.deliveries.len() - noted + self.requests.len() >= wanted
    }

    fn take(&mut self) -> Mail {
        self.noted = None;
        Mail {
            deliveries: std::mem::take(&mut self.deliveries).into(),
            requests: std::mem::take(&mut self.requests).into(),
        }
    }
}

/// The inbox; shared by everyone who talks to the loop.
#[derive(Default)]
pub(super) struct Inbox {
    lanes: Mutex<Lanes>,
    arrived: Condvar,
}

impl Inbox {
    /// Hands in a result; at most one per running action, so this lane needs no bound of its own.
    pub(super) fn deliver(&self, result: Delivery) {
        let mut lanes = self.lock();
        if !lanes.closed {
            lanes.deliveries.push_back(result);
        }
        drop(lanes);
        self.arrived.notify_one();
    }

    /// Records what a running action learnt and goes on at once; it is durable with what is recorded next, or after
    /// [`NOTED_FOR`].
    pub(super) fn note(&self, run: RunId, events: Vec<Event>) {
        let mut lanes = self.lock();
        if !lanes.closed {
            lanes.deliveries.push_back(Delivery::Progress {
                run,
                events,
                durable: None,
            });
            let (count, since) = lanes.noted.unwrap_or((0, Instant::now()));
            lanes.noted = Some((count + 1, since));
        }
        drop(lanes);
        self.arrived.notify_one();
    }

    /// Records what a running action learnt, and waits until it is durable; `false`: it never will be.
    pub(super) fn record(&self, run: RunId, events: Vec<Event>) -> bool {
        let (sender, durable) = sync_channel(1);
        self.deliver(Delivery::Progress {
            run,
            events,
            durable: Some(sender),
        });
        durable.recv().is_ok()
    }

    /// Hands in a request; its answer arrives in what is returned, also when the loop has ended.
    ///
    /// # Errors
    ///
    /// Too many requests wait.
    pub(super) fn request(&self, request: Request) -> Result<Answered, Diagnostic> {
        let (reply, answered) = sync_channel(1);
        let envelope = Envelope { request, reply };
        let mut lanes = self.lock();
        if lanes.closed {
            drop(lanes);
            envelope.answer(Err(ended()));
            return Ok(answered);
        }
        if lanes.requests.len() >= REQUESTS_MAX {
            return Err(busy());
        }
        lanes.requests.push_back(envelope);
        drop(lanes);
        self.arrived.notify_one();
        Ok(answered)
    }

    /// Waits at most `wait` for anything to arrive.
    pub(super) fn wait(&self, wait: Duration) {
        self.gather(1, wait);
    }

    /// Takes out everything that is there.
    pub(super) fn take(&self) -> Mail {
        self.lock().take()
    }

    /// Lets more arrive until `wanted` messages are there or `window` is over, so that one sync serves them all.
    pub(super) fn gather(&self, wanted: usize, window: Duration) {
        let mut lanes = self.lock();
        let end = Instant::now() + window;
        while !lanes.hold(wanted) {
            let noted = lanes.noted.map(|(_, since)| since + NOTED_FOR);
            let end = noted.map_or(end, |noted| noted.min(end));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            lanes = self
                .arrived
                .wait_timeout(lanes, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Takes out requests alone: while the disk is full they are answered, results are kept.
    pub(super) fn take_requests(&self, wait: Duration) -> Vec<Envelope> {
        let mut lanes = self.lock();
        let deadline = Instant::now() + wait;
        while lanes.requests.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            lanes = self
                .arrived
                .wait_timeout(lanes, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        std::mem::take(&mut lanes.requests).into()
    }

    /// The loop has ended: whoever waits for it, or asks from now on, is told so.
    pub(super) fn close(&self) {
        let left = {
            let mut lanes = self.lock();
            lanes.closed = true;
            lanes.noted = None;
            // Whoever waits in there for something to be durable learns that it will not be.
            lanes.deliveries.clear();
            std::mem::take(&mut lanes.requests)
        };
        for envelope in left {
            envelope.answer(Err(ended()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody turns the loop any more.
fn ended() -> Diagnostic {
    Diagnostic::new(Kind::Unreachable, "ended", "the engine has ended")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;
    use crate::model::Timestamp;

    /// Long enough that nobody takes it for being woken.
    const LONG: Duration = Duration::from_secs(30);

    fn is_asleep(thread: &Path) -> bool {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
        stat.rsplit(')').next().unwrap().starts_with(" S")
    }

    #[test]
    fn whatever_arrives_wakes_who_waits() {
        let arrivals: [fn(&Inbox); 3] = [
            |inbox| {
                inbox.deliver(Delivery::Sealed {
                    unwritten: BTreeSet::new(),
                });
            },
            |inbox| inbox.note(RunId::following(None, Timestamp::default(), 1), Vec::new()),
            |inbox| drop(inbox.request(Request::Settle).unwrap()),
        ];
        for arrive in arrivals {
            let inbox = Arc::new(Inbox::default());
            let (sender, began) = channel();
            let waits = Arc::clone(&inbox);
            let waiting = thread::spawn(move || {
                let own = std::fs::read_link("/proc/thread-self").unwrap();
                sender.send(own).unwrap();
                let since = Instant::now();
                waits.wait(LONG);
                since.elapsed()
            });
            // What arrives before anybody waits is found without being woken.
            let thread = Path::new("/proc").join(began.recv().unwrap());
            while !is_asleep(&thread) {
                thread::yield_now();
            }
            arrive(&inbox);
            assert!(waiting.join().unwrap() < LONG, "nobody was woken");
        }
    }
}
