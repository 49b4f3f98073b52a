//! Turns, with their tries.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::SYNTHETIC_ID;
use crate::answer::{Answer, NESTING_MAX, nests_beyond};
use crate::attempt::{Attempt, FailedTry, Progress};
use crate::clean::Mask;
use crate::dialect::wire;
use crate::error::{Failure, Halt, TurnError};
use crate::model::{Deadlines, Model};
use crate::pace::{Pace, SystemPace, TRIES_MAX, WAIT_MAX, own_wait};
use crate::request::Request;
use crate::stop::Stop;
use crate::turn::{Continuation, Delta, RequestUsage, Turn};
use crate::wire::Wire;

/// Connections that are kept for later turns, for each server.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// Pools of connections, one for each deadline of connecting.
const POOLS_MAX: usize = 16;

/// Names looked up at once, each in a thread.
const LOOKUPS_MAX: usize = 16;

/// Settings shared by all turns of a client.
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

/// What a turn needs from its caller; all of it is called in the caller's thread.
pub trait TurnHost {
    /// Called before each request of the turn, retries included, with the tokens that it is expected to have.
    ///
    /// # Errors
    /// The request must not be sent; the turn ends with [`Failure::Halted`].
    fn before_request(&mut self, input_tokens: u64) -> Result<(), Halt>;
    /// Called with progress of the answer.
    fn delta(&mut self, delta: Delta);
    /// Called after each request whose answer does not count, before another one is sent.
    fn request_failed(&mut self, request: &FailedRequest);
}

/// A request whose answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedRequest {
    /// The code of the failure.
    pub code: &'static str,
    /// What it cost all the same; nothing if the server did not accept it.
    pub usage: RequestUsage,
}

/// Allows everything, and hands on what the model says.
struct OnDelta<'a>(&'a mut dyn FnMut(Delta));

impl TurnHost for OnDelta<'_> {
    fn before_request(&mut self, _input_tokens: u64) -> Result<(), Halt> {
        Ok(())
    }

    fn delta(&mut self, delta: Delta) {
        (self.0)(delta);
    }

    fn request_failed(&mut self, _request: &FailedRequest) {}
}

/// A client for language models. One per process is enough: its turns share one I/O thread and its connection
/// pools, and any number of threads may run turns at once.
pub struct Client {
    settings: ClientSettings,
    pace: Arc<dyn Pace>,
    pools: Mutex<HashMap<(Duration, bool), reqwest::Client>>,
    handle: Handle,
    /// Dropping it ends the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// A client on the system clock.
    ///
    /// # Errors
    /// If the I/O thread cannot be started.
    pub fn new(settings: ClientSettings) -> io::Result<Self> {
        Self::with_pace(settings, Arc::new(SystemPace))
    }

    /// A client with an injected clock, for tests.
    ///
    /// # Errors
    /// If the I/O thread cannot be started.
    pub fn with_pace(settings: ClientSettings, pace: Arc<dyn Pace>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        // A thread of its own: if callers drove the runtime, a caller that is busy in its callback would stall
        // every other turn.
        let thread = std::thread::Builder::new()
            .name("model-io".into())
            .spawn(move || {
                _ = runtime.block_on(ended);
                // A plain drop would wait for name lookups that hang.
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

    /// Sends the request and blocks until the turn succeeds, fails for good, or is stopped. `on_delta` is
    /// called meanwhile, in the caller's thread.
    ///
    /// # Errors
    /// One [`Failure`] for each way in which a turn does not count.
    pub fn turn(
        &self,
        model: &Model,
        request: &Request,
        on_delta: &mut dyn FnMut(Delta),
        stop: &Stop,
    ) -> Result<Turn, TurnError> {
        let input_tokens = request.estimated_tokens(0);
        self.metered_turn(model, (request, input_tokens), &mut OnDelta(on_delta), stop)
    }

    /// Does the same for a caller that counts what each request costs. `input_tokens` is what the request is expected to
    /// have: it is counted where the server does not report it.
    ///
    /// # Errors
    /// One [`Failure`] for each way in which a turn does not count.
    pub fn metered_turn(
        &self,
        model: &Model,
        (request, input_tokens): (&Request, u64),
        host: &mut dyn TurnHost,
        stop: &Stop,
    ) -> Result<Turn, TurnError> {
        let mut running = RunningTurn {
            client: self,
            model,
            request,
            input_tokens,
            stop,
            started: Instant::now(),
            tries: 0,
        };
        running.run(host).map_err(|failure| TurnError {
            model: model.alias.clone(),
            failure: Box::new(Mask::new(request, model.key.as_ref()).clean(failure)),
            tries: running.tries,
        })
    }

    /// `reqwest` takes the connect timeout per client, so there is one pool per deadline.
    pub(crate) fn pool(
        &self,
        connect: Duration,
        is_secure: bool,
    ) -> Result<reqwest::Client, Failure> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&(connect, is_secure)) {
            return Ok(pool.clone());
        }
        if pools.len() >= POOLS_MAX {
            pools.clear();
        }
        let pool = http(connect, self.settings.proxy_from_environment, is_secure)
            .map_err(|_| Failure::Settings(NO_TLS.into()))?;
        pools.insert((connect, is_secure), pool.clone());
        Ok(pool)
    }

    /// The wall clock.
    pub(crate) fn now(&self) -> SystemTime {
        self.pace.now()
    }

    /// Has the I/O thread do this and blocks until it is done; `None`: that thread has ended.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, result) = mpsc::channel();
        let _task = Abort(self.handle.spawn(async move {
            // Fails only if the caller has returned.
            _ = done.send(task.await);
        }));
        result.recv().ok()
    }
}

/// Why no connection can be had: most likely, the machine has no certificates of authorities.
pub(crate) const NO_TLS: &str = "TLS or the proxy cannot be set up: the package `ca-certificates` of the machine brings what TLS needs";

/// A pool of connections that keeps to the guarantees of this package; `is_secure`: to servers with TLS.
pub(crate) fn http(
    connect: Duration,
    proxy_from_environment: bool,
    is_secure: bool,
) -> reqwest::Result<reqwest::Client> {
    // Fails if a provider is already installed, which is fine.
    _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("workerctl/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .connect_timeout(connect)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(Duration::from_secs(30));
    if !proxy_from_environment {
        builder = builder.no_proxy();
    }
    if !is_secure {
        // Small machines have no certificates, and servers without TLS need none.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The caller cannot do anything about a panic of that thread.
            _ = thread.join();
        }
    }
}

/// A turn in progress.
struct RunningTurn<'a> {
    client: &'a Client,
    model: &'a Model,
    request: &'a Request,
    input_tokens: u64,
    stop: &'a Stop,
    started: Instant,
    tries: u32,
}

impl RunningTurn<'_> {
    fn run(&mut self, host: &mut dyn TurnHost) -> Result<Turn, Failure> {
        let wire = Arc::new(wire(self.model, self.request)?);
        let is_secure = wire.url.scheme() == "https";
        let pool = self.client.pool(self.deadlines().connect, is_secure)?;
        loop {
            if self.stop.is_stopped() {
                return Err(Failure::Stopped);
            }
            host.before_request(self.input_tokens)
                .map_err(Failure::Halted)?;
            self.tries += 1;
            let failed = match self.attempt(&pool, &wire, host) {
                Ok(turn) => return Ok(turn),
                Err(failed) => failed,
            };
            host.request_failed(&FailedRequest {
                code: failed.failure.code(),
                usage: failed.usage,
            });
            self.wait(failed, host)?;
        }
    }

    fn deadlines(&self) -> Deadlines {
        self.model.deadlines
    }

    fn left(&self) -> Duration {
        self.deadlines().turn.saturating_sub(self.started.elapsed())
    }

    /// Waits for the next try, or returns the failure that ends the turn.
    fn wait(&self, failed: FailedTry, host: &mut dyn TurnHost) -> Result<(), Failure> {
        let pace = &self.client.pace;
        let mut failure = failed.failure;
        if let (Failure::RateLimited { until, .. }, Some(after)) =
            (&mut failure, failed.retry_after)
        {
            *until = pace.now().checked_add(after);
        }
        if !failed.again || self.tries >= TRIES_MAX {
            return Err(failure);
        }
        let wait = failed
            .retry_after
            .unwrap_or_else(|| own_wait(self.tries, pace.jitter()));
        // Not worth waiting beyond the turn's deadline: that would replace the reason by `turn_timeout`.
        if wait > WAIT_MAX || wait >= self.left() {
            return Err(failure);
        }
        host.delta(Delta::Again {
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
        host: &mut dyn TurnHost,
    ) -> Result<Turn, FailedTry> {
        let (progress, receiver) = mpsc::channel();
        let attempt = Attempt {
            http: pool.clone(),
            wire: Arc::clone(wire),
            deadlines: self.deadlines(),
            left: self.left(),
            answer_bytes_max: self.client.settings.answer_bytes_max,
            input_tokens: self.input_tokens,
            now: self.client.pace.now(),
            stop: self.stop.clone(),
            progress,
        };
        let _task = Abort(self.client.handle.spawn(attempt.run()));
        let mut stopped = false;
        for event in receiver {
            match event {
                // What came before the stop still has to be counted.
                Progress::Delta(_) if stopped => {}
                Progress::Delta(delta) => host.delta(delta),
                Progress::End(end) if stopped => {
                    let metered = |answer: Answer| answer.metered(self.input_tokens);
                    return Err(FailedTry {
                        usage: end.map_or_else(|failed| failed.usage, metered),
                        ..FailedTry::new(Failure::Stopped, false)
                    });
                }
                Progress::End(end) => return end.and_then(|answer| self.conclude(answer)),
            }
            // The callback may lag far behind the stream, and may itself have called `stop`.
            stopped = stopped || self.stop.is_stopped();
        }
        Err(FailedTry {
            usage: Answer::new(0).metered(self.input_tokens),
            ..FailedTry::new(Failure::Incomplete("its reader ended"), true)
        })
    }

    fn conclude(&self, answer: Answer) -> Result<Turn, FailedTry> {
        // The number of messages makes ids differ within a conversation.
        let id_prefix = format!("{SYNTHETIC_ID}{}-", self.request.messages.len());
        let usage = answer.metered(self.input_tokens);
        let failed = |failure, again| FailedTry {
            usage,
            ..FailedTry::new(failure, again)
        };
        let (stop, calls) = answer.conclude(&id_prefix).map_err(|failure| {
            let again = matches!(failure, Failure::Incomplete(_));
            failed(failure, again)
        })?;
        if answer
            .parts
            .iter()
            .any(|part| nests_beyond(part, NESTING_MAX))
        {
            let failure = Failure::Incomplete("it is nested too deeply");
            return Err(failed(failure, true));
        }
        let continuation = (!answer.parts.is_empty()).then(|| Continuation {
            dialect: self.model.dialect,
            model: self.model.name.clone(),
            parts: answer.parts,
        });
        Ok(Turn {
            text: answer.text,
            calls,
            usage: Some(usage.tokens),
            estimated: usage.is_estimated,
            stop,
            continuation,
            tries: self.tries,
            duration: self.started.elapsed(),
        })
    }
}

/// Aborts the task when its owner goes.
pub(crate) struct Abort(pub(crate) tokio::task::JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
