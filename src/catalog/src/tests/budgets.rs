//! `budget`: what is limited at which level, and what is refused.

use super::models::{MODELS, accepted, configured, first, of_worker, problem};
use super::*;
use crate::model::agent::{Budget, DayBudget, DeclaredAgent, Money};

#[test]
fn of_each_limit_the_innermost_level_counts_and_days_are_counted_at_each() {
    let config =
        format!("{MODELS}budget: {{tokens: 400_000, turns: 30, per_day: {{runs: 100}}}}\n");
    let catalog = of_worker(
        &config,
        "execution: {model: dear}\nbudget: {tokens: 300000, money: 2.50, per_day: {money: 10, runs: 50}}\n",
        "  - {id: a, description: d, instructions: i, budget: {money: '1', turns: 5, per_day: {runs: 3}}}\n  - {id: b, description: d, instructions: i}\n  - {id: c, description: d, run: x, budget: {per_day: {runs: 3}}}\n",
    );
    assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
    let limits = |money, turns| Budget {
        tokens: Some(300_000),
        money: Some(Money(money)),
        turns: Some(turns),
    };
    let day = |money: Option<u64>, runs| DayBudget {
        money: money.map(Money),
        runs: Some(runs),
    };
    assert_eq!(catalog.config.budget.tokens, Some(400_000));
    assert_eq!(catalog.config.per_day, day(None, 100));
    let skills = &catalog.workers[0].skills;
    assert_eq!(skills[0].agent.budget, limits(1_000_000, 5));
    assert_eq!(skills[0].agent.per_day, day(None, 3));
    assert_eq!(skills[0].agent.worker_per_day, day(Some(10_000_000), 50));
    assert_eq!(skills[1].agent.budget, limits(2_500_000, 30));
    assert_eq!(skills[1].agent.per_day, DayBudget::default());
    // A command spends no money: only its runs are counted.
    let command = DeclaredAgent {
        per_day: day(None, 3),
        worker_per_day: day(None, 50),
        ..DeclaredAgent::default()
    };
    assert_eq!(skills[2].agent, command);
    let unsaid = accepted("budget: {turns: 3}\n");
    let expected = Budget {
        turns: Some(3),
        ..Budget::default()
    };
    assert_eq!(unsaid.budget, expected);
    assert_eq!(unsaid.origins["budget.turns"], "workerctl.yaml:1");
    assert_eq!(unsaid.origins["budget.tokens"], "default");
}

#[test]
fn what_limits_nothing_that_is_known_is_refused_at_every_level() {
    for (text, code) in [
        ("tokens: 0", "out-of-range"),
        ("tokens: -5", "out-of-range"),
        ("tokens: 1.5", "out-of-range"),
        ("tokens: all", "wrong-type"),
        ("turns: 0", "out-of-range"),
        ("turns: 1000001", "out-of-range"),
        ("money: 0", "out-of-range"),
        ("money: 0.00", "out-of-range"),
        ("money: -1", "money-invalid"),
        ("money: free", "money-invalid"),
        ("money: [1]", "money-invalid"),
        ("per_day: {runs: 0}", "out-of-range"),
        ("per_day: {money: 0}", "out-of-range"),
        ("per_day: {tokens: 5}", "restriction-malformed"),
        ("per_day: 5", "wrong-type"),
        ("token: 5", "restriction-malformed"),
        ("x-turns: 5", "restriction-malformed"),
        ("{money: 3, per_day: {money: 2}}", "limits-contradict"),
    ] {
        let worker = format!("\n\nbudget:\n  {text}\n");
        let skill = format!(
            "\n  - id: a\n    description: d\n    instructions: i\n    budget:\n      {text}\n"
        );
        let a = "  - {id: a, description: d, instructions: i}\n";
        let prices =
            "models: {default: {provider: ollama, model: m, prices: {input: 1, output: 1}}}\n";
        for (worker, skills, line) in [(worker.as_str(), a, 5), ("", skill.as_str(), 8)] {
            let catalog = of_worker(prices, worker, skills);
            let found = problem(&catalog, code);
            assert_eq!((found.severity, found.place.line), (ERROR, line), "{text}");
            assert!(catalog.skills().next().is_none(), "{text}");
        }
        let catalog = configured(&format!("budget:\n  {text}\n"));
        assert_eq!(problem(&catalog, code).place.line, 2, "{text}");
        assert!(!catalog.config_is_known, "{text}");
    }
    let catalog = configured("budget: 5\n");
    assert_eq!(problem(&catalog, "wrong-type").place.line, 1);
}

#[test]
fn money_is_limited_only_where_prices_say_what_is_spent() {
    let skill = |keys: &str| format!("  - {{id: a, description: d, instructions: i{keys}}}\n");
    for (worker, keys, line) in [
        ("", ", budget: {money: 1}", Some(3)),
        ("", ", budget: {per_day: {money: 1}}", Some(3)),
        ("", ", model: fats, budget: {money: 1}", Some(3)),
        ("budget: {money: 1}\n", "", Some(2)),
        ("budget: {per_day: {money: 1}}\n", "", Some(2)),
        ("budget: {money: 1}\n", ", budget: {turns: 1}", Some(2)),
        ("", ", model: dear, budget: {money: 1}", None),
        ("execution: {model: dear}\n", ", budget: {money: 1}", None),
        ("", ", budget: {tokens: 1}", None),
    ] {
        let catalog = of_worker(MODELS, worker, &skill(keys));
        let found = catalog
            .problems
            .iter()
            .find(|one| one.code == "prices-missing");
        let found = found.map(|one| (one.severity, one.place.line));
        assert_eq!(found, line.map(|line| (ERROR, line)), "{worker}{keys}");
        assert_eq!(
            catalog.skills().next().is_none(),
            line.is_some(),
            "{worker}{keys}"
        );
    }
    let of = |text: &str| problem(&configured(&format!("{MODELS}{text}")), "prices-missing");
    for text in ["budget: {money: 1}\n", "budget: {per_day: {money: 1}}\n"] {
        let found = of(text);
        assert_eq!((found.severity, found.place.line), (ERROR, 4), "{text}");
        assert!(found.message.contains("`default`"), "{}", found.message);
    }
    accepted("budget: {money: 1, per_day: {money: 5}}\n");
    accepted(
        "models: {default: {provider: ollama, model: m, prices: {input: 0, output: 0}}}\nbudget: {money: 1}\n",
    );
}

#[test]
fn a_budget_of_a_command_counts_its_runs_alone() {
    for (budget, told) in [
        ("{tokens: 5}", true),
        ("{per_day: {money: 5, runs: 5}}", true),
        ("{per_day: {runs: 5}}", false),
    ] {
        let skill = format!("  - {{id: a, description: d, run: x, budget: {budget}}}\n");
        let catalog = of_worker("", "", &skill);
        let expected: &[&str] = if told { &["budget-unused"] } else { &[] };
        assert_eq!(codes(&catalog), expected, "{budget}");
        assert!(first(&catalog).is_available(), "{budget}");
    }
}
