//! The engine inside a command: it serves the same socket while it lives, so that others find it.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::dialling::ConnectOptions;
use super::server::{Identity, Limits, Server};
use super::socket::{Endpoint, SocketPlaces};
use crate::engine::{self, Engine, EngineOptions, Host};
use crate::model::{Diagnostic, RunId};
use crate::protocol::{
    BackfillQuery, BackfillSlot, CancelRequest, Control, Discarded, Landed, LogLine, LogsQuery,
    PauseRequest, Probe, ReloadReport, Rendered, ResolveRequest, ResumeRequest, RunDetail,
    RunSummary, RunsQuery, ScheduleView, SchedulesQuery, SlotView, SlotsQuery, Status,
    SubmitRequest, Submitted, TriggerRequest, WatchEvent, WorkerView,
};

/// An engine that lives in this process. Dropping it drains the engine and gives its locks back.
pub struct HostedControl {
    control: Arc<dyn Control>,
    server: Option<Server>,
    engine: Option<Engine>,
    _endpoint: Endpoint,
}

impl HostedControl {
    /// Takes the socket, starts the engine, serves.
    pub(super) fn start(options: &ConnectOptions) -> Result<HostedControl, Diagnostic> {
        let path = SocketPlaces {
            workspace: &options.workspace,
            state_dir: &options.state_dir,
            explicit: options.socket.as_deref(),
            environment: &options.environment,
        }
        .of_engine()?;
        // Refused before anything is made in a state directory that is not the other's.
        engine::refuse_unfit(&options.workspace, &options.state_dir)?;
        let endpoint = Endpoint::bind_as(&path, Host::InProcess)?;
        let server = Server::start(
            endpoint.listener()?,
            Identity::of_process(&options.workspace),
            Limits::default(),
            None,
        )?;
        let engine = Engine::start(EngineOptions {
            workspace: options.workspace.clone(),
            state_dir: options.state_dir.clone(),
            socket: Some(path),
            host: Host::InProcess,
            environment: options.environment.clone(),
        })?;
        let control = engine.control();
        server.open(Arc::clone(&control));
        Ok(HostedControl {
            control,
            server: Some(server),
            engine: Some(engine),
            _endpoint: endpoint,
        })
    }
}

impl Drop for HostedControl {
    fn drop(&mut self) {
        // The server stays until the engine has ended: others are told `draining` and see their runs end.
        // An engine that was drained on request refuses a second drain; either way it has ended then.
        if let Err(error) = self.control.drain() {
            tracing::debug!(%error, "the engine in this process was not drained");
        }
        drop(self.server.take());
        if let Some(engine) = self.engine.take()
            && let Err(error) = engine.join()
        {
            tracing::error!(%error, "the engine in this process ended in disorder");
        }
    }
}

impl Control for HostedControl {
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        self.control.submit(request)
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        self.control.render(request)
    }

    fn runs(&self, query: &RunsQuery) -> Result<Vec<RunSummary>, Diagnostic> {
        self.control.runs(query)
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        self.control.run(run)
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        self.control.cancel(run, request)
    }

    fn retry(&self, run: &str) -> Result<Submitted, Diagnostic> {
        self.control.retry(run)
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        self.control.resolve(run, request)
    }

    fn land(&self, run: &str) -> Result<Landed, Diagnostic> {
        self.control.land(run)
    }

    fn discard(&self, run: &str) -> Result<Discarded, Diagnostic> {
        self.control.discard(run)
    }

    fn diff(&self, run: &str) -> Result<String, Diagnostic> {
        self.control.diff(run)
    }

    fn logs(&self, run: &str, query: &LogsQuery) -> Result<Vec<LogLine>, Diagnostic> {
        self.control.logs(run, query)
    }

    fn watch(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.control.watch(run, callback)
    }

    fn watch_changes(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.control.watch_changes(run, callback)
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        self.control.status()
    }

    fn probe(&self) -> Result<Vec<Probe>, Diagnostic> {
        self.control.probe()
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        self.control.workers()
    }

    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        self.control.schedules(query)
    }

    fn slots(&self, query: &SlotsQuery) -> Result<Vec<SlotView>, Diagnostic> {
        self.control.slots(query)
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        self.control.pause(request)
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        self.control.resume(request)
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        self.control.trigger(request)
    }

    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        self.control.backfill(query)
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        self.control.reload()
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        self.control.drain()
    }
}
