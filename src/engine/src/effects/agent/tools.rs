//! The tools of one attempt: what there is, and how a call is carried out.

mod commands;
mod skills;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use workerctl_agent::mcp::ToolServer;
use workerctl_agent::tools::{Allowed, Bounds, BuiltIn, Disallowed, FileCall, perform};
use workerctl_agent::{Call, Halt, Stop, ToolResult, ToolSpec};

use super::super::super::work::Work;
use super::super::Performer;
use super::super::log::RunLog;
use super::level_of;
use super::servers::Running;
use crate::model::agent::{AgentSpec, Budget, CommandTool, Spent, built_in_tool};
use crate::process::RaisedWall;
use crate::tool_rules::tool_rules;

/// Most bytes of a file of the skill.
const SKILL_FILE_BYTES_MAX: usize = 256 * 1024;

/// What a run has left.
#[derive(Clone, Copy)]
pub(super) struct Left {
    /// Time of the attempt.
    pub(super) time: Duration,
    /// Of its budget.
    pub(super) budget: Budget,
}

pub(super) struct Tools<'a> {
    performer: &'a Performer,
    work: &'a Work,
    attempt: u32,
    agent: &'a AgentSpec,
    wall: Option<Arc<RaisedWall>>,
    /// What the skill restricts itself to; `None`: it does not.
    allowed: Option<Allowed>,
    disallowed: Disallowed,
    root: PathBuf,
    cwd: PathBuf,
    notes: Vec<String>,
    built_in: Vec<BuiltIn>,
    commands: Vec<&'a CommandTool>,
    servers: Vec<Running>,
    stop: &'a Stop,
    /// How many runs were started, in earlier attempts too.
    children: Cell<u32>,
    /// What children have spent, and the turns that they took, since somebody asked.
    spent: Cell<(Spent, u32)>,
}

impl<'a> Tools<'a> {
    /// Gets ready what the conversation may call.
    ///
    /// # Errors
    /// Something of it cannot be had.
    pub(super) fn open(
        performer: &'a Performer,
        work: &'a Work,
        attempt: u32,
        agent: &'a AgentSpec,
        (log, stop): (&RunLog, &'a Stop),
    ) -> Result<Tools<'a>, Halt> {
        let halt = |code: &str, message: String| Halt {
            code: code.to_owned(),
            message,
            again: false,
        };
        let place = performer.place(work);
        let place = place.map_err(|failure| halt(&failure.code, failure.message))?;
        let scratch = performer.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|message| halt("scratch", message))?;
        super::super::command::write_input_files(log, &place)
            .map_err(|message| halt("scratch", message))?;
        let wall = performer.wall(work, &scratch, &place);
        let wall = wall.map_err(|message| halt("sandbox", message))?;
        let rules = tool_rules(agent.allowed.as_deref(), &agent.disallowed);
        let (allowed, disallowed) = rules.map_err(|message| halt("allowed_tools", message))?;
        let mutating = work.spec.may_change();
        let sets = agent.toolsets.iter();
        let commands = sets.flat_map(|set| {
            let is_granted =
                move |one: &&CommandTool| mutating || set.read_only.contains(&one.name);
            set.commands.iter().filter(is_granted)
        });
        let mut tools = Tools {
            performer,
            work,
            attempt,
            agent,
            root: place.of(&work.spec.workspace),
            cwd: place.of(&work.spec.cwd),
            notes: Vec::new(),
            built_in: agent
                .tools
                .iter()
                .filter_map(|name| BuiltIn::parse(name))
                .collect(),
            commands: commands.collect(),
            allowed: None,
            disallowed: Disallowed::default(),
            wall,
            servers: Vec::new(),
            stop,
            children: Cell::new(work.run.facts.children),
            spent: Cell::default(),
        };
        // A command of a model could change anything where the kernel keeps it from nothing.
        let without_walls = !mutating && tools.wall.is_none();
        let interface = [BuiltIn::LoadSkillFile, BuiltIn::SubmitOutput];
        let allows = |name: &str| allowed.as_ref().is_none_or(|list| list.allows_tool(name));
        tools.built_in.retain(|tool| {
            let bare = *tool == BuiltIn::Bash && without_walls;
            let forbidden = disallowed.forbids_tool(tool.name());
            (interface.contains(tool) || allows(tool.name()) && !forbidden) && !bare
        });
        // A list of other agents knows no commands of tool sets: they are named as they are.
        let is_in = |items: &[String], name: &str| items.iter().any(|item| item.trim() == name);
        let named = |name: &str| is_in(agent.allowed.as_deref().unwrap_or_default(), name);
        tools.commands.retain(|tool| {
            let forbidden = disallowed.forbids_tool(&tool.name);
            let forbidden = forbidden || is_in(&agent.disallowed, &tool.name);
            (allows(&tool.name) || named(&tool.name)) && !forbidden
        });
        (tools.allowed, tools.disallowed) = (allowed, disallowed);
        tools.start_servers(log)?;
        Ok(tools)
    }

    /// Starts the servers of all tool sets, one after the other.
    fn start_servers(&mut self, log: &RunLog) -> Result<(), Halt> {
        for set in &self.agent.toolsets {
            let Some(server) = &set.mcp else { continue };
            let with = (server, self.stop);
            let (work, attempt) = (self.work, self.attempt);
            let running = self.performer.start_server(work, attempt, log, set, with)?;
            let notes = running.server.iter().flat_map(ToolServer::notes);
            self.notes
                .extend(notes.map(|note| format!("tool set `{}`: {note}", set.name)));
            self.servers.push(running);
        }
        let specs = self.specs();
        let is_there = |name: &&String| {
            let own = built_in_tool(name).unwrap_or(name);
            specs.iter().any(|tool| tool.name == own)
        };
        match self.agent.required.iter().find(|name| !is_there(name)) {
            None => Ok(()),
            Some(name) => Err(Halt {
                code: "tool_unavailable".to_owned(),
                message: format!("Skill requires tool '{name}' which is not available"),
                again: false,
            }),
        }
    }

    /// Tools of servers that this skill may call: what a server says of its tools grants nothing.
    fn served(&self) -> impl Iterator<Item = (&ToolServer, &ToolSpec)> {
        let mutating = self.work.spec.may_change();
        let each = self.servers.iter().flat_map(move |running| {
            let set = self
                .agent
                .toolsets
                .iter()
                .find(|set| set.name == running.set);
            let read_only = set.map_or(&[][..], |set| set.read_only.as_slice());
            let tools = running.server.iter().flat_map(|server| {
                let tools = server.tools().iter();
                tools.map(move |tool| (server, tool))
            });
            let prefix = format!("mcp__{}__", running.set);
            tools.filter(move |(_, tool)| {
                let own = tool.name.strip_prefix(&prefix).unwrap_or(&tool.name);
                mutating
                    || read_only
                        .iter()
                        .any(|name| name == own || *name == tool.name)
            })
        });
        each.filter(|(_, tool)| {
            let allowed = self.allowed.as_ref();
            allowed.is_none_or(|list| list.allows_tool(&tool.name))
                && !self.disallowed.forbids_tool(&tool.name)
        })
    }

    /// The level of the walls around what is called.
    pub(super) fn level(&self) -> u32 {
        level_of(self.wall.as_ref())
    }

    /// What people should know of them.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// What the model is told of them, always in the same order.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let built_in = self.built_in.iter().map(|tool| tool.spec());
        let commands = self.commands.iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: tool.schema.clone(),
        });
        let served = self.served().map(|(_, tool)| tool.clone());
        built_in.chain(commands).chain(served).collect()
    }

    /// A call of a file tool that only lacks the tool and its arguments.
    pub(super) fn file_call(&self) -> FileCall {
        let parts = &self.performer.parts;
        let hidden = [Some(parts.state_dir.clone()), parts.trees.clone().ok()];
        FileCall {
            tool: BuiltIn::ReadFile,
            arguments: serde_json::Value::Null,
            root: self.root.clone(),
            cwd: self.cwd.clone(),
            hidden: hidden
                .into_iter()
                .flatten()
                .chain(self.performer.key_files())
                .collect(),
            bounds: Bounds::default(),
        }
    }

    /// Does something within the walls of the run.
    pub(super) fn within_wall<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        match &self.wall {
            Some(wall) => {
                let walled = Arc::clone(wall).within(work);
                walled.map_err(|error| crate::model::diagnostic::chain(&error))
            }
            None => Ok(work()),
        }
    }

    /// What children have spent since this was asked last, and the turns that they took.
    pub(super) fn take_spent(&self) -> (Spent, u32) {
        self.spent.take()
    }

    /// Carries out one call, within what is left.
    pub(super) fn call(&mut self, call: &Call, left: Left) -> ToolResult {
        let answer = match &call.arguments {
            Ok(arguments) => self.answer(&call.name, arguments, left),
            Err(problem) => Err(problem.clone()),
        };
        let is_error = answer.is_err();
        let (Ok(content) | Err(content)) = answer;
        ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content,
            is_error,
        }
    }

    fn answer(
        &self,
        name: &str,
        arguments: &serde_json::Value,
        left: Left,
    ) -> Result<String, String> {
        let built_in = BuiltIn::parse(name).filter(|tool| self.built_in.contains(tool));
        match built_in {
            Some(BuiltIn::LoadSkillFile) => self.load_skill_file(arguments),
            Some(BuiltIn::SubmitOutput) => self.submit_output(arguments),
            Some(BuiltIn::ListSkills) => self.list_skills(arguments),
            Some(BuiltIn::UseSkill) => self.use_skill(arguments, left),
            Some(BuiltIn::Bash) => {
                self.refuse_disallowed(name, arguments)?;
                self.bash(arguments, left.time)
            }
            Some(tool) => {
                self.refuse_disallowed(name, arguments)?;
                self.file_tool(tool, arguments)
            }
            None => {
                if let Some(tool) = self.commands.iter().find(|tool| tool.name == name) {
                    return self.command_tool(tool, arguments, left.time);
                }
                let mut tools = self.served();
                let found = tools.find(|(_, tool)| tool.name == name);
                let (server, _) = found.ok_or_else(|| format!("no tool `{name}`"))?;
                called(server, name, arguments, left.time, self.stop)
            }
        }
    }

    fn refuse_disallowed(&self, name: &str, arguments: &serde_json::Value) -> Result<(), String> {
        self.disallowed
            .check_call(name, arguments, &self.root, &self.cwd)?;
        match &self.allowed {
            Some(allowed) => allowed.allows_call(name, arguments, &self.root, &self.cwd),
            None => Ok(()),
        }
    }

    fn file_tool(&self, tool: BuiltIn, arguments: &serde_json::Value) -> Result<String, String> {
        let call = FileCall {
            tool,
            arguments: arguments.clone(),
            ..self.file_call()
        };
        let reply = self.within_wall(move || perform(&call))?;
        if reply.is_error {
            return Err(reply.content);
        }
        Ok(reply.content)
    }

    fn load_skill_file(&self, arguments: &serde_json::Value) -> Result<String, String> {
        let arguments = BuiltIn::LoadSkillFile.check(arguments)?;
        let text = |name: &str| arguments.get(name).and_then(|text| text.as_str());
        let path = text("path").unwrap_or_default();
        let own = &self.work.spec.skill;
        let is_own = |name: &str| name == own.skill || name == own.to_string();
        if let Some(name) = text("skillName").filter(|name| !is_own(name)) {
            return Err(format!(
                "files of `{name}` are not yours: leave `skillName` out"
            ));
        }
        let listed = self.agent.files.iter().any(|file| file.path == path);
        let Some(directory) = self.agent.files_directory.as_ref().filter(|_| listed) else {
            let paths: Vec<&str> = self
                .agent
                .files
                .iter()
                .map(|file| file.path.as_str())
                .collect();
            return Err(format!(
                "`{path}` is not listed; there are {}",
                paths.join(", ")
            ));
        };
        let mut call = FileCall {
            arguments: serde_json::json!({ "path": path }),
            root: directory.into(),
            cwd: directory.into(),
            ..self.file_call()
        };
        call.bounds.reply_bytes_max = SKILL_FILE_BYTES_MAX;
        let reply = perform(&call);
        if reply.is_error {
            return Err(reply.content);
        }
        Ok(reply.content)
    }

    fn submit_output(&self, arguments: &serde_json::Value) -> Result<String, String> {
        let arguments = BuiltIn::SubmitOutput.check(arguments)?;
        let text = |name: &str| arguments.get(name).and_then(|text| text.as_str());
        let name = text("name").unwrap_or_default();
        let outputs = &self.work.spec.outputs;
        let output = outputs.iter().find(|output| output.name == name);
        let path = output.and_then(|output| output.path.as_ref());
        let Some(path) = path else {
            let names = outputs.iter().filter(|output| output.path.is_some());
            let names: Vec<&str> = names.map(|output| output.name.as_str()).collect();
            return Err(format!(
                "no output `{name}`; there are {}",
                names.join(", ")
            ));
        };
        self.performer
            .submit(self.work, path, text("content").unwrap_or_default())?;
        Ok(format!("`{name}` is handed in as `{path}`"))
    }
}

/// What a server answered; what went wrong on the way is told to the model too, which may go on without it.
fn called(
    server: &ToolServer,
    name: &str,
    arguments: &serde_json::Value,
    left: Duration,
    stop: &Stop,
) -> Result<String, String> {
    match server.call(name, arguments, left, stop) {
        Ok(reply) if reply.is_error => Err(reply.content),
        Ok(reply) => Ok(reply.content),
        Err(error) => Err(format!("{} ({})", error, error.code())),
    }
}
