//! A conversation: turns with a model and the tools that it calls, until it answers or something ends it.

use std::time::Duration;

use crate::client::{Client, TurnHost};
use crate::error::{Failure, Halt, TurnError};
use crate::model::Model;
use crate::request::{CacheMark, Message, Request, RequestDigest, ToolResult, ToolSpec};
use crate::stop::Stop;
use crate::turn::{Call, Turn};

/// How often in a row a call may fail in the same way before it ends the conversation.
pub const ALIKE_MAX: u32 = 3;

/// Calls of one turn that are carried out.
pub const CALLS_MAX: usize = 64;

/// What a conversation is about.
#[derive(Debug, Clone)]
pub struct Brief {
    /// Instructions.
    pub system: String,
    /// What is to be done this time.
    pub task: String,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// Turns at most, from the first one of the conversation.
    pub turns_max: u32,
}

/// A turn that an earlier attempt took, and what came of its calls if that is known.
#[derive(Debug, Clone)]
pub struct Past {
    /// The turn.
    pub turn: Turn,
    /// One for each call; `None` where they may not have been carried out.
    pub results: Option<Vec<ToolResult>>,
}

/// What a conversation needs from its caller.
pub trait Host: TurnHost {
    /// Asked before each turn; answers how long it may take.
    ///
    /// # Errors
    /// There is no time left.
    fn time_left(&mut self) -> Result<Duration, Halt>;
    /// Keeps a turn; its calls are carried out only after that.
    ///
    /// # Errors
    /// It could not be kept.
    fn taken(&mut self, number: u32, request: &str, turn: &Turn) -> Result<(), Halt>;
    /// Told of a call that is not carried out, and why.
    fn refused(&mut self, call: &Call, why: &str);
    /// Carries out one call. What the model did wrong is a result that says so.
    ///
    /// # Errors
    /// The conversation cannot go on.
    fn call(&mut self, call: &Call) -> Result<ToolResult, Halt>;
    /// Keeps what came of the calls of a turn, with the turn that follows at the latest.
    fn called(&mut self, number: u32, results: &[ToolResult]);
}

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The model has answered without calling anything more.
    Answered {
        /// How many turns it took.
        turns: u32,
        /// The last answer.
        text: String,
    },
    /// There are no turns left, and the model wanted to go on.
    TurnLimit {
        /// The last that it said, in whichever turn.
        text: String,
    },
    /// A turn failed.
    Failed(TurnError),
    /// The host ended it.
    Halted(Halt),
    /// It was stopped.
    Stopped,
}

/// Holds a conversation from its beginning, or from where an earlier attempt was lost.
pub fn converse(
    client: &Client,
    model: &Model,
    brief: Brief,
    past: Vec<Past>,
    host: &mut dyn Host,
    stop: &Stop,
) -> End {
    let mut talk = Talk {
        request: Request {
            system: brief.system,
            messages: vec![Message::user(brief.task)],
            tools: brief.tools,
            cache: Vec::new(),
        },
        digest: RequestDigest::default(),
        turns: 0,
        counted: (0, 0),
        repeated: None,
        said: String::new(),
    };
    let mut open = None;
    for past in past {
        talk.take(&past.turn);
        match past.results {
            Some(results) => talk.answer_calls(results),
            None => open = Some(past.turn),
        }
    }
    let ended = talk.go_on(client, model, brief.turns_max, open, host, stop);
    if stop.is_stopped() && !matches!(ended, End::Answered { .. }) {
        return End::Stopped;
    }
    ended
}

/// A call that failed.
struct Repeated {
    call: Call,
    said: String,
    /// In how many turns in a row it failed so.
    count: u32,
    /// The last of them.
    turn: u32,
}

struct Talk {
    request: Request,
    digest: RequestDigest,
    turns: u32,
    /// Tokens that were counted of the conversation up to its last answer, and how many messages these are.
    counted: (u64, usize),
    /// The last call, if it failed, with its result, and how often in a row.
    repeated: Option<Repeated>,
    /// The text of the last turn that had any.
    said: String,
}

impl Talk {
    fn go_on(
        &mut self,
        client: &Client,
        model: &Model,
        turns_max: u32,
        open: Option<Turn>,
        host: &mut dyn Host,
        stop: &Stop,
    ) -> End {
        let mut turn = open;
        loop {
            let last = match turn.take() {
                Some(turn) => turn,
                // Asked here and not after the calls: an earlier attempt may have been lost after its last turn.
                None if self.turns >= turns_max => {
                    return End::TurnLimit {
                        text: std::mem::take(&mut self.said),
                    };
                }
                None => match self.next(client, model, host, stop) {
                    Ok(turn) => turn,
                    Err(end) => return end,
                },
            };
            if last.calls.is_empty() {
                return End::Answered {
                    turns: self.turns,
                    text: last.text,
                };
            }
            match self.carry_out(&last.calls, host, stop) {
                Ok(results) => {
                    host.called(self.turns, &results);
                    self.answer_calls(results);
                }
                Err(halt) => return End::Halted(halt),
            }
        }
    }

    /// Takes the next turn and has it kept.
    fn next(
        &mut self,
        client: &Client,
        model: &Model,
        host: &mut dyn Host,
        stop: &Stop,
    ) -> Result<Turn, End> {
        self.request.cache = self.marks();
        let limit = host.time_left().map_err(End::Halted)?;
        let mut model = model.clone();
        model.deadlines.turn = model.deadlines.turn.min(limit);
        let digest = self.digest.of(&self.request).map_err(|error| {
            End::Halted(Halt {
                code: "internal".to_owned(),
                message: format!("the request cannot be written: {error}"),
                again: false,
            })
        })?;
        let turn = client.metered_turn(&model, (&self.request, self.tokens()), host, stop);
        let turn = turn.map_err(|error| match *error.failure {
            Failure::Stopped => End::Stopped,
            Failure::Halted(halt) => End::Halted(halt),
            _ => End::Failed(error),
        })?;
        self.take(&turn);
        host.taken(self.turns, &digest, &turn)
            .map_err(End::Halted)?;
        Ok(turn)
    }

    fn take(&mut self, turn: &Turn) {
        self.turns += 1;
        if !turn.text.trim().is_empty() {
            self.said.clone_from(&turn.text);
        }
        self.request.messages.push(turn.message());
        if let Some(usage) = turn.usage {
            self.counted = (usage.sum(), self.request.messages.len());
        }
    }

    fn answer_calls(&mut self, results: Vec<ToolResult>) {
        self.request.messages.push(Message::ToolResults { results });
    }

    /// Where prefixes end that the next request will repeat: what never changes, the task, and all there is.
    fn marks(&self) -> Vec<CacheMark> {
        let fixed = match (
            self.request.system.is_empty(),
            self.request.tools.is_empty(),
        ) {
            (false, _) => Some(CacheMark::System),
            (true, false) => Some(CacheMark::Tools),
            (true, true) => None,
        };
        let last = self.request.messages.len().saturating_sub(1);
        let mut marks: Vec<CacheMark> = fixed.into_iter().collect();
        marks.push(CacheMark::Message(0));
        if last > 0 {
            marks.push(CacheMark::Message(last));
        }
        marks
    }

    /// How many tokens the next request has, as far as that can be told: those that were counted, and more than
    /// enough for what is new.
    fn tokens(&self) -> u64 {
        let (counted, messages) = self.counted;
        counted.saturating_add(self.request.estimated_tokens(messages))
    }

    fn carry_out(
        &mut self,
        calls: &[Call],
        host: &mut dyn Host,
        stop: &Stop,
    ) -> Result<Vec<ToolResult>, Halt> {
        let mut results = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let refusal = self.refusal(call, index, stop);
            let result = match refusal {
                Some(result) => {
                    host.refused(call, &result.content);
                    result
                }
                None => host.call(call)?,
            };
            if stop.is_stopped() {
                // What it would have come to is not known: whoever goes on carries it out again.
                return Err(Halt {
                    code: "stopped".to_owned(),
                    message: "the run is being ended".to_owned(),
                    again: true,
                });
            }
            self.watch(call, &result)?;
            results.push(result);
        }
        Ok(results)
    }

    /// Why a call is not carried out, as its result.
    fn refusal(&self, call: &Call, index: usize, stop: &Stop) -> Option<ToolResult> {
        if stop.is_stopped() {
            Some(refused(call, "the run is being ended"))
        } else if index >= CALLS_MAX {
            let why = format!("more than {CALLS_MAX} calls in one turn are not carried out");
            Some(refused(call, &why))
        } else if !self.request.tools.iter().any(|tool| tool.name == call.name) {
            Some(self.unknown(call))
        } else {
            let problem = call.arguments.as_ref().err();
            problem.map(|problem| refused(call, problem))
        }
    }

    fn unknown(&self, call: &Call) -> ToolResult {
        let names = self.request.tools.iter().map(|tool| tool.name.as_str());
        let names: Vec<&str> = names.collect();
        let there = match names.as_slice() {
            [] => "there are none here".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        refused(call, &format!("no tool `{}`: {there}", call.name))
    }

    /// Ends a conversation in which one call fails again and again.
    fn watch(&mut self, call: &Call, result: &ToolResult) -> Result<(), Halt> {
        if !result.is_error {
            self.repeated = None;
            return Ok(());
        }
        let same = |one: &Repeated| {
            let earlier = &one.call;
            earlier.name == call.name
                && earlier.arguments == call.arguments
                && one.said == result.content
        };
        let count = match self.repeated.take().filter(same) {
            // The model has seen nothing of it yet.
            Some(one) if one.turn == self.turns => one.count,
            Some(one) => one.count + 1,
            None => 1,
        };
        self.repeated = Some(Repeated {
            call: call.clone(),
            said: result.content.clone(),
            count,
            turn: self.turns,
        });
        if count < ALIKE_MAX {
            return Ok(());
        }
        let said = result.content.lines().next().unwrap_or_default();
        Err(Halt {
            code: "tool_errors".to_owned(),
            message: format!(
                "the model called `{}` in {count} turns in a row with the same error: {said}",
                call.name
            ),
            again: true,
        })
    }
}

fn refused(call: &Call, why: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: why.to_owned(),
        is_error: true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    use crate::client::{ClientSettings, FailedRequest};
    use crate::model::{Deadlines, Dialect, ModelLimits};
    use crate::turn::Delta;

    /// Allows nothing: a conversation that is over needs nothing.
    struct NoHost;

    impl TurnHost for NoHost {
        fn before_request(&mut self, _: u64) -> Result<(), Halt> {
            unreachable!()
        }
        fn delta(&mut self, _: Delta) {}
        fn request_failed(&mut self, _: &FailedRequest) {}
    }

    impl Host for NoHost {
        fn refused(&mut self, _call: &Call, _why: &str) {}

        fn time_left(&mut self) -> Result<Duration, Halt> {
            Err(Halt {
                code: "asked".to_owned(),
                message: String::new(),
                again: false,
            })
        }
        fn taken(&mut self, _: u32, _: &str, _: &Turn) -> Result<(), Halt> {
            unreachable!()
        }
        fn call(&mut self, _: &Call) -> Result<ToolResult, Halt> {
            unreachable!()
        }
        fn called(&mut self, _: u32, _: &[ToolResult]) {}
    }

    /// A turn that says this, and calls something where it has results.
    fn past(text: &str, has_results: bool) -> Past {
        let call = Call {
            id: "1".to_owned(),
            name: "look".to_owned(),
            arguments: Ok(Value::Null),
        };
        let results = has_results.then(|| vec![refused(&call, "nothing")]);
        let turn = Turn {
            text: text.to_owned(),
            calls: has_results.then_some(call).into_iter().collect(),
            usage: None,
            estimated: false,
            stop: String::new(),
            continuation: None,
            tries: 1,
            duration: Duration::ZERO,
        };
        Past { turn, results }
    }

    #[test]
    fn a_conversation_that_was_over_asks_for_nothing_more() {
        let limit = |text: &str| End::TurnLimit {
            text: text.to_owned(),
        };
        let answered = End::Answered {
            turns: 2,
            text: "done".to_owned(),
        };
        let asked = NoHost.time_left().map_err(End::Halted).unwrap_err();
        let looked = || past("looking", true);
        for (name, past, ends) in [
            (
                "at its limit",
                vec![looked(), past("", true)],
                limit("looking"),
            ),
            ("answered", vec![looked(), past("done", false)], answered),
            ("not over", vec![looked()], asked),
        ] {
            let client = Client::new(ClientSettings::default()).unwrap();
            let model = Model {
                alias: "default".to_owned(),
                dialect: Dialect::Anthropic,
                name: "scripted-1".to_owned(),
                base_url: None,
                key: None,
                limits: ModelLimits::default(),
                deadlines: Deadlines::default(),
            };
            let brief = Brief {
                system: String::new(),
                task: "look".to_owned(),
                tools: Vec::new(),
                turns_max: 2,
            };
            let end = converse(&client, &model, brief, past, &mut NoHost, &Stop::new());
            assert_eq!(end, ends, "{name}");
        }
    }
}
