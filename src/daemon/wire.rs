//! What both ends of the socket agree on, beside the types of the protocol.

use hyper::header::HeaderName;
use serde::{Deserialize, Serialize};

use crate::model::{Diagnostic, Kind};

/// Code of a refusal by an engine that is still recovering.
pub(super) const STARTING: &str = "starting";
/// The first line that is told to a client that wants none: no log gets so far.
pub(super) const NO_LINES: u64 = u64::MAX;

/// How many lines a log has.
pub(super) const LINES_HEADER: HeaderName = HeaderName::from_static("workerctl-lines");
/// How many paths a run changed.
pub(super) const PATHS_HEADER: HeaderName = HeaderName::from_static("workerctl-paths");
/// The path of an output relative to the workspace, in percent form.
pub(super) const PATH_HEADER: HeaderName = HeaderName::from_static("workerctl-path");
/// Where the file of an output was read.
pub(super) const SOURCE_HEADER: HeaderName = HeaderName::from_static("workerctl-source");
/// Whether that is another file than the run left.
pub(super) const CHANGED_HEADER: HeaderName = HeaderName::from_static("workerctl-changed");

/// Who answers at a socket. Read by clients of every version, so fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct VersionReply {
    /// Always `workerctl`.
    pub(super) name: String,
    /// Version of the program.
    pub(super) version: String,
    /// Version of the API.
    pub(super) api: String,
    /// Absolute path of the workspace that is served.
    ///
    /// Empty where nobody is known who asks.
    pub(super) workspace: String,
    /// Process id of the engine; absent where nobody is known who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    /// Whether it has recovered and answers more than this.
    #[serde(default)]
    pub(super) ready: bool,
    /// `daemon`, or `in_process` where it ends with the command that it is in.
    #[serde(default)]
    pub(super) host: String,
    /// Digest of the files of the web page; null where it is not served.
    #[serde(default)]
    pub(super) web: Option<String>,
}

/// An engine that does not answer yet.
pub(super) fn starting() -> Diagnostic {
    Diagnostic::new(Kind::Conflict, STARTING, "the engine is still recovering")
        .hint("try again in a second")
}
