//! The routes of the API: one variant each, so that router, document and tests cannot disagree.

use axum::http::Method;

use crate::model::AccessRole;

/// One method on one path of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Who answers here, and which API it speaks.
    Version,
    /// The OpenAPI document.
    Openapi,
    /// What the engine does at the moment.
    Status,
    /// Counters and gauges for a monitoring system.
    Metrics,
    /// Workers with their skills.
    Workers,
    /// Schedules, by id.
    Schedules,
    /// What became of slots, newest first.
    Slots,
    /// Pauses a schedule.
    PauseSchedule,
    /// Lets a paused schedule go on.
    ResumeSchedule,
    /// Runs a schedule now, or for a past slot.
    TriggerSchedule,
    /// Past slots that may be run after all.
    Backfill,
    /// Runs, newest first.
    ListRuns,
    /// Accepts a run.
    SubmitRun,
    /// One run in full.
    ShowRun,
    /// Asks to end a run.
    CancelRun,
    /// A new run with the same inputs.
    RetryRun,
    /// Approves what a run waits with.
    ApproveRun,
    /// Refuses what a run waits with.
    DenyRun,
    /// Settles an unknown outcome.
    ResolveRun,
    /// Lands the commit that was kept of a run.
    LandRun,
    /// Drops what is kept of a run.
    DiscardRun,
    /// What a run changed.
    Diff,
    /// Lines of a run's log.
    Logs,
    /// What happens to a run, live.
    Events,
    /// Exactly what would run.
    Render,
    /// Tries what skills need.
    Probe,
    /// Reads the definitions again.
    Reload,
    /// Ends the engine once nothing runs.
    Drain,
}

impl Operation {
    /// Every operation, in the order of the document.
    pub const ALL: [Operation; 28] = [
        Operation::Version,
        Operation::Openapi,
        Operation::Status,
        Operation::Metrics,
        Operation::Workers,
        Operation::Schedules,
        Operation::Slots,
        Operation::PauseSchedule,
        Operation::ResumeSchedule,
        Operation::TriggerSchedule,
        Operation::Backfill,
        Operation::ListRuns,
        Operation::SubmitRun,
        Operation::ShowRun,
        Operation::CancelRun,
        Operation::RetryRun,
        Operation::ApproveRun,
        Operation::DenyRun,
        Operation::ResolveRun,
        Operation::LandRun,
        Operation::DiscardRun,
        Operation::Diff,
        Operation::Logs,
        Operation::Events,
        Operation::Render,
        Operation::Probe,
        Operation::Reload,
        Operation::Drain,
    ];

    /// Its method.
    pub fn method(self) -> Method {
        match self {
            Operation::Version
            | Operation::Openapi
            | Operation::Status
            | Operation::Metrics
            | Operation::Workers
            | Operation::Schedules
            | Operation::Slots
            | Operation::Backfill
            | Operation::ListRuns
            | Operation::ShowRun
            | Operation::Diff
            | Operation::Logs
            | Operation::Events => Method::GET,
            Operation::PauseSchedule
            | Operation::ResumeSchedule
            | Operation::TriggerSchedule
            | Operation::SubmitRun
            | Operation::CancelRun
            | Operation::RetryRun
            | Operation::ApproveRun
            | Operation::DenyRun
            | Operation::ResolveRun
            | Operation::LandRun
            | Operation::DiscardRun
            | Operation::Render
            | Operation::Probe
            | Operation::Reload
            | Operation::Drain => Method::POST,
        }
    }

    /// Its path; `{run}` stands for a run's id or a unique prefix or suffix of it.
    pub const fn path(self) -> &'static str {
        match self {
            Operation::Version => "/v1/version",
            Operation::Openapi => "/v1/openapi.json",
            Operation::Status => "/v1/status",
            Operation::Metrics => "/v1/metrics",
            Operation::Workers => "/v1/workers",
            Operation::Schedules => "/v1/schedules",
            Operation::Slots => "/v1/slots",
            Operation::PauseSchedule => "/v1/schedules/pause",
            Operation::ResumeSchedule => "/v1/schedules/resume",
            Operation::TriggerSchedule => "/v1/schedules/trigger",
            Operation::Backfill => "/v1/schedules/backfill",
            Operation::ListRuns | Operation::SubmitRun => "/v1/runs",
            Operation::ShowRun => "/v1/runs/{run}",
            Operation::CancelRun => "/v1/runs/{run}/cancel",
            Operation::RetryRun => "/v1/runs/{run}/retry",
            Operation::ApproveRun => "/v1/runs/{run}/approve",
            Operation::DenyRun => "/v1/runs/{run}/deny",
            Operation::ResolveRun => "/v1/runs/{run}/resolve",
            Operation::LandRun => "/v1/runs/{run}/land",
            Operation::DiscardRun => "/v1/runs/{run}/discard",
            Operation::Diff => "/v1/runs/{run}/diff",
            Operation::Logs => "/v1/runs/{run}/logs",
            Operation::Events => "/v1/runs/{run}/events",
            Operation::Render => "/v1/render",
            Operation::Probe => "/v1/probe",
            Operation::Reload => "/v1/reload",
            Operation::Drain => "/v1/drain",
        }
    }

    /// Its name in the document.
    pub const fn id(self) -> &'static str {
        match self {
            Operation::Version => "version",
            Operation::Openapi => "openapi",
            Operation::Status => "status",
            Operation::Metrics => "metrics",
            Operation::Workers => "workers",
            Operation::Schedules => "schedules",
            Operation::Slots => "slots",
            Operation::PauseSchedule => "pause_schedule",
            Operation::ResumeSchedule => "resume_schedule",
            Operation::TriggerSchedule => "trigger_schedule",
            Operation::Backfill => "backfill",
            Operation::ListRuns => "list_runs",
            Operation::SubmitRun => "submit_run",
            Operation::ShowRun => "show_run",
            Operation::CancelRun => "cancel_run",
            Operation::RetryRun => "retry_run",
            Operation::ApproveRun => "approve_run",
            Operation::DenyRun => "deny_run",
            Operation::ResolveRun => "resolve_run",
            Operation::LandRun => "land_run",
            Operation::DiscardRun => "discard_run",
            Operation::Diff => "diff",
            Operation::Logs => "logs",
            Operation::Events => "events",
            Operation::Render => "render",
            Operation::Probe => "probe",
            Operation::Reload => "reload",
            Operation::Drain => "drain",
        }
    }

    /// One sentence for people.
    pub const fn summary(self) -> &'static str {
        match self {
            Operation::Version => "Tell who answers here and which API it speaks",
            Operation::Openapi => "Give this document",
            Operation::Status => "Tell what the engine does at the moment",
            Operation::Metrics => "Tell engine and schedules in the text format of Prometheus",
            Operation::Workers => "List workers with their skills",
            Operation::Schedules => "List schedules with what is due next",
            Operation::Slots => "Tell what became of slots, newest first",
            Operation::PauseSchedule => "Pause a schedule",
            Operation::ResumeSchedule => "Let a paused schedule go on",
            Operation::TriggerSchedule => "Run a schedule now, or for a past slot",
            Operation::Backfill => "List past slots that may be run after all, oldest first",
            Operation::ListRuns => "List runs, newest first",
            Operation::SubmitRun => "Accept a run; it is durable when the answer arrives",
            Operation::ShowRun => "Show one run in full",
            Operation::CancelRun => "Ask to end a run",
            Operation::RetryRun => {
                "Accept a new run with the same inputs and the present definition"
            }
            Operation::ApproveRun => "Approve what a run waits with, as it was shown",
            Operation::DenyRun => "Refuse what a run waits with",
            Operation::ResolveRun => "Settle a run whose outcome is unknown",
            Operation::LandRun => "Land the commit that was kept of a run",
            Operation::DiscardRun => "Drop what is kept of a run that has not landed",
            Operation::Diff => "Give what a run changed as a patch",
            Operation::Logs => "Read lines of a run's log",
            Operation::Events => {
                "Follow a run from the first line of its log until it has ended, as server-sent events"
            }
            Operation::Render => "Check and render everything without accepting anything",
            Operation::Probe => "Try what skills need, where the engine runs",
            Operation::Reload => "Read definitions and configuration again",
            Operation::Drain => "Start nothing new, wait for what runs, end the engine",
        }
    }

    /// Whether its path names a run.
    pub fn names_run(self) -> bool {
        self.path().contains("{run}")
    }

    /// Who may ask for it: whoever may look, where nothing can be different after it.
    pub const fn role(self) -> AccessRole {
        if self.changes() {
            AccessRole::Admin
        } else {
            AccessRole::Read
        }
    }

    /// Whether runs or definitions may be different after it.
    pub(super) const fn changes(self) -> bool {
        match self {
            Operation::PauseSchedule
            | Operation::ResumeSchedule
            | Operation::TriggerSchedule
            | Operation::SubmitRun
            | Operation::CancelRun
            | Operation::RetryRun
            | Operation::ApproveRun
            | Operation::DenyRun
            | Operation::ResolveRun
            | Operation::LandRun
            | Operation::DiscardRun
            | Operation::Reload
            | Operation::Drain => true,
            Operation::Version
            | Operation::Openapi
            | Operation::Status
            | Operation::Metrics
            | Operation::Workers
            | Operation::Schedules
            | Operation::Slots
            | Operation::Backfill
            | Operation::ListRuns
            | Operation::ShowRun
            | Operation::Diff
            | Operation::Logs
            | Operation::Events
            | Operation::Render
            | Operation::Probe => false,
        }
    }
}
