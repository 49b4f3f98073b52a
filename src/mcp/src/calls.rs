//! Calls of tools: each one's arguments, read and handed to the part that answers.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject};
use rmcp::service::{RequestContext, RoleServer};

use super::answer::{self, apart};
use super::arguments::Arguments;
use super::asking::Given;
use super::engines::Engines;
use super::running::{self, Running, Wanted};
use super::server::{Disconnected, Server};
use super::skills::Skills;
use super::{loading, results, threads, typed, wave};
use crate::catalog::roots::trust::TrustFiles;
use crate::engine::expect_known_outcome;
use crate::model::legible::is_hidden;
use crate::model::{Diagnostic, MCP_TOOLS};
use crate::protocol::Control;

/// Characters of a client's name that stand in the list of runs.
const CLIENT_CHARS: usize = 60;

impl Server {
    /// Answers the call of a tool.
    pub(super) async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = Given::of(&mut request);
        let given = request.arguments;
        let skills = self.skills(&context).await?;
        let listed = |name: &&str| {
            skills
                .catalog
                .config
                .mcp
                .tools
                .iter()
                .any(|one| one == name)
        };
        let tool = MCP_TOOLS.into_iter().find(|name| *name == request.name);
        match tool.filter(listed) {
            Some("use_skill") => {
                let arguments = Arguments::read("use_skill", given, &["skill", "input"])?;
                let wanted = Wanted {
                    skill: arguments.needed("skill")?.to_owned(),
                    input: arguments.object("input")?,
                    given: answers,
                };
                running::use_skill(self.running(&context), skills, wanted, context).await
            }
            Some(tool @ ("list_runs" | "get_run" | "read_thread" | "cancel_run")) => self
                .call_about_runs(tool, given, skills, &context)
                .await
                .map(CallToolResponse::from),
            Some(tool) => self
                .call_about_skills(tool, given, &context)
                .await
                .map(CallToolResponse::from),
            None => {
                let named = {
                    let (skills, name) = (Arc::clone(&skills), request.name.clone());
                    apart(move || typed::named(&skills, &name)).await?
                };
                let Some(entry) = named else {
                    return Err(unknown(&request.name));
                };
                let wanted = Wanted {
                    skill: entry.name,
                    input: given.unwrap_or_default(),
                    given: answers,
                };
                running::use_skill(self.running(&context), skills, wanted, context).await
            }
        }
    }

    async fn call_about_skills(
        &self,
        tool: &'static str,
        given: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match tool {
            "skill" | "Skill" | "loadSkill" => {
                type Answer = fn(&Skills, &TrustFiles, &str) -> CallToolResult;
                let (name, answer): (_, Answer) = match tool {
                    "skill" => (name_of_skill(given)?, loading::skill),
                    "Skill" => (name_under("skill_name", tool, given)?, wave::invoke),
                    _ => (name_under("skillName", tool, given)?, loading::load_skill),
                };
                self.handing(context, move |skills, trust| answer(skills, trust, &name))
                    .await
            }
            "loadSkillFile" => {
                let arguments = Arguments::read(tool, given, &["skillName", "path"])?;
                let name = arguments.needed("skillName")?.to_owned();
                let path = arguments.needed("path")?.to_owned();
                self.handing(context, move |skills, trust| {
                    loading::load_file(skills, trust, &name, &path)
                })
                .await
            }
            "list_skills" => {
                let arguments = Arguments::read(tool, given, &["query", "offset"])?;
                let words = arguments.text("query")?.unwrap_or_default().to_owned();
                let offset = arguments.number("offset")?.unwrap_or(0);
                let listed = move |skills: &Skills, _: &Arc<Engines>| {
                    let query = loading::Query {
                        words: &words,
                        offset: usize::try_from(offset).unwrap_or(usize::MAX),
                    };
                    loading::list_skills(skills, &query)
                };
                self.about(context, listed).await
            }
            other => Err(unknown(other)),
        }
    }

    async fn call_about_runs(
        &self,
        tool: &'static str,
        given: Option<JsonObject>,
        skills: Arc<Skills>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        self.space().await;
        let running = self.running(context);
        match tool {
            "list_runs" => {
                let arguments = Arguments::read(tool, given, &["skill", "state", "limit"])?;
                let skill = arguments.text("skill")?.map(str::to_owned);
                let state = arguments.text("state")?.map(str::to_owned);
                let limit = arguments.number("limit")?;
                if limit == Some(0) {
                    return Err(arguments.refuse("`limit`: expected a whole number from 1"));
                }
                // Before an engine is looked for, which refuses where there is no workspace.
                let query = results::query(skill, state, limit);
                if let Err(refused) = expect_known_outcome(&query) {
                    return Ok(answer::failure(answer::told(&refused)));
                }
                asked(&running.engines, move |control| {
                    results::list(control, &query)
                })
                .await
            }
            "get_run" => {
                let arguments = Arguments::read(tool, given, &["run"])?;
                running::get_run(running, arguments.needed("run")?.to_owned()).await
            }
            "cancel_run" => {
                let arguments = Arguments::read(tool, given, &["run", "now"])?;
                let run = arguments.needed("run")?.to_owned();
                running::cancel_run(running, run, arguments.flag("now")?, skills).await
            }
            "read_thread" => {
                let arguments = Arguments::read(tool, given, &["run", "from", "limit"])?;
                let run = arguments.needed("run")?.to_owned();
                let from = arguments.number("from")?.unwrap_or(0);
                let limit = arguments.number("limit")?.unwrap_or(0);
                asked(&running.engines, move |control| {
                    threads::read(control, &run, from, limit)
                })
                .await
            }
            other => Err(unknown(other)),
        }
    }

    fn running(&self, context: &RequestContext<RoleServer>) -> Running {
        let client = context.client_info().map(|client| client.name);
        let name: String = client
            .unwrap_or_default()
            .chars()
            .filter(|c| !is_hidden(*c))
            .take(CLIENT_CHARS)
            .collect();
        let left = context.extensions.get::<Disconnected>();
        Running {
            engines: Arc::clone(&self.engines),
            ended: Arc::clone(left.map_or(&self.ended, |Disconnected(left)| left)),
            by: format!("mcp {name}").trim_end().to_owned(),
            chat_id: Arc::clone(&self.chat_id),
        }
    }
}

/// The one argument of `skill`; `command`, as its description calls it in its examples, is taken too.
fn name_of_skill(given: Option<JsonObject>) -> Result<String, ErrorData> {
    let arguments = Arguments::read("skill", given, &["name", "command"])?;
    let named = arguments.text("name")?.is_some() || arguments.text("command")?.is_none();
    let key = if named { "name" } else { "command" };
    if arguments.text(key)? == Some("") {
        return Err(arguments.refuse("Skill name cannot be empty"));
    }
    Ok(arguments.needed(key)?.to_owned())
}

/// The one argument of another tool.
fn name_under(
    key: &str,
    tool: &'static str,
    given: Option<JsonObject>,
) -> Result<String, ErrorData> {
    let arguments = Arguments::read(tool, given, &[key])?;
    arguments.needed(key).map(str::to_owned)
}

async fn asked(
    engines: &Arc<Engines>,
    ask: impl Fn(&dyn Control) -> Result<CallToolResult, Diagnostic> + Send + 'static,
) -> Result<CallToolResult, ErrorData> {
    let engines = Arc::clone(engines);
    let answered = apart(move || engines.ask(ask)).await?;
    Ok(answered.unwrap_or_else(|refused| answer::failure(answer::told(&refused))))
}

fn unknown(tool: &str) -> ErrorData {
    let shown: String = tool.escape_debug().take(100).collect();
    ErrorData::invalid_params(format!("Unknown tool: {shown}"), None)
}
