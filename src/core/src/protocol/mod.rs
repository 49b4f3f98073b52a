//! Request and reply types, their version, and the trait [`Control`] that every face of the program uses.
//!
//! The JSON forms are an API: snake_case, ids in full, times in RFC 3339, unknown fields refused in
//! requests and ignored in replies.

mod calendar;
mod catalog;
mod control;
mod forgetting;
mod logs;
mod metrics;
mod names;
mod plan;
mod probe;
mod requests;
mod results;
mod runs;
mod schedules;
mod skills;
mod stats;
mod unique;
mod upcoming;
mod watch;
mod web;

pub use calendar::{Calendar, CalendarCell, CalendarQuery, HALF_HOUR_MS, SlotCounts};
pub use catalog::{InputView, OutputView, SkillView, WorkerView};
pub use control::Control;
pub use forgetting::{ClockDoubt, ForgetRequest, Forgot};
pub use logs::{LogsPage, LogsQuery, TAIL_LINES_MAX};
pub use metrics::{METRICS_CONTENT_TYPE, metrics, metrics_of_nobody};
pub use names::{LATEST, refuse_latest};
pub use plan::SchedulePlan;
pub use probe::{NotifyEvent, NotifyTest, Probe, ProbeRequest};
pub use requests::{
    ApproveRequest, CancelRequest, DenyRequest, Discarded, Landed, ReloadReport, Rendered,
    RenderedCheck, RenderedInstructions, ResolveRequest, RunsQuery, SignedRequest, Status,
    SubmitRequest, Submitted, Substitution, TreesView,
};
pub use results::{ChangeStatus, Changes, DiffQuery, OutputFile, OutputSource, PathChange};
pub use runs::{
    ApprovalView, AttemptView, AuditEntry, PhaseView, RunDetail, RunSummary, RunsPage, SpentView,
    TurnView,
};
pub use schedules::{
    BackfillQuery, BackfillSlot, BlockedSlot, FailingView, LastFire, NextDue, OverdueView,
    PauseRequest, PauseView, PolicyName, ResumeRequest, SCHEDULES_MAX, ScheduleView,
    SchedulesQuery, SlotView, SlotsPage, SlotsQuery, TriggerRequest, UndeliveredView, WaitingEvent,
};
pub use skills::{
    ListedSkill, OmittedFile, RootView, ShownSkill, SkillFileView, SkillList, SkillWithRuns,
    SkillsPage, SkillsQuery,
};
pub use stats::{Bucket, Counted, DayCounts, STATS_MAX, StatsBy, StatsLine, StatsQuery};
pub use unique::Unique;
pub use upcoming::{
    BlockedSchedule, ExplainQuery, ExplainedSchedule, NextQuery, NextSlot, NextSlots, OmittedSlots,
    SearchedUntil,
};
pub use watch::{Change, FollowQuery, LogLine, LogStream, RunLine, WatchEvent};
pub use web::{
    WebCode, WebCodeRequest, WebControl, WebLoggedOut, WebLogin, WebLoginRequest, WebOpenRequest,
    WebOpened, WebSessionView,
};

/// Code of the error that says that a run's log cannot be read; the run itself is not touched by that.
pub const THREAD_UNREADABLE: &str = "thread_unreadable";

/// Version of the API; part of every path.
pub const API_VERSION: &str = "v1";
