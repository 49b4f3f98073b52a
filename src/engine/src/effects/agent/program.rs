//! Executing instructions by an agent program: it is started like a command, and believed as far as its events prove it.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use workerctl_agent::Stop;
use workerctl_agent::cli::{Format, Known, Launch, Launched, Output, Shape};

use super::super::super::model_keys;
use super::super::super::work::Work;
use super::super::Performer;
use super::super::command::{Invocation, TAIL_BYTES_MAX};
use super::super::log::RunLog;
use super::login::{Lent, write_new};
use super::telling::Telling;
use super::tools::Tools;
use super::watching::{Sink, turns_left};
use super::{ATTEMPT_MS, Talked, brief};
use crate::model::RunSpec;
use crate::model::SecretText;
use crate::model::agent::{AgentProgram, AgentSpec, Answers, Money, Prices, PromptBy};
use crate::model::spec::Program;
use crate::process::{self, Stdin};
use crate::spending::Sources;

/// What stands for the prompt in the arguments of a described program.
const PROMPT: &str = "{prompt}";

/// The same without lists of tools, to which its arguments hold a program.
fn without_lists(agent: &AgentSpec) -> AgentSpec {
    AgentSpec {
        allowed: None,
        disallowed: Vec::new(),
        ..agent.clone()
    }
}

impl Performer {
    /// Has a program execute the instructions of a skill, from the beginning.
    pub(super) fn run_program(
        &self,
        work: &Work,
        attempt: u32,
        (agent, program): (&AgentSpec, &AgentProgram),
        log: &Arc<RunLog>,
    ) -> Talked {
        match self.started(work, attempt, (agent, program), log) {
            Ok(talked) => talked,
            Err((code, message)) => Talked::failed(code, message, false),
        }
    }

    fn started(
        &self,
        work: &Work,
        attempt: u32,
        (agent, program): (&AgentSpec, &AgentProgram),
        log: &Arc<RunLog>,
    ) -> Result<Talked, (&'static str, String)> {
        let environment = &self.parts.environment;
        let key = program.key.as_ref().map(|source| {
            let value = model_keys::value(source, environment);
            value.map_err(|why| {
                (
                    "auth",
                    format!("`{}`: its key cannot be used: {why}", program.cli),
                )
            })
        });
        let key = key.transpose()?;
        self.reserved(work, agent, Money::default())
            .map_err(|why| ("budget_exhausted", why))?;
        let _reserved = Reserved(self, &work.spec);
        let home = Home::make(self, work)?;
        let known = Known::named(&program.cli);
        let lent = match program.lent_login() {
            Some(file) => {
                let own = environment.get("HOME").map(String::as_str);
                let lent = Lent::lend(own, &home.home, file);
                Some(lent.map_err(|why| ("auth", why))?)
            }
            None => None,
        };
        let stop = Stop::new();
        let bare = without_lists(agent);
        let tools = Tools::open(self, work, attempt, &bare, (log, &stop));
        let tools = tools.map_err(|halt| ("sandbox", halt.message))?;
        let outputs = self.outputs_root(work);
        let outputs = outputs.map_err(|failure| ("output_path", failure.message))?;
        let prompt = brief::of_program(self, work, agent, (&tools, &outputs));
        let prompt_bytes = prompt.len();
        let walled = tools.level() > 0;
        drop(tools);
        let directories = outputs_beside(work, &outputs);
        let launch = Launch {
            binary: &program.binary,
            model: program.model.as_deref(),
            base_url: program.base_url.as_deref(),
            key: key.as_ref().map(SecretText::expose),
            mutating: work.spec.may_change(),
            walled,
            allowed: agent.allowed.as_deref(),
            disallowed: &agent.disallowed,
            writes: work.spec.outputs.iter().any(|output| output.path.is_some()),
            turns: turns_left(work, agent),
            money: money_left(work, agent),
            silence_ms: program.silence_ms,
            directories: &directories,
            arguments: &program.args,
        };
        let (launched, stdin) =
            launched(known, program, &launch, (&home, prompt)).map_err(|why| ("settings", why))?;
        for (file, content) in &launched.files {
            write_new(&home.home.join(file), content.as_bytes())
                .map_err(|error| ("scratch", format!("cannot write `{file}`: {error}")))?;
        }
        let talked = self.watched(
            work,
            attempt,
            (agent, program),
            log,
            (launched, stdin, &home, prompt_bytes),
        );
        if let Some(Err(why)) = lent.map(|lent| lent.take_back()) {
            Telling::new(self, work, attempt, log).note(&why);
        }
        Ok(talked)
    }

    fn watched(
        &self,
        work: &Work,
        attempt: u32,
        (agent, program): (&AgentSpec, &AgentProgram),
        log: &Arc<RunLog>,
        (launched, stdin, home, prompt_bytes): (Launched, Stdin, &Home, usize),
    ) -> Talked {
        let telling = Telling::new(self, work, attempt, log);
        for note in &launched.notes {
            telling.note(note);
        }
        let argv = Program::Argv {
            argv: launched.argv,
            attempt_at: Vec::new(),
        };
        let mut invocation = Invocation {
            program: &argv,
            stdin,
            timeout_ms: Some(work.spec.timeout_ms.unwrap_or(ATTEMPT_MS)),
            attempt,
            logged_as: None,
            stdout_file: None,
            noted: true,
            more: [launched.environment, program.env.clone()].concat(),
            sees_run: true,
            ours: false,
            tail_bytes: TAIL_BYTES_MAX,
        };
        let path = |path: &Path| path.to_string_lossy().into_owned();
        invocation.more.push(("HOME".to_owned(), path(&home.home)));
        invocation.more.push(("TMPDIR".to_owned(), path(&home.tmp)));
        // Who commits is not part of a login.
        let own_home = self.parts.environment.get("HOME").map(Path::new);
        if let Some(config) = own_home
            .map(|home| home.join(".gitconfig"))
            .filter(|file| file.exists())
        {
            invocation
                .more
                .push(("GIT_CONFIG_GLOBAL".to_owned(), path(&config)));
        }
        let (mut command, level) = match self.prepared(work, log, &mut invocation) {
            Ok(prepared) => prepared,
            Err(ran) => return Talked::ended(ran.ended),
        };
        // Some work where this says, and not where they were started.
        command.cwd = command.cwd.components().collect();
        command.env.push(("PWD".to_owned(), path(&command.cwd)));
        command.limits.silence = Some(Duration::from_millis(program.silence_ms));
        let reads = (format(program), prompt_bytes);
        let prices = self.prices(program);
        let mut sink = Sink::new(telling, agent, reads, prices, self.notes.take());
        if let Err(halt) = sink.begins() {
            return Talked::failed(&halt.code, halt.message, halt.again);
        }
        let outcome = process::run(&command, &work.stop, &mut sink);
        sink.end(outcome.as_ref().ok());
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => return Talked::ended(self.not_ended(work, &error).ended),
        };
        let text = sink.text().to_owned();
        Talked {
            ended: sink.ended(&finished, program),
            text,
            level: Some(level),
            survivors: finished.survivors_ended,
        }
    }

    /// Sets aside what the program has spent and the journal does not count yet.
    ///
    /// # Errors
    /// A day's budget is spent.
    pub(super) fn reserved(
        &self,
        work: &Work,
        agent: &AgentSpec,
        money: Money,
    ) -> Result<(), String> {
        let parts = &self.parts;
        let around: Sources<'_> = (parts.view.as_ref(), parts.store.as_ref(), parts.clock.now());
        parts.view.spending.reserve(
            (payer(&work.spec), &work.spec.skill),
            money,
            agent.per_day,
            &parts.definitions.current().config,
            around,
        )
    }

    /// Prices of the model that the program uses, if the configuration has a model of that name.
    fn prices(&self, program: &AgentProgram) -> Option<Prices> {
        let name = program.model.as_ref()?;
        let definitions = self.parts.definitions.current();
        let models = &definitions.config.models;
        let named = models.get(name);
        let named = named.or_else(|| models.values().find(|model| model.name == *name));
        named?.prices
    }
}

/// The run whose money it is.
fn payer(spec: &RunSpec) -> crate::model::RunId {
    spec.parent
        .as_ref()
        .map_or(spec.run, |parent| parent.tree_of)
}

/// What of a day's budget is held for the run while it executes.
struct Reserved<'a>(&'a Performer, &'a RunSpec);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.parts.view.spending.release(payer(self.1));
    }
}

/// A home and a place for temporary files, neither of them in the other: Codex refuses to work from a home that is temporary.
struct Home {
    home: PathBuf,
    tmp: PathBuf,
}

impl Home {
    fn make(performer: &Performer, work: &Work) -> Result<Home, (&'static str, String)> {
        let scratch = performer.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|message| ("scratch", message))?;
        let made = Home {
            home: scratch.join("home"),
            tmp: scratch.join("tmp"),
        };
        for place in [&made.home, &made.tmp] {
            // The attempt before may have left its own.
            let _ = fs::remove_dir_all(place);
            let made = fs::DirBuilder::new().mode(0o700).create(place);
            made.map_err(|error| {
                (
                    "scratch",
                    format!("cannot make `{}`: {error}", place.display()),
                )
            })?;
        }
        Ok(made)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
        let _ = fs::remove_dir_all(&self.tmp);
    }
}

/// Directories of outputs that lie outside of where it works.
fn outputs_beside(work: &Work, outputs: &Path) -> Vec<String> {
    let has_files = work.spec.outputs.iter().any(|output| output.path.is_some());
    let beside = work.spec.stages_outputs() && has_files;
    beside
        .then(|| outputs.to_string_lossy().into_owned())
        .into_iter()
        .collect()
}

fn money_left(work: &Work, agent: &AgentSpec) -> Option<u64> {
    let spent = work.run.facts.spent.money.unwrap_or_default();
    let limit = agent.budget.money?;
    Some(limit.0.saturating_sub(spent.0))
}

fn launched(
    known: Option<Known>,
    program: &AgentProgram,
    launch: &Launch<'_>,
    (home, prompt): (&Home, String),
) -> Result<(Launched, Stdin), String> {
    if let Some(known) = known {
        return Ok((known.launch(launch)?, Stdin::Bytes(prompt.into_bytes())));
    }
    let by = program
        .described
        .as_ref()
        .map_or(PromptBy::Stdin, |one| one.prompt);
    let (given, stdin) = match by {
        PromptBy::Stdin => (String::new(), Stdin::Bytes(prompt.into_bytes())),
        PromptBy::Argument => (prompt, Stdin::Null),
        PromptBy::File => {
            let file = home.tmp.join("prompt.md");
            write_new(&file, prompt.as_bytes()).map_err(|error| error.to_string())?;
            (file.to_string_lossy().into_owned(), Stdin::Null)
        }
    };
    let arguments = program.args.iter().map(|text| text.replace(PROMPT, &given));
    let launched = Launched {
        argv: std::iter::once(program.binary.clone())
            .chain(arguments)
            .collect(),
        ..Launched::default()
    };
    Ok((launched, stdin))
}

fn format(program: &AgentProgram) -> Format {
    if let Some(known) = Known::named(&program.cli) {
        return Format::Known(known);
    }
    let described = program.described.clone().unwrap_or_default();
    Format::Described(Shape {
        output: match described.output {
            Answers::Text => Output::Text,
            Answers::Json => Output::Json,
            Answers::Jsonl => Output::JsonLines,
        },
        done: described.done,
        result: described.result,
        failure: described.failure,
        denials: described.denials,
        input_tokens: described.input_tokens,
        output_tokens: described.output_tokens,
        cost: described.cost,
    })
}
