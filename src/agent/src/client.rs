//! Turns, with their tries.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::MADE_UP_ID;
use crate::answer::Answer;
use crate::attempt::{Attempt, Failed, Told};
use crate::clean::Mask;
use crate::dialect::{Wire, wire};
use crate::error::{Failure, TurnError};
use crate::model::{Deadlines, Model};
use crate::pace::{Pace, SystemPace, TRIES_MAX, WAIT_MAX, own_wait};
use crate::request::Request;
use crate::stop::Stop;
use crate::turn::{Continuation, Delta, Turn, Usage};

/// Connections that are kept for later turns, for each server.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// Pools of connections, one for each deadline of connecting.
const POOLS_MAX: usize = 16;

/// Names looked up at once, each in a thread.
const LOOKUPS_MAX: usize = 16;

/// What all turns of a client have in common.
#[derive(Debug, Clone, Copy)]
pub struct ClientSettings {
    /// Bytes of an answer that are kept at most: text, arguments, reasoning.
    pub answer_bytes_max: usize,
    /// Whether `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are followed.
    pub proxy_from_environment: bool,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            answer_bytes_max: 8 * 1024 * 1024,
            proxy_from_environment: true,
        }
    }
}

/// Asks models. One is enough for a process: all its turns share one thread that drives their connections,
/// and its pools. Turns may run in any number of threads at once.
pub struct Client {
    settings: ClientSettings,
    pace: Arc<dyn Pace>,
    pools: Mutex<HashMap<Duration, reqwest::Client>>,
    handle: Handle,
    /// Dropping it ends the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// A client on the machine's clock.
    ///
    /// # Errors
    /// If the thread of connections cannot be started.
    pub fn new(settings: ClientSettings) -> io::Result<Self> {
        Self::with_pace(settings, Arc::new(SystemPace))
    }

    /// A client with a clock of the caller's, as tests need it.
    ///
    /// # Errors
    /// If the thread of connections cannot be started.
    pub fn with_pace(settings: ClientSettings, pace: Arc<dyn Pace>) -> io::Result<Self> {
        // Fails where a provider is installed already, which is as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        // A thread of its own: driven by the callers, all turns would stand still while one caller is busy
        // with what it was told.
        let thread = std::thread::Builder::new()
            .name("model-connections".into())
            .spawn(move || {
                _ = runtime.block_on(ended);
                // A name lookup may hang for long, and nobody waits for it any more.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            settings,
            pace,
            pools: Mutex::default(),
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Asks a model, and blocks until its answer has come, has failed for good, or `stop` is pulled. What
    /// comes in is told meanwhile, in the caller's thread.
    ///
    /// # Errors
    /// Every way in which a turn does not count is one [`Failure`].
    pub fn turn(
        &self,
        model: &Model,
        request: &Request,
        on_delta: &mut dyn FnMut(Delta),
        stop: &Stop,
    ) -> Result<Turn, TurnError> {
        let mut course = Course {
            client: self,
            model,
            request,
            stop,
            started: Instant::now(),
            tries: 0,
            lost: None,
        };
        course.run(on_delta).map_err(|failure| TurnError {
            model: model.alias.clone(),
            failure: Box::new(Mask::new(request, model.key.as_ref()).clean(failure)),
            tries: course.tries,
            usage: course.lost,
        })
    }

    /// The time to connect is a property of a pool, so there is one for each such deadline.
    fn pool(&self, connect: Duration) -> Result<reqwest::Client, Failure> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&connect) {
            return Ok(pool.clone());
        }
        if pools.len() >= POOLS_MAX {
            pools.clear();
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("workerctl/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .connect_timeout(connect)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(Duration::from_secs(30));
        if !self.settings.proxy_from_environment {
            builder = builder.no_proxy();
        }
        let pool = builder
            .build()
            .map_err(|_| Failure::Settings("TLS or the proxy cannot be set up".into()))?;
        pools.insert(connect, pool.clone());
        Ok(pool)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of that thread is nothing that a caller could mend.
            _ = thread.join();
        }
    }
}

/// One turn under way.
struct Course<'a> {
    client: &'a Client,
    model: &'a Model,
    request: &'a Request,
    stop: &'a Stop,
    started: Instant,
    tries: u32,
    /// Tokens of tries that do not count.
    lost: Option<Usage>,
}

impl Course<'_> {
    fn run(&mut self, on_delta: &mut dyn FnMut(Delta)) -> Result<Turn, Failure> {
        let wire = Arc::new(wire(self.model, self.request)?);
        let pool = self.client.pool(self.deadlines().connect)?;
        loop {
            if self.stop.is_stopped() {
                return Err(Failure::Stopped);
            }
            self.tries += 1;
            let failed = match self.attempt(&pool, &wire, on_delta) {
                Ok(turn) => return Ok(turn),
                Err(failed) => failed,
            };
            if let Some(usage) = failed.usage {
                *self.lost.get_or_insert_default() += usage;
            }
            self.wait(failed, on_delta)?;
        }
    }

    fn deadlines(&self) -> Deadlines {
        self.model.deadlines
    }

    fn left(&self) -> Duration {
        self.deadlines().turn.saturating_sub(self.started.elapsed())
    }

    /// Waits for the next try, or returns the failure that ends the turn.
    fn wait(&self, failed: Failed, on_delta: &mut dyn FnMut(Delta)) -> Result<(), Failure> {
        let pace = &self.client.pace;
        let mut failure = failed.failure;
        if let (Failure::RateLimited { until, .. }, Some(asked)) = (&mut failure, failed.asked) {
            *until = pace.now().checked_add(asked);
        }
        if !failed.again || self.tries >= TRIES_MAX {
            return Err(failure);
        }
        let wait = failed
            .asked
            .unwrap_or_else(|| own_wait(self.tries, pace.jitter()));
        // A wait that reaches the turn's deadline is not begun: the reason would be lost.
        if wait > WAIT_MAX || wait >= self.left() {
            return Err(failure);
        }
        on_delta(Delta::Again {
            code: failure.code(),
            wait,
        });
        if pace.wait(wait, self.stop) {
            Err(Failure::Stopped)
        } else {
            Ok(())
        }
    }

    fn attempt(
        &self,
        pool: &reqwest::Client,
        wire: &Arc<Wire>,
        on_delta: &mut dyn FnMut(Delta),
    ) -> Result<Turn, Failed> {
        let (told, receiver) = mpsc::channel();
        let attempt = Attempt {
            http: pool.clone(),
            wire: Arc::clone(wire),
            deadlines: self.deadlines(),
            left: self.left(),
            answer_bytes_max: self.client.settings.answer_bytes_max,
            now: self.client.pace.now(),
            stop: self.stop.clone(),
            told,
        };
        let _task = Abort(self.client.handle.spawn(attempt.run()));
        for told in receiver {
            match told {
                Told::Delta(delta) => on_delta(delta),
                Told::End(end) => return end.and_then(|answer| self.judge(answer)),
            }
            // What was told may lie far behind what came in, and may have pulled the switch itself.
            if self.stop.is_stopped() {
                return Err(Failed::new(Failure::Stopped, false));
            }
        }
        Err(Failed::new(Failure::Incomplete("its reader ended"), true))
    }

    fn judge(&self, answer: Answer) -> Result<Turn, Failed> {
        // The number of messages makes ids differ within a conversation.
        let made_up = format!("{MADE_UP_ID}{}-", self.request.messages.len());
        let (stop, calls) = answer.judge(&made_up).map_err(|failure| {
            let again = matches!(failure, Failure::Incomplete(_));
            Failed {
                usage: answer.usage,
                ..Failed::new(failure, again)
            }
        })?;
        let continuation = (!answer.parts.is_empty()).then(|| Continuation {
            dialect: self.model.dialect,
            model: self.model.name.clone(),
            parts: answer.parts,
        });
        Ok(Turn {
            text: answer.text,
            calls,
            usage: answer.usage,
            lost: self.lost,
            stop,
            continuation,
            tries: self.tries,
            duration: self.started.elapsed(),
        })
    }
}

/// Ends a task with its caller, also where the caller unwinds.
struct Abort(tokio::task::JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
