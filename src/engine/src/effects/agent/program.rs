//! Executing instructions by an agent program: it is started like a command, and believed as far as its events prove it.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use workerctl_agent::cli::{
    Exit, Fault, Format, Known, Launch, Launched, Output, Reading, Seen, Shape,
};
use workerctl_agent::{Stop, Turn};

use super::super::super::model_keys;
use super::super::super::work::Work;
use super::super::Performer;
use super::super::command::{Invocation, TAIL_BYTES_MAX, Tail};
use super::super::log::RunLog;
use super::super::notes::Note;
use super::login::{Lent, write_new};
use super::telling::Telling;
use super::tools::Tools;
use super::{ATTEMPT_MS, Talked, brief};
use crate::machine::Event;
use crate::model::agent::{
    AgentProgram, AgentSpec, Answers, Described, Money, PromptBy, Spent, Tokens,
};
use crate::model::evidence::Ended;
use crate::model::spec::Program;
use crate::model::{RunSpec, Timestamp};
use crate::process::{self, EndCause, ExitStatus, OutputSink, Spawned, Stdin, Stream};
use crate::spending::Sources;

/// What stands for the prompt in the arguments of a described program.
const PROMPT: &str = "{prompt}";

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
        self.reserve_day(work, agent)?;
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
        let bare = AgentSpec {
            allowed: None,
            ..agent.clone()
        };
        let tools = Tools::open(self, work, attempt, &bare, (log, &stop));
        let tools = tools.map_err(|halt| ("sandbox", halt.message))?;
        let outputs = self.outputs_root(work);
        let outputs = outputs.map_err(|failure| ("output_path", failure.message))?;
        let prompt = brief::of_program(self, work, agent, (&tools, &outputs));
        let walled = tools.level() > 0;
        drop(tools);
        let directories = outputs_beside(work, &outputs);
        let launch = Launch {
            binary: &program.binary,
            model: program.model.as_deref(),
            base_url: program.base_url.as_deref(),
            key: key.as_deref(),
            mutating: work.spec.may_change(),
            walled,
            allowed: agent.allowed.as_deref(),
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
            (launched, stdin, &home),
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
        (launched, stdin, home): (Launched, Stdin, &Home),
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
            more: launched.environment,
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
        // An event may be long; what is shown of it is bounded by the log.
        command.limits.output_bytes_max = u64::MAX;
        let mut sink = Sink {
            telling,
            agent,
            reading: Reading::new(format(program)),
            note: Some(self.notes.take()),
            tail: Tail::of(TAIL_BYTES_MAX),
            error_line: Vec::new(),
            spent: work.run.facts.spent,
            counted: 0,
            enough: None,
        };
        let outcome = process::run(&command, &work.stop, &mut sink);
        let seen = sink.reading.end();
        sink.take(seen);
        sink.settle();
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => return Talked::ended(super::super::command::refused(&error).ended),
        };
        let text = sink.reading.text().to_owned();
        Talked {
            ended: sink.ended(&finished, program),
            text,
            level: Some(level),
            survivors: finished.survivors_ended,
        }
    }

    /// Refuses to start where a day's budget is spent.
    fn reserve_day(&self, work: &Work, agent: &AgentSpec) -> Result<(), (&'static str, String)> {
        let parts = &self.parts;
        let around: Sources<'_> = (parts.view.as_ref(), parts.store.as_ref(), parts.clock.now());
        let config = &parts.definitions.current().config;
        let reserved = parts.view.spending.reserve(
            (payer(&work.spec), &work.spec.skill),
            Money::default(),
            agent.per_day,
            config,
            around,
        );
        reserved.map_err(|why| ("budget_exhausted", why))
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

fn turns_left(work: &Work, agent: &AgentSpec) -> u32 {
    let taken = work.run.facts.all_turns;
    let of_budget = agent.budget.turns.map(|limit| limit.saturating_sub(taken));
    of_budget.map_or(agent.max_iterations, |left| left.min(agent.max_iterations))
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
    let Described {
        output,
        done,
        result,
        failure,
        denials,
        input_tokens,
        output_tokens,
        cost,
        ..
    } = described;
    Format::Described(Shape {
        output: match output {
            Answers::Text => Output::Text,
            Answers::Json => Output::Json,
            Answers::Jsonl => Output::JsonLines,
        },
        done,
        result,
        failure,
        denials,
        input_tokens,
        output_tokens,
        cost,
    })
}

/// Why we end a program ourselves.
enum Enough {
    Turns,
    Budget(String),
    Journal(String),
}

struct Sink<'a> {
    telling: Telling<'a>,
    agent: &'a AgentSpec,
    reading: Reading,
    note: Option<std::io::Result<Note<'a>>>,
    tail: Tail,
    error_line: Vec<u8>,
    spent: Spent,
    /// Money of this attempt that stands in the journal.
    counted: u64,
    enough: Option<Enough>,
}

impl OutputSink for Sink<'_> {
    fn spawned(&mut self, child: &Spawned) {
        let written = match &self.note {
            None => return,
            Some(Ok(note)) => child.live_record().and_then(|record| note.write(&record)),
            Some(Err(error)) => Err(error.kind().into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "the live process could not be noted");
        }
    }

    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool) {
        let seen = match stream {
            Stream::Stdout => self.reading.piece(bytes, more),
            Stream::Stderr => self.error_piece(bytes, more),
        };
        self.take(seen);
    }

    fn has_enough(&self) -> bool {
        self.enough.is_some()
    }
}

impl Sink<'_> {
    fn error_piece(&mut self, bytes: &[u8], more: bool) -> Vec<Seen> {
        let telling = &self.telling;
        let lines = telling
            .log
            .output(telling.attempt, None, Stream::Stderr, bytes, more);
        for line in &lines {
            self.tail.push(&line.text, line.continued);
        }
        if self.error_line.len() < TAIL_BYTES_MAX {
            self.error_line.extend_from_slice(bytes);
        }
        if more {
            return Vec::new();
        }
        let line = std::mem::take(&mut self.error_line);
        self.reading.error_line(&String::from_utf8_lossy(&line))
    }

    fn take(&mut self, seen: Vec<Seen>) {
        for one in seen {
            match one {
                Seen::Said(text) => self.telling.show(&text),
                Seen::Called { name, arguments } => {
                    self.telling.end_line();
                    self.telling.report_call(&name, &arguments.to_string());
                }
                Seen::Answered { is_error, text } => self.telling.report_result(is_error, &text),
                Seen::Refused { tool } => self.telling.tell(&format!("  refused: `{tool}`")),
                Seen::Noted(text) | Seen::Unknown(text) => self.telling.note(&text),
                Seen::Turn(turn) => self.keep(&turn),
            }
        }
    }

    /// Keeps a turn; what is too much ends the program.
    fn keep(&mut self, turn: &Turn) {
        self.telling.end_line();
        let usage = turn.usage.unwrap_or_default();
        let spent = Spent {
            tokens: Tokens {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
            },
            money: self.uncounted(),
            unmeasured: u32::from(turn.usage.is_none()),
        };
        self.spent = self.spent.plus(spent);
        let facts = &self.telling.work.run.facts;
        let number = facts.turns.saturating_add(self.reading.turns());
        if let Err(halt) = self.telling.keep_turn(number, "", turn, spent) {
            self.enough.get_or_insert(Enough::Journal(halt.message));
        }
        let limit = turns_left(self.telling.work, self.agent);
        // With its last turn a program ends by itself, if it has nothing left to call.
        if self.reading.turns() >= limit && !turn.calls.is_empty() {
            self.enough.get_or_insert(Enough::Turns);
        }
        if let Some(why) = self.over_budget() {
            self.enough.get_or_insert(Enough::Budget(why));
        }
    }

    fn over_budget(&self) -> Option<String> {
        let budget = &self.agent.budget;
        let tokens = self.spent.tokens;
        let tokens = tokens.sum().saturating_sub(tokens.cache_read);
        if let Some(limit) = budget.tokens.filter(|limit| tokens > *limit) {
            return Some(format!(
                "{tokens} of {limit} tokens are spent (`budget.tokens`)"
            ));
        }
        let money = self.spent.money.unwrap_or_default();
        let limit = budget.money.filter(|limit| money > *limit)?;
        Some(format!("{money} of {limit} is spent (`budget.money`)"))
    }

    /// What the program says that it has cost since the journal was told.
    fn uncounted(&mut self) -> Option<Money> {
        let all = self.reading.cost()?;
        let since = all.saturating_sub(self.counted);
        self.counted = all;
        Some(Money(since))
    }

    /// Money that was counted after the last turn.
    fn settle(&mut self) {
        self.telling.end_line();
        let Some(money) = self.uncounted().filter(|money| *money > Money::default()) else {
            return;
        };
        let spent = Spent {
            money: Some(money),
            ..Spent::default()
        };
        self.telling.note_event(Event::TurnFailed {
            attempt: self.telling.attempt,
            code: "counted_later".to_owned(),
            spent,
        });
    }

    fn ended(&self, finished: &process::Finished, program: &AgentProgram) -> Ended {
        let limit = self.agent.max_iterations;
        let unfinished = || Ended::Unfinished {
            code: "iteration_limit".to_owned(),
            message: super::iteration_limit(limit, self.reading.text()),
        };
        match (finished.ended, &self.enough) {
            (EndCause::Stopped(_), _) => return Ended::Stopped,
            (_, Some(Enough::Budget(why))) => {
                return failed("budget_exhausted", why.clone(), false);
            }
            (_, Some(Enough::Journal(why))) => return failed("not_recorded", why.clone(), true),
            (_, Some(Enough::Turns)) => return unfinished(),
            (EndCause::Silent, None) => {
                let shown = crate::model::duration::show_millis(program.silence_ms);
                let silent = format!(
                    "`{}` said nothing for {shown} (`agent.silence`)",
                    program.cli
                );
                return match self.reading.trouble() {
                    Some(fault) => of_fault(fault, program, Some(&silent)),
                    None => failed("silence", silent, true),
                };
            }
            (EndCause::ByItself, None) => {}
            _ => return super::super::command::ended(finished),
        }
        if self.reading.turns_exhausted() {
            return unfinished();
        }
        let exit = match finished.status {
            ExitStatus::Exited(code) => Exit::Code(code),
            ExitStatus::Signalled(signal) => Exit::Signal(signal),
        };
        let last_words = self.tail.clone().text();
        match self
            .reading
            .verdict(exit, &program.may_be_denied, &last_words)
        {
            Ok(()) => Ended::Answered {
                turns: self.reading.turns(),
            },
            Err(fault) => of_fault(&fault, program, None),
        }
    }
}

fn failed(code: &str, message: String, again: bool) -> Ended {
    Ended::Failed {
        code: code.to_owned(),
        message,
        again,
    }
}

fn of_fault(fault: &Fault, program: &AgentProgram, more: Option<&str>) -> Ended {
    let mut message = format!("`{}`: {}", program.cli, fault.message);
    if let Some(until) = fault
        .until
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
    {
        let until = i64::try_from(until.as_millis()).unwrap_or(i64::MAX);
        message = format!(
            "{message}, until {}",
            Timestamp::from_millis(until).rfc3339()
        );
    }
    if let Some(more) = more {
        message = format!("{message}; {more}");
    }
    failed(fault.kind.code(), message, fault.kind.may_be_repeated())
}
