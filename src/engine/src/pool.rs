//! Executor threads: started when needed, kept for the next action, woken by nothing else.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::inbox::{Delivery, Inbox};
use super::prepares::Prepares;
use super::work::{Effects, NoticeResult, PushResult, Pushing, Telling, Work, not_performed};
use crate::machine::Event;
use crate::model::schedule::{Occurrence, Schedule};
use crate::model::{Diagnostic, Kind, RunId};
use crate::process::give_back_memory;

/// Most executor threads; the queue admits far fewer runs than that.
const THREADS_MAX: usize = 512;

/// Stack of an executor thread in bytes. Directories are nested 256 deep at most, which takes half of it in a build
/// that is not optimised.
const STACK_BYTES: usize = 4 * 1024 * 1024;

/// A look at what a schedule waits for.
#[derive(Debug)]
pub(super) struct ProbeRequest {
    /// What was seen last.
    pub(super) seen: Option<String>,
    /// Whether it is because a run of the schedule's own has ended.
    pub(super) own: bool,
}

enum Item {
    Perform(Box<Work>),
    Prepare(Arc<Schedule>, Occurrence),
    Probe(Arc<Schedule>, ProbeRequest),
    Tell(Box<Telling>),
    Push(Box<Pushing>),
    Seal,
    GiveBackMemory,
}

#[derive(Default)]
struct WaitingItems {
    work: VecDeque<Item>,
    idle: usize,
    closed: bool,
}

struct Shared {
    waiting: Mutex<WaitingItems>,
    arrived: Condvar,
    effects: Arc<dyn Effects>,
    prepares: Arc<dyn Prepares>,
    inbox: Arc<Inbox>,
}

/// The executor threads.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// A pool without threads yet.
    pub(super) fn new(
        effects: Arc<dyn Effects>,
        prepares: Arc<dyn Prepares>,
        inbox: Arc<Inbox>,
    ) -> Pool {
        let shared = Shared {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            effects,
            prepares,
            inbox,
        };
        Pool {
            shared: Arc::new(shared),
            threads: Vec::new(),
        }
    }

    /// Hands one action to an idle thread, or to a new one.
    pub(super) fn dispatch(&mut self, work: Work) {
        self.push(Item::Perform(Box::new(work)));
    }

    /// Has the run of a slot made, off the loop.
    pub(super) fn prepare(&mut self, schedule: &Arc<Schedule>, due: Occurrence) {
        self.push(Item::Prepare(Arc::clone(schedule), due));
    }

    /// Has what a schedule waits for looked at, off the loop.
    pub(super) fn probe(&mut self, schedule: &Arc<Schedule>, request: ProbeRequest) {
        self.push(Item::Probe(Arc::clone(schedule), request));
    }

    /// Has a notice told.
    pub(super) fn tell(&mut self, telling: Telling) {
        self.push(Item::Tell(Box::new(telling)));
    }

    /// Pushes a branch, off the loop.
    pub(super) fn push_branch(&mut self, pushing: Pushing) {
        self.push(Item::Push(Box::new(pushing)));
    }

    /// Forgets what was kept for a run that is not accepted.
    pub(super) fn forget(&self, run: RunId) {
        self.shared.prepares.forget(run);
    }

    /// Has everything that was written so far synced, off the loop.
    pub(super) fn seal(&mut self) {
        self.push(Item::Seal);
    }

    /// Closes what is held open only to be quicker, at once.
    pub(super) fn let_go(&self) {
        self.shared.effects.let_go();
    }

    /// Has memory that is not used any more given back, off the loop.
    pub(super) fn give_back_memory(&mut self) {
        self.push(Item::GiveBackMemory);
    }

    fn push(&mut self, item: Item) {
        let mut waiting = self.shared.lock();
        waiting.work.push_back(item);
        let starved = waiting.work.len() > waiting.idle;
        drop(waiting);
        if starved && self.threads.len() < THREADS_MAX {
            self.start_thread();
        }
        self.shared.arrived.notify_one();
    }

    fn start_thread(&mut self) {
        let shared = Arc::clone(&self.shared);
        let name = format!("executor-{}", self.threads.len());
        let builder = std::thread::Builder::new()
            .name(name)
            .stack_size(STACK_BYTES);
        match builder.spawn(move || shared.serve()) {
            Ok(thread) => self.threads.push(thread),
            Err(error) if self.threads.is_empty() => self.shared.refuse_all(&error.to_string()),
            Err(error) => tracing::warn!(%error, "no further executor thread could be started"),
        }
    }

    /// Lets every thread end once the work that waits is done.
    pub(super) fn close(self) {
        self.shared.lock().closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WaitingItems> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Item> {
        let mut waiting = self.lock();
        waiting.idle += 1;
        loop {
            if let Some(work) = waiting.work.pop_front() {
                waiting.idle -= 1;
                return Some(work);
            }
            if waiting.closed {
                return None;
            }
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn serve(&self) {
        while let Some(item) = self.next() {
            let work = match item {
                Item::Perform(work) => work,
                Item::Prepare(schedule, due) => {
                    self.prepare(&schedule, due);
                    continue;
                }
                Item::Probe(schedule, request) => {
                    self.probe(&schedule, &request);
                    continue;
                }
                Item::Tell(telling) => {
                    self.tell(&telling);
                    continue;
                }
                Item::Push(pushing) => {
                    self.push_branch(*pushing);
                    continue;
                }
                Item::GiveBackMemory => {
                    give_back_memory();
                    continue;
                }
                Item::Seal => {
                    let synced = catch_unwind(AssertUnwindSafe(|| self.effects.sync_files()));
                    let unwritten = synced.unwrap_or_else(|_| {
                        tracing::error!("syncing the thread files panicked");
                        BTreeSet::new()
                    });
                    self.inbox.deliver(Delivery::Sealed { unwritten });
                    continue;
                }
            };
            let run = work.spec.run;
            let event = self.perform(&work);
            let next = work.following(&event);
            let then = next.map(|next| Box::new(self.perform(&next)));
            drop(work);
            self.inbox.deliver(Delivery::Result { run, event, then });
        }
    }

    fn probe(&self, schedule: &Schedule, request: &ProbeRequest) {
        let seen = request.seen.as_deref();
        let probe = catch_unwind(AssertUnwindSafe(|| self.prepares.probe(schedule, seen)))
            .unwrap_or_else(|panic| Err(describe_panic(panic.as_ref())));
        self.inbox.deliver(Delivery::Probed {
            schedule: schedule.id.to_string(),
            own: request.own,
            probe,
        });
    }

    fn prepare(&self, schedule: &Schedule, due: Occurrence) {
        let made = catch_unwind(AssertUnwindSafe(|| self.prepares.prepare(schedule, due)))
            .unwrap_or_else(|panic| {
                let message = describe_panic(panic.as_ref());
                tracing::error!(schedule = &*schedule.id, message, "making a run panicked");
                Err(Diagnostic::new(Kind::Internal, "internal", message))
            });
        self.inbox.deliver(Delivery::Prepared {
            schedule: schedule.id.to_string(),
            made: Box::new(made),
        });
    }

    fn tell(&self, telling: &Telling) {
        let subject = telling.notices.subject();
        let told = catch_unwind(AssertUnwindSafe(|| self.effects.tell(telling)));
        let told = told.unwrap_or_else(|panic| {
            let message = describe_panic(panic.as_ref());
            tracing::error!(subject, message, "telling a notice panicked");
            NoticeResult::Failed {
                why: message,
                wait_ms: None,
            }
        });
        self.inbox.deliver(Delivery::Notified { subject, told });
    }

    fn push_branch(&self, pushing: Pushing) {
        let pushed = catch_unwind(AssertUnwindSafe(|| self.effects.push(&pushing)));
        let result = pushed.unwrap_or_else(|panic| PushResult::Failed {
            message: describe_panic(panic.as_ref()),
        });
        let push = Box::new(pushing.push);
        self.inbox.deliver(Delivery::Pushed { push, result });
    }

    fn perform(&self, work: &Work) -> Event {
        catch_unwind(AssertUnwindSafe(|| self.effects.perform(work))).unwrap_or_else(|panic| {
            let run = work.spec.run;
            let message = describe_panic(panic.as_ref());
            tracing::error!(%run, action = work.action.name(), message, "an action panicked");
            not_performed(&work.action, "internal", &message)
        })
    }

    fn refuse_all(&self, message: &str) {
        let refused: Vec<Item> = self.lock().work.drain(..).collect();
        for item in refused {
            self.inbox.deliver(match item {
                Item::Perform(work) => Delivery::Result {
                    run: work.spec.run,
                    event: not_performed(&work.action, "no_thread", message),
                    then: None,
                },
                Item::Prepare(schedule, _) => Delivery::Prepared {
                    schedule: schedule.id.to_string(),
                    made: Box::new(Err(Diagnostic::new(Kind::Internal, "no_thread", message))),
                },
                Item::Probe(schedule, request) => Delivery::Probed {
                    schedule: schedule.id.to_string(),
                    own: request.own,
                    probe: Err(message.to_owned()),
                },
                Item::Tell(telling) => Delivery::Notified {
                    subject: telling.notices.subject(),
                    told: NoticeResult::Failed {
                        why: message.to_owned(),
                        wait_ms: None,
                    },
                },
                Item::Push(pushing) => Delivery::Pushed {
                    push: Box::new(pushing.push),
                    result: PushResult::Failed {
                        message: message.to_owned(),
                    },
                },
                Item::Seal => Delivery::Sealed {
                    unwritten: BTreeSet::new(),
                },
                Item::GiveBackMemory => continue,
            });
        }
    }
}

fn describe_panic(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "internal error: {}",
        text.unwrap_or_else(|| "no message".to_owned())
    )
}
