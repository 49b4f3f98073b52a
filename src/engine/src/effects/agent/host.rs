//! What a conversation needs of its run: budget and time, the journal, the log, the tools.

use std::time::Duration;

use workerctl_agent::{
    Call, Delta, FailedRequest, Halt, Host, RequestUsage, ToolResult, Turn, TurnHost, Usage,
};

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

pub(super) struct RunHost<'a> {
    telling: Telling<'a>,
    agent: &'a AgentSpec,
    model: &'a Model,
    tools: Tools<'a>,
    deadline_ms: u64,
    spent: Spent,
    turns: u32,
    warned: bool,
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

    /// What a request has cost.
    fn cost(&self, usage: RequestUsage) -> Spent {
        let tokens = tokens(usage.tokens);
        let money = self.model.prices.map(|prices| prices.of(&tokens));
        if usage.is_estimated {
            return Spent::estimated(tokens, money, 1);
        }
        Spent {
            tokens,
            money,
            ..Spent::default()
        }
    }

    /// What a request costs at most that is expected to have so many tokens.
    fn most(&self, input_tokens: u64) -> Spent {
        self.cost(RequestUsage {
            tokens: Usage {
                input: input_tokens,
                output: u64::from(self.model.max_output_tokens),
                ..Usage::default()
            },
            is_estimated: true,
        })
    }

    fn span_left(&self) -> Duration {
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

    /// Refuses a request that could go beyond the budget, and warns before.
    fn within_budget(&mut self, next: Spent) -> Result<(), Halt> {
        let budget = &self.agent.budget;
        let spent = counted(self.spent.tokens);
        let money = self.spent.money.unwrap_or_default();
        let (next, next_money) = (next.tokens, next.money);
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
}

/// Tokens as the journal has them.
pub(super) fn tokens(usage: Usage) -> Tokens {
    Tokens {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
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

impl TurnHost for RunHost<'_> {
    /// Records the request before it is sent: an engine that is killed meanwhile could not tell what it cost.
    fn before_request(&mut self, input_tokens: u64) -> Result<(), Halt> {
        let most = self.most(input_tokens);
        self.within_budget(most)?;
        let event = Event::RequestSent {
            attempt: self.telling.attempt,
            spent: most,
        };
        self.telling
            .record(vec![event])
            .inspect_err(|_| self.released())
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

    fn request_failed(&mut self, request: &FailedRequest) {
        self.telling.end_line();
        let spent = self.cost(request.usage);
        self.spent = self.spent.plus(spent);
        let event = Event::TurnFailed {
            attempt: self.telling.attempt,
            code: request.code.to_owned(),
            spent,
        };
        // Waits until the day's budgets have it, so that what was set aside is not free in between. If it cannot be
        // recorded the engine is ending, and the next one counts what was set aside.
        _ = self.telling.record(vec![event]);
        self.released();
    }
}

impl Host for RunHost<'_> {
    fn time_left(&mut self) -> Result<Duration, Halt> {
        let left = self.span_left();
        if left.is_zero() {
            return Err(time_up());
        }
        Ok(left)
    }

    fn taken(&mut self, number: u32, request: &str, turn: &Turn) -> Result<(), Halt> {
        self.telling.end_line();
        self.turns = self.turns.saturating_add(1);
        let spent = self.cost(RequestUsage {
            tokens: turn.usage.unwrap_or_default(),
            is_estimated: turn.estimated,
        });
        self.spent = self.spent.plus(spent);
        let kept = self.telling.keep_turn(number, request, turn, spent, None);
        self.released();
        kept
    }

    fn refused(&mut self, call: &Call, why: &str) {
        self.report_call(call);
        let said = why.lines().next().unwrap_or_default();
        self.telling.tell(&format!("  error: {said}"));
    }

    fn call(&mut self, call: &Call) -> Result<ToolResult, Halt> {
        let left = self.span_left();
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
        self.telling.note_events(vec![event]);
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
