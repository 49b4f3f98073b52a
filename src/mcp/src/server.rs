//! The requests of the protocol, each led to the room's part that answers it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use tokio::time::sleep;

use super::answer::{apart, internal};
use super::engines::Engines;
use super::refreshing::Catalogs;
use super::skills::Skills;
use super::unwritten::Unwritten;
use super::{asking, cursor, extension, message, prompts, resources, tools};
use crate::catalog::Catalog;
use crate::catalog::roots::trust::TrustFiles;

/// Calls that may be under way at once.
const CALLS_MAX: usize = 256;

/// Code of the refusal of one call more.
pub(super) const BUSY: i32 = -32_000;

/// Answers one client.
pub(super) struct Server {
    catalogs: Catalogs,
    pub(super) engines: Arc<Engines>,
    state_dir: PathBuf,
    pub(super) ended: Arc<AtomicBool>,
    /// The connection, for runs that it starts: no secret, as the session's own id is one.
    pub(super) chat_id: Arc<str>,
    calls: Arc<AtomicUsize>,
    /// Whether somebody tells the client of changes already.
    telling: AtomicBool,
    /// Skills of the newest catalog that was asked for, for clients whose person cannot be asked and for others.
    arranged: Arc<Mutex<[Option<Arc<Skills>>; 2]>>,
    /// What waits for its reader, where all answers go one way. Over HTTP each has its own.
    unwritten: Option<Arc<Unwritten>>,
}

/// Goes with a request of a session: set once the session has ended. Cancellations after a disconnect are not
/// attributed to the client.
#[derive(Clone)]
pub(super) struct Disconnected(pub(super) Arc<AtomicBool>);

/// How often it is looked whether a client that is told of changes has left.
const LEFT_LOOK: Duration = Duration::from_mins(1);

/// One call that is under way.
struct Call(Arc<AtomicUsize>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn chat_id() -> Arc<str> {
    Arc::from(format!("mcp-{:.16}", super::http::token::random()))
}

impl Server {
    pub(super) fn new(
        catalogs: Catalogs,
        engines: Arc<Engines>,
        state_dir: &Path,
        ended: Arc<AtomicBool>,
    ) -> Server {
        Server {
            catalogs,
            engines,
            state_dir: state_dir.to_owned(),
            ended,
            chat_id: chat_id(),
            calls: Arc::default(),
            telling: AtomicBool::new(false),
            arranged: Arc::default(),
            unwritten: None,
        }
    }

    /// Makes no more answers than are read.
    pub(super) fn answering_within(self, unwritten: Arc<Unwritten>) -> Server {
        Server {
            unwritten: Some(unwritten),
            ..self
        }
    }

    /// Waits until there is space for another answer.
    pub(super) async fn space(&self) {
        if let Some(unwritten) = &self.unwritten {
            unwritten.space().await;
        }
    }

    /// Answers another client from the same definitions, within the same bounds.
    pub(super) fn another(&self) -> Server {
        Server {
            catalogs: self.catalogs.clone(),
            engines: Arc::clone(&self.engines),
            state_dir: self.state_dir.clone(),
            ended: Arc::clone(&self.ended),
            chat_id: chat_id(),
            calls: Arc::clone(&self.calls),
            telling: AtomicBool::new(false),
            arranged: Arc::clone(&self.arranged),
            unwritten: self.unwritten.clone(),
        }
    }

    /// How many calls are under way, of all that answer from the same definitions.
    pub(super) fn calls(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.calls)
    }

    fn begin(&self) -> Result<Call, ErrorData> {
        let call = Call(Arc::clone(&self.calls));
        if self.calls.fetch_add(1, Ordering::AcqRel) >= CALLS_MAX {
            let why = format!("more than {CALLS_MAX} calls at once: try again");
            return Err(ErrorData::new(ErrorCode(BUSY), why, None));
        }
        Ok(call)
    }

    /// The skills of the current definitions; waits for them to be read for the first time.
    pub(super) async fn skills(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Skills>, ErrorData> {
        let mut catalogs = self.catalogs.clone();
        let read = catalogs.wait_for(Option::is_some).await.map_err(internal)?;
        let Some(catalog) = read.clone() else {
            return Err(internal("definitions are not read"));
        };
        drop(read);
        let can_ask = asking::can_ask(context);
        let mut arranged = self.arranged.lock().unwrap_or_else(PoisonError::into_inner);
        let [not_asked, asked] = &mut *arranged;
        let place = if can_ask { asked } else { not_asked };
        if let Some(known) = place
            .as_ref()
            .filter(|one| Arc::ptr_eq(&one.catalog, &catalog))
        {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(Skills::of(catalog, can_ask, &self.state_dir));
        *place = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Asks about skills on a thread that may wait for files.
    pub(super) async fn about<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        ask: impl FnOnce(&Skills, &Arc<Engines>) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let skills = self.skills(context).await?;
        let engines = Arc::clone(&self.engines);
        // Files may be large: until an answer that holds one is handed over, no more than a few of them are made.
        let _turn = match &self.unwritten {
            Some(unwritten) => unwritten.turn().await,
            None => None,
        };
        apart(move || ask(&skills, &engines)).await
    }

    /// The same for what hands skills out, which looks at what has been trusted.
    pub(super) async fn handing<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        ask: impl FnOnce(&Skills, &TrustFiles) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        self.about(context, move |skills, _| ask(skills, skills.trust()))
            .await
    }

    /// Waits for other definitions than those that were known; `false`: there will be none.
    async fn changed(catalogs: &mut Catalogs, known: &mut Option<Arc<Catalog>>) -> bool {
        loop {
            if catalogs.changed().await.is_err() {
                return false;
            }
            let now = catalogs.borrow_and_update().clone();
            let first = known.is_none();
            *known = now;
            // Whoever asked before the first reading has waited for it.
            if !first {
                return true;
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_skills()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("workerctl", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Skills of this workspace. `list_skills` finds them, `skill` loads the instructions of one, \
                 `use_skill` runs one; `list_runs`, `get_run` and `read_thread` tell of runs.",
            )
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        let mut agreed = request;
        agreed.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(agreed);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        cursor::none(request)?;
        let _call = self.begin()?;
        let tools = self.about(&context, |skills, _| tools::all(skills)).await?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _call = self.begin()?;
        self.call(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let _call = self.begin()?;
        let cursor = request.and_then(|request| request.cursor);
        self.about(&context, move |skills, _| {
            prompts::list(skills, cursor.as_deref())
        })
        .await?
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let _call = self.begin()?;
        let got = self.about(&context, move |skills, _| {
            prompts::get(skills, &request.name, request.arguments)
        });
        got.await?.map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let _call = self.begin()?;
        let cursor = request.and_then(|request| request.cursor);
        self.about(&context, move |skills, engines| {
            resources::list(skills, engines, cursor.as_deref())
        })
        .await?
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        cursor::none(request)?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _call = self.begin()?;
        let read = self.about(&context, move |skills, engines| {
            resources::read(skills, engines, &request.uri)
        });
        read.await?.map(ReadResourceResponse::from)
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let _call = self.begin()?;
        let cursor = request.and_then(|request| request.cursor);
        self.handing(&context, move |skills, trust| {
            extension::list(skills, trust, cursor.as_deref())
        })
        .await?
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let _call = self.begin()?;
        self.handing(&context, move |skills, trust| {
            extension::get(skills, trust, &request.uri)
        })
        .await?
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        Err(message::unrecognised(&request.method, version.as_ref()))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.telling.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut catalogs = self.catalogs.clone();
        tokio::spawn(async move {
            let mut known = catalogs.borrow_and_update().clone();
            loop {
                tokio::select! {
                    changed = Server::changed(&mut catalogs, &mut known) => if !changed {
                        return;
                    },
                    () = sleep(LEFT_LOOK) => {
                        if context.peer.is_transport_closed() {
                            return;
                        }
                        continue;
                    }
                }
                let told = async {
                    context.peer.notify_tool_list_changed().await?;
                    context.peer.notify_prompt_list_changed().await?;
                    context.peer.notify_resource_list_changed().await
                };
                if told.await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut catalogs = self.catalogs.clone();
        let mut known = catalogs.borrow_and_update().clone();
        let accepted = context.accepted().clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = Server::changed(&mut catalogs, &mut known) => if !changed {
                    return Ok(());
                },
            }
            let sink = context.sink();
            if accepted.tools_list_changed == Some(true) {
                sink.notify_tool_list_changed().await.map_err(internal)?;
            }
            if accepted.prompts_list_changed == Some(true) {
                sink.notify_prompt_list_changed().await.map_err(internal)?;
            }
            if accepted.resources_list_changed == Some(true) {
                sink.notify_resource_list_changed()
                    .await
                    .map_err(internal)?;
            }
        }
    }
}
