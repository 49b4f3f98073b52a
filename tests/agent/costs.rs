//! What requests cost that came to nothing: cut, timed out, cancelled, or in flight when the engine was killed.

use serde_json::Value;

use super::server::render::Spoken;
use super::server::script::{End, Reply, Say};
use super::server::{ModelServer, frames};
use super::workspace::daemon::Daemon;
use super::workspace::eventually;
use super::{PROVIDERS, Rig, changing, outcome, reading};

/// A line of an answer that is estimated as 100 tokens.
fn piece() -> String {
    let line = "Thirty bytes of an answer, yes".repeat(10);
    format!("{}\n", &line[1..])
}

/// Whether a frame has a piece that is not repeated.
fn is_piece(frame: &str) -> bool {
    frame.contains(piece().trim_end()) && !frame.contains("item.done")
}

/// Three pieces, of which the server says that they are 250 tokens.
fn say() -> Say {
    let three = Say::text(&piece()).and(&piece()).and(&piece());
    three.usage(1_000, 250, 0, 0)
}

fn spoken(provider: &str) -> Spoken {
    match provider {
        "anthropic" => Spoken::Anthropic,
        "openai" => Spoken::Chat,
        "openai_responses" => Spoken::Responses,
        "gemini" => Spoken::Gemini,
        _ => Spoken::Ollama,
    }
}

/// Answers that are cut after their start, in their middle and before their end, with the tokens that came.
fn cuts(provider: &str) -> Vec<(usize, u64)> {
    let frames = frames(spoken(provider), &say());
    let places: Vec<usize> = (0..frames.len())
        .filter(|at| is_piece(&frames[*at]))
        .collect();
    [1, places[1] + 1, places[2] + 1]
        .map(|place| {
            let came = frames[..place]
                .iter()
                .filter(|frame| is_piece(frame))
                .count();
            (place, 100 * came as u64)
        })
        .to_vec()
}

/// Answers cost one for a thousand tokens, requests nothing; an answer has 400 tokens at most.
const MODEL: &str = "    max_output_tokens: 400\n    prices: {input: 0, output: 1000}\n";

fn skill(budget: &str) -> String {
    reading(&format!("    budget: {budget}\n"))
}

fn spent(shown: &Value) -> &Value {
    &shown["summary"]["spent"]
}

/// Thousandths of what was spent.
fn thousandths(money: &Value) -> u64 {
    let (whole, part) = money.as_str().unwrap_or("0.00").split_once('.').unwrap();
    format!("{whole}{part:0<3}").parse().unwrap()
}

#[test]
fn what_was_streamed_of_a_cut_answer_is_counted_in_every_dialect() {
    for (turn, (provider, _)) in PROVIDERS.iter().enumerate() {
        let (place, tokens) = cuts(provider)[turn % 3];
        let name = format!("{provider} after {place}");
        let cut = say().end(End::Early(place));
        let rig = Rig::spoken(
            provider,
            &skill("{money: 5}"),
            MODEL,
            vec![cut.into(), say().into()],
        );
        let shown = rig.ran(&["mrr"]);
        assert_eq!(outcome(&shown)["kind"], "succeeded", "{name}: {shown:#}");
        let spent = spent(&shown);
        // One protocol reports one token at the start.
        let output = spent["tokens"]["output"].as_u64().unwrap() - 250;
        assert!(
            (tokens..=tokens.max(1)).contains(&output),
            "{name}: {spent}"
        );
        assert_eq!(spent["unmeasured"], 1, "{name}: {spent}");
        assert_eq!(
            thousandths(&spent["money"]),
            250 + output,
            "{name}: {spent}"
        );
        assert_eq!(
            thousandths(&spent["estimated_money"]),
            output,
            "{name}: {spent}"
        );
        // The request is counted too, by the report of the server or by its size.
        let input = spent["tokens"]["input"].as_u64().unwrap();
        assert!(input > 1_100, "{name}: {spent}");
        let estimated = spent["estimated_tokens"].as_u64().unwrap();
        assert_eq!(estimated, output + input - 1_000, "{name}: {spent}");
        let said = rig.workspace.run(&["show", "latest"]).expect_code(0).stdout;
        assert!(said.contains("estimated: 1 request"), "{said}");
    }
}

#[test]
fn a_budget_counts_cut_answers_before_the_next_try() {
    for provider in ["anthropic", "ollama"] {
        let (place, tokens) = cuts(provider)[2];
        assert_eq!(tokens, 300);
        let cut = say().end(End::Early(place));
        // 0.3 of the first try, and 0.4 that the second one could cost.
        let rig = Rig::spoken(provider, &skill("{money: 0.5}"), MODEL, vec![cut.into()]);
        let shown = rig.fails(&["mrr"]);
        let failure = &outcome(&shown)["failure"];
        assert_eq!(failure["code"], "budget_exhausted", "{provider}: {shown:#}");
        assert_eq!(rig.asked(), 1, "{provider}");
        assert_eq!(
            thousandths(&spent(&shown)["money"]),
            300,
            "{provider}: {shown:#}"
        );
    }
}

#[test]
fn what_came_before_a_timeout_or_a_cancellation_is_counted() {
    let ends = [
        ("    timeouts: {silence: 500ms}\n", "silence"),
        ("", "cancelled"),
    ];
    for ((provider, _), (deadline, code)) in PROVIDERS.into_iter().zip(ends.into_iter().cycle()) {
        let (place, tokens) = cuts(provider)[1];
        let silent = say().end(End::Silent(place));
        let more = format!("{MODEL}{deadline}");
        let rig = Rig::spoken(provider, &skill("{money: 5}"), &more, vec![silent.into()]);
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        if code == "cancelled" {
            eventually("what was streamed", || {
                let logs = rig.workspace.run(&["logs", &run]).stdout;
                (logs.matches("yes").count() >= 20).then_some(())
            });
            rig.workspace.run(&["cancel", &run]).expect_code(0);
        }
        let (_, shown) = rig.workspace.wait(&run);
        let ended = outcome(&shown);
        let found = ended["failure"]["code"].as_str().or(ended["kind"].as_str());
        assert_eq!(found, Some(code), "{provider}: {shown:#}");
        let spent = spent(&shown);
        assert_eq!(
            spent["tokens"]["output"], tokens,
            "{provider} {code}: {spent}"
        );
        assert!(spent["tokens"]["input"].as_u64().unwrap() > 100, "{spent}");
        assert_eq!(spent["unmeasured"], 1, "{provider} {code}: {spent}");
        assert_eq!(
            thousandths(&spent["money"]),
            tokens,
            "{provider} {code}: {spent}"
        );
        daemon.stop();
    }
}

#[test]
fn a_request_in_flight_when_the_engine_is_killed_is_counted_at_what_it_could_cost() {
    for provider in ["openai", "gemini"] {
        let rig = Rig::spoken(
            provider,
            &skill("{money: 5}"),
            MODEL,
            vec![say().end(End::Silent(3)).into()],
        );
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(1);
        daemon.kill();
        rig.server.follow(vec![say().into()]);
        let daemon = Daemon::start(&rig.workspace);
        let (code, shown) = rig.workspace.wait(&run);
        assert_eq!(code, 0, "{provider}: {shown:#}");
        let spent = spent(&shown);
        assert_eq!(spent["unmeasured"], 1, "{provider}: {spent}");
        assert_eq!(spent["tokens"]["output"], 400 + 250, "{provider}: {spent}");
        assert_eq!(spent["estimated_money"], "0.40", "{provider}: {spent}");
        assert_eq!(spent["money"], "0.65", "{provider}: {spent}");
        daemon.stop();
        let stats = rig.workspace.json(&["stats"]);
        let line = &stats["stats"].as_array().or(stats.as_array()).unwrap()[0];
        assert_eq!(line["unmeasured_count"], 1, "{line}");
        assert_eq!(line["estimated_money"], "0.40", "{line}");
    }
}

#[test]
fn an_engine_that_stops_counts_what_was_streamed() {
    let (place, tokens) = cuts("anthropic")[1];
    let more = format!("{MODEL}drain_grace: 1ms\n");
    let silent = say().end(End::Silent(place));
    let rig = Rig::configured(&skill("{money: 5}"), &more, vec![silent.into()]);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    eventually("what was streamed", || {
        let logs = rig.workspace.run(&["logs", &run]).stdout;
        (logs.matches("yes").count() >= 20).then_some(())
    });
    daemon.stop();
    rig.server.follow(vec![say().into()]);
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 0, "{shown:#}");
    let spent = spent(&shown);
    assert_eq!(spent["tokens"]["output"], tokens + 250, "{spent}");
    assert_eq!(spent["unmeasured"], 1, "{spent}");
    daemon.stop();
}

#[test]
fn money_of_a_day_counts_requests_that_were_lost_with_their_engines() {
    let budget = "    budget: {per_day: {money: 1}}\n";
    let rig = Rig::configured(&changing(budget), MODEL, vec![Reply::Nothing]);
    for asked in 1..=2 {
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["change"]);
        rig.server.wait_for_requests(asked);
        daemon.kill();
        let daemon = Daemon::start(&rig.workspace);
        let (_, shown) = rig.workspace.wait(&run);
        assert_eq!(outcome(&shown)["kind"], "unknown", "{shown:#}");
        assert_eq!(spent(&shown)["money"], "0.40", "{shown:#}");
        daemon.stop();
    }
    let shown = rig.fails(&["change"]);
    let failure = &outcome(&shown)["failure"];
    assert_eq!(failure["code"], "budget_exhausted", "{shown:#}");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.contains("`w/change` has spent 0.80 of 1.00 today"),
        "{message}"
    );
    assert_eq!(rig.asked(), 2);
}

#[test]
fn money_of_a_day_counts_cut_answers_before_the_next_try() {
    let (place, _) = cuts("anthropic")[2];
    let cut = say().end(End::Early(place));
    let rig = Rig::configured(
        &reading("    budget: {per_day: {money: 1}}\n"),
        MODEL,
        vec![cut.into()],
    );
    // Three tries would cost 0.3 each; the third one could come to 1.0.
    let shown = rig.fails(&["mrr"]);
    assert_eq!(
        outcome(&shown)["failure"]["code"],
        "incomplete",
        "{shown:#}"
    );
    assert_eq!((rig.asked(), &spent(&shown)["unmeasured"]), (3, &3.into()));
    let shown = rig.fails(&["mrr"]);
    assert_eq!(
        outcome(&shown)["failure"]["code"],
        "budget_exhausted",
        "{shown:#}"
    );
    assert_eq!(rig.asked(), 3);
}

#[test]
fn what_a_server_refuses_costs_nothing() {
    let script = vec![Reply::status(500), say().into()];
    let rig = Rig::configured(&skill("{money: 5}"), MODEL, script);
    let shown = rig.ran(&["mrr"]);
    assert_eq!(rig.asked(), 2);
    assert_eq!(spent(&shown)["unmeasured"], 0, "{shown:#}");
    assert_eq!(spent(&shown)["money"], "0.25", "{shown:#}");
    // Nor one that nobody takes.
    let rig = Rig::configured(&skill("{money: 5}"), MODEL, vec![Reply::Nothing]);
    let Rig { workspace, server } = rig;
    drop::<ModelServer>(server);
    let shown = workspace.run(&["run", "mrr", "--json"]).value();
    assert_eq!(outcome(&shown)["failure"]["code"], "connect", "{shown:#}");
    assert_eq!(spent(&shown)["money"], "0.00", "{shown:#}");
}
