//! A session with a server: its start, the list of its tools, and calls, each within its deadline.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    ErrorData, Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestHandle, RunningService,
};
use rmcp::{RoleClient, ServiceError, ServiceExt as _};
use serde_json::{Map, Value};

use super::error::McpFailure;
use super::http::Http;
use super::pipes::{Pipes, Trouble};
use super::tools::Toolbox;
use super::{Connection, ServerBounds, ServerDeadlines};
use crate::clean;
use crate::stop::Stop;

/// Pages of tools that are read.
const PAGES_MAX: usize = 100;

/// A connection that `rmcp` drives.
pub(super) type Running = RunningService<RoleClient, ClientConfig>;

/// A session that has begun. Clones share it.
#[derive(Clone)]
pub(super) struct Session {
    peer: Peer<RoleClient>,
    trouble: Arc<Trouble>,
}

/// Everything that a start needs, to be moved to the I/O thread.
pub(super) struct Start {
    pub(super) server: String,
    pub(super) connection: Connection,
    pub(super) deadlines: ServerDeadlines,
    pub(super) bounds: ServerBounds,
    pub(super) stop: Stop,
}

impl Start {
    /// Begins the session and lists the tools, within the deadline.
    pub(super) async fn run(self) -> Result<(Running, Session, Toolbox), McpFailure> {
        let stop = self.stop.clone();
        let limit = self.deadlines.start;
        let trouble = Arc::new(Trouble::default());
        let started = tokio::select! {
            biased;
            () = stop.stopped() => return Err(McpFailure::Stopped),
            started = tokio::time::timeout(limit, self.begin(&trouble)) => started,
        };
        started
            .unwrap_or(Err(McpFailure::StartTimeout(limit)))
            .map_err(|failure| trouble.explain(failure))
    }

    async fn begin(
        self,
        trouble: &Arc<Trouble>,
    ) -> Result<(Running, Session, Toolbox), McpFailure> {
        let ours = Implementation::new("workerctl", env!("CARGO_PKG_VERSION"));
        // None of the capabilities, and the last version that begins with `initialize`, which all servers know.
        let config = ClientConfig::new(ClientCapabilities::default(), ours)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let limit_bytes = self.bounds.message_bytes_max;
        let begun = match self.connection {
            Connection::Pipes { input, output } => {
                let pipes = Pipes::new(input, output, limit_bytes, Arc::clone(trouble))?;
                config.serve(pipes).await
            }
            Connection::Http {
                url,
                headers,
                proxy_from_environment,
            } => {
                let http = Http::new(&url, &headers, proxy_from_environment, limit_bytes)?;
                config.serve(http).await
            }
        };
        let running = begun.map_err(|error| not_begun(error, trouble))?;
        let version = running
            .peer_info()
            .map(|info| info.protocol_version.clone());
        if let Some(version) = version
            && !(version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        {
            let version = clean::text(version.as_str(), &[]);
            let why = format!("it speaks version `{version}`, which is not known");
            return Err(McpFailure::Protocol(why));
        }
        let session = Session {
            peer: running.peer().clone(),
            trouble: Arc::clone(trouble),
        };
        let toolbox = session.list(&self.server, &self.bounds).await?;
        Ok((running, session, toolbox))
    }
}

impl Session {
    /// Lists the tools, page by page.
    async fn list(&self, server: &str, bounds: &ServerBounds) -> Result<Toolbox, McpFailure> {
        let mut listed = Vec::new();
        let mut cursor = None;
        let mut pages = 0;
        let is_whole = loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ListToolsRequest::with_param(params);
            let mut handle = self.send(ClientRequest::ListToolsRequest(request)).await?;
            let mut page = self.answer(&mut handle).await?.map_err(|error| {
                let why = clean::text(&error.message, &[]);
                McpFailure::Protocol(format!("it does not list its tools: {why}"))
            })?;
            let Value::Array(tools) = page["tools"].take() else {
                return Err(McpFailure::Protocol("its list of tools is no list".into()));
            };
            listed.extend(tools);
            pages += 1;
            let next = page["nextCursor"].as_str().filter(|next| !next.is_empty());
            if next.is_none() || listed.len() > bounds.tools_max {
                break true;
            }
            // Servers that take no notice of the cursor give the same page again and again.
            if pages >= PAGES_MAX || next == cursor.as_deref() {
                break false;
            }
            cursor = next.map(str::to_owned);
        };
        let mut toolbox = Toolbox::new(server, &listed, bounds);
        if !is_whole {
            toolbox.note(format!(
                "its list of tools has no end; {pages} pages were read"
            ));
        }
        Ok(toolbox)
    }

    /// Calls a tool. An error of the protocol is an answer like any other.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        stop: &Stop,
    ) -> Result<Result<Value, ErrorData>, McpFailure> {
        if stop.is_stopped() {
            return Err(McpFailure::Stopped);
        }
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut handle = self.send(request).await?;
        let (failure, reason) = tokio::select! {
            biased;
            () = stop.stopped() => (McpFailure::Stopped, "the run was stopped"),
            answer = self.answer(&mut handle) => return answer,
            () = tokio::time::sleep(limit) => {
                let tool = clean::text(tool, &[]);
                (McpFailure::CallTimeout { tool, after: limit }, "it took too long")
            }
        };
        // Not waited for: a server that reads no more would hold it up.
        tokio::spawn(handle.cancel(Some(reason.to_owned())));
        Err(failure)
    }

    async fn send(&self, request: ClientRequest) -> Result<RequestHandle<RoleClient>, McpFailure> {
        self.peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .map_err(|_| self.trouble.end())
    }

    /// The answer as JSON: the types of `rmcp` refuse a whole list or result for one odd part of it, and then
    /// keep it as it came.
    async fn answer(
        &self,
        handle: &mut RequestHandle<RoleClient>,
    ) -> Result<Result<Value, ErrorData>, McpFailure> {
        match (&mut handle.rx).await {
            Ok(Ok(result)) => serde_json::to_value(result)
                .map(Ok)
                .map_err(|_| McpFailure::Protocol("an answer cannot be read".into())),
            Ok(Err(ServiceError::McpError(error))) => Ok(Err(error)),
            Ok(Err(ServiceError::TransportSend(error))) => Err(error
                .error
                .downcast_ref::<McpFailure>()
                .cloned()
                .unwrap_or_else(|| self.trouble.end())),
            Ok(Err(_)) | Err(_) => Err(self.trouble.end()),
        }
    }
}

fn not_begun(error: ClientInitializeError, trouble: &Trouble) -> McpFailure {
    match error {
        ClientInitializeError::TransportError { error, .. } => error
            .error
            .downcast_ref::<McpFailure>()
            .cloned()
            .unwrap_or_else(|| trouble.end()),
        ClientInitializeError::ConnectionClosed(_) => trouble.end(),
        ClientInitializeError::JsonRpcError(error) => {
            let why = clean::text(&error.message, &[]);
            McpFailure::Protocol(format!("it does not begin a session: {why}"))
        }
        _ => McpFailure::Protocol("its answer to `initialize` is invalid".into()),
    }
}
