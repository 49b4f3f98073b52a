//! What a conversation needs of its run: budget and time, the journal, the log, the tools.

use std::time::Duration;

use workerctl_agent::{Call, Delta, Halt, Host, ToolResult, Turn, TurnError, Usage};

use super::telling::Telling;
use super::tools::{Left, Tools};
use crate::machine::Event;
use crate::model::agent::{AgentSpec, Budget, Model, Money, Spent, Tokens};
use crate::spending::Sources;

/// The attempt has no time left.
pub(super) const TIME_UP: &str = "time_up";

/// Code of a failure at the limits of a budget.
const BUDGET: &str = "budget_exhausted";

/// How much of a budget is spent when a warning is written, in hundredths.
const WARN_PERCENT: u64 = 80;

/// Bytes of an answer that count as one token where the server says nothing.
const BYTES_PER_TOKEN: u64 = 3;

pub(super) struct RunHost<'a> {
    telling: Telling<'a>,
    agent: &'a AgentSpec,
    model: &'a Model,
    tools: Tools<'a>,
    deadline_ms: u64,
    spent: Spent,
    turns: u32,
    warned: bool,
    /// Tokens that the request of the turn has at most.
    asking: u64,
}

impl<'a> RunHost<'a> {
    pub(super) fn new(
        telling: Telling<'a>,
        (agent, model): (&'a AgentSpec, &'a Model),
        tools: Tools<'a>,
        deadline_ms: u64,
    ) -> RunHost<'a> {
        let facts = &telling.work.run.facts;
        RunHost {
            spent: facts.spent,
            turns: facts.all_turns,
            telling,
            agent,
            model,
            tools,
            deadline_ms,
            warned: false,
            asking: 0,
        }
    }

    /// Says in the log what is not as it was asked for.
    pub(super) fn begins(&mut self, turns: usize) {
        if let Some(asked) = &self.agent.asked {
            let used = &self.model.alias;
            self.telling.note(&format!(
                "the model `{asked}` is not configured: `{used}` is used"
            ));
        }
        for note in self.tools.notes() {
            self.telling.note(&note);
        }
        if turns > 0 {
            self.telling.note(&format!(
                "goes on where the attempt before broke off, after turn {turns}"
            ));
        }
    }

    fn cost(&self, usage: Option<Usage>, lost: Option<Usage>) -> Spent {
        let tokens = |usage: Usage| Tokens {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        };
        let parts = usage.into_iter().chain(lost).map(tokens);
        let tokens = parts.fold(Tokens::default(), Tokens::plus);
        Spent {
            tokens,
            money: self.model.prices.map(|prices| prices.of(&tokens)),
            unmeasured: u32::from(usage.is_none()),
        }
    }

    fn time_left(&self) -> Duration {
        let now_ms = self.telling.performer.parts.clock.monotonic_ms();
        Duration::from_millis(self.deadline_ms.saturating_sub(now_ms))
    }

    /// What of the budget is not spent.
    fn left(&self) -> Budget {
        let budget = &self.agent.budget;
        let (tokens, money) = (
            counted(self.spent.tokens),
            self.spent.money.unwrap_or_default(),
        );
        Budget {
            tokens: budget.tokens.map(|limit| limit.saturating_sub(tokens)),
            money: budget
                .money
                .map(|limit| Money(limit.0.saturating_sub(money.0))),
            turns: budget.turns.map(|limit| limit.saturating_sub(self.turns)),
        }
    }

    /// Refuses a turn that could go beyond the budget, and warns before.
    fn within_budget(&mut self, tokens: u64) -> Result<(), Halt> {
        self.asking = tokens;
        let budget = &self.agent.budget;
        let answer = u64::from(self.model.max_output_tokens);
        let spent = counted(self.spent.tokens);
        let money = self.spent.money.unwrap_or_default();
        let next = Tokens {
            input: tokens,
            output: answer,
            ..Tokens::default()
        };
        let next_money = self.model.prices.map(|prices| prices.of(&next));
        let mut share = 0;
        if let Some(limit) = budget.turns {
            share = share.max(percent(u64::from(self.turns), u64::from(limit)));
            if self.turns >= limit {
                return Err(exhausted(format!(
                    "{} of {limit} turns are taken (`budget.turns`)",
                    self.turns
                )));
            }
        }
        if let Some(limit) = budget.tokens {
            share = share.max(percent(spent, limit));
            if spent.saturating_add(next.sum()) > limit {
                return Err(exhausted(format!(
                    "{spent} of {limit} tokens are spent, and the next turn could take {} (`budget.tokens`)",
                    next.sum()
                )));
            }
        }
        if let (Some(limit), Some(next)) = (budget.money, next_money) {
            share = share.max(percent(money.0, limit.0));
            if money.plus(next) > limit {
                return Err(exhausted(format!(
                    "{money} of {limit} is spent, and the next turn could cost {next} (`budget.money`)"
                )));
            }
        }
        let parts = &self.telling.performer.parts;
        let spec = &self.telling.work.spec;
        let around: Sources<'_> = (parts.view.as_ref(), parts.store.as_ref(), parts.clock.now());
        let config = &parts.definitions.current().config;
        // A child's money counts as its parent's.
        let run = spec
            .parent
            .as_ref()
            .map_or(spec.run, |parent| parent.tree_of);
        let reserved = parts.view.spending.reserve(
            (run, &spec.skill),
            next_money.unwrap_or_default(),
            self.agent.per_day,
            config,
            around,
        );
        reserved.map_err(exhausted)?;
        if share >= WARN_PERCENT && !std::mem::replace(&mut self.warned, true) {
            self.telling
                .note(&format!("{share}% of the run's budget is spent"));
        }
        Ok(())
    }

    /// About as many tokens as a turn had of which the server reported none.
    fn estimate(&self, turn: &Turn) -> Usage {
        let calls = turn.calls.iter().map(|call| {
            let arguments = call.arguments.as_ref().map(ToString::to_string);
            call.name.len() + arguments.unwrap_or_default().len()
        });
        let bytes = turn.text.len() + calls.sum::<usize>();
        Usage {
            input: self.asking,
            output: u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN,
            ..Usage::default()
        }
    }
}

/// Tokens that count against a budget: what a cache gave was counted when it was written.
fn counted(tokens: Tokens) -> u64 {
    tokens.sum().saturating_sub(tokens.cache_read)
}

fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

fn exhausted(why: String) -> Halt {
    Halt {
        code: BUDGET.to_owned(),
        message: why,
        again: false,
    }
}

fn time_up() -> Halt {
    Halt {
        code: TIME_UP.to_owned(),
        message: "the time of the attempt is up".to_owned(),
        again: true,
    }
}

impl Host for RunHost<'_> {
    fn may_ask(&mut self, tokens: u64) -> Result<Duration, Halt> {
        let left = self.time_left();
        if left.is_zero() {
            return Err(time_up());
        }
        self.within_budget(tokens)?;
        Ok(left)
    }

    fn delta(&mut self, delta: Delta) {
        match delta {
            Delta::Text(text) => self.telling.show(&text),
            Delta::Reasoning(_) | Delta::Call { .. } => {}
            Delta::Again { code, wait } => {
                self.telling.end_line();
                let wait = crate::model::duration::show_millis(
                    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                );
                self.telling.note(&format!(
                    "the turn failed ({code}) and is tried again in {wait}"
                ));
            }
        }
    }

    fn taken(&mut self, number: u32, request: &str, turn: &Turn) -> Result<(), Halt> {
        self.telling.end_line();
        self.released();
        self.turns = self.turns.saturating_add(1);
        let mut spent = self.cost(turn.usage.or_else(|| Some(self.estimate(turn))), turn.lost);
        spent.unmeasured = u32::from(turn.usage.is_none());
        self.spent = self.spent.plus(spent);
        self.telling.keep_turn(number, request, turn, spent)
    }

    fn failed(&mut self, error: &TurnError) {
        self.telling.end_line();
        self.released();
        // Whoever asked, and got an answer that began, pays for what nobody counted.
        let began = [
            "incomplete",
            "silence",
            "turn_timeout",
            "stopped",
            "too_large",
            "empty",
        ];
        if error.usage.is_none() && !(error.tries > 0 && began.contains(&error.code())) {
            return;
        }
        let asked = Usage {
            input: self.asking,
            ..Usage::default()
        };
        let mut spent = self.cost(error.usage.or(Some(asked)), None);
        spent.unmeasured = u32::from(error.usage.is_none());
        self.spent = self.spent.plus(spent);
        let event = Event::TurnFailed {
            attempt: self.telling.attempt,
            code: error.code().to_owned(),
            spent,
        };
        self.telling.note_event(event);
    }

    fn refused(&mut self, call: &Call, why: &str) {
        self.report_call(call);
        let said = why.lines().next().unwrap_or_default();
        self.telling.tell(&format!("  error: {said}"));
    }

    fn call(&mut self, call: &Call) -> Result<ToolResult, Halt> {
        let left = self.time_left();
        if left.is_zero() {
            return Err(time_up());
        }
        self.report_call(call);
        let budget = self.left();
        let mut result = self.tools.call(call, Left { time: left, budget });
        let (spent, turns) = self.tools.take_spent();
        self.spent = self.spent.plus(spent);
        self.turns = self.turns.saturating_add(turns);
        result.content = self
            .telling
            .log
            .masker()
            .mask_text(&result.content)
            .into_owned();
        self.telling.report_result(result.is_error, &result.content);
        Ok(result)
    }

    fn called(&mut self, number: u32, results: &[ToolResult]) {
        let Ok(results) = self.telling.masked(&results) else {
            return;
        };
        let event = Event::ToolsFinished {
            attempt: self.telling.attempt,
            turn: number,
            results,
        };
        self.telling.note_event(event);
    }
}

impl RunHost<'_> {
    fn report_call(&self, call: &Call) {
        let arguments = call.arguments.as_ref();
        let arguments = arguments.map_or_else(Clone::clone, ToString::to_string);
        self.telling.report_call(&call.name, &arguments);
    }

    fn released(&self) {
        let spec = &self.telling.work.spec;
        let run = spec
            .parent
            .as_ref()
            .map_or(spec.run, |parent| parent.tree_of);
        self.telling.performer.parts.view.spending.release(run);
    }
}
