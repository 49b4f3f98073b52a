//! What each request costs: what its server reports, and an estimate of the rest, wherever its answer breaks off.

use std::time::Duration;

use serde_json::json;
use workerctl_agent::{
    Client, ClientSettings, Delta, Dialect, FailedRequest, Halt, Model, RequestUsage, Stop, Turn,
    TurnError, TurnHost, Usage,
};

use crate::cuts::spoken;
use crate::rig::{DIALECTS, StillPace, client, model, request, settings, turn};
use crate::server::script::{End, Ending, Reply, Say};
use crate::server::{ModelServer, frames};

/// What the request is said to have where its server does not tell.
const INPUT: u64 = 1_000;

/// Bytes of an answer that are 10 tokens.
const PIECE: &str = "Thirty bytes of an answer, yes";

/// Notes what requests cost, and allows so many of them.
#[derive(Default)]
struct Costs {
    allowed: usize,
    asked: usize,
    failed: Vec<FailedRequest>,
    /// Set when the answer begins.
    stop: Option<Stop>,
}

impl TurnHost for Costs {
    fn before_request(&mut self, input_tokens: u64) -> Result<(), Halt> {
        assert_eq!(input_tokens, INPUT);
        // What the request before cost is known by now.
        assert_eq!(self.failed.len(), self.asked);
        if self.asked == self.allowed {
            return Err(Halt {
                code: "budget".to_owned(),
                message: "no more".to_owned(),
                again: false,
            });
        }
        self.asked += 1;
        Ok(())
    }

    fn delta(&mut self, delta: Delta) {
        if let (Some(stop), Delta::Text(_)) = (&self.stop, delta) {
            stop.stop();
        }
    }

    fn request_failed(&mut self, request: &FailedRequest) {
        self.failed.push(*request);
    }
}

fn metered(model: &Model, costs: &mut Costs) -> Result<Turn, TurnError> {
    let client = client(&StillPace::new());
    let stop = costs.stop.clone().unwrap_or_default();
    client.metered_turn(model, (&request(), INPUT), costs, &stop)
}

fn allowing(allowed: usize) -> Costs {
    Costs {
        allowed,
        ..Costs::default()
    }
}

fn say() -> Say {
    let four = Say::text(PIECE).and(PIECE).and(PIECE).and(PIECE);
    four.usage(700, 50, 0, 0)
}

/// What a request costs of whose answer so many frames came.
fn cost_of(dialect: Dialect, came: usize) -> RequestUsage {
    let frames = frames(spoken(dialect), &say());
    let came = &frames[..came];
    // One dialect repeats an item when it is done.
    let is_piece = |frame: &&String| frame.contains(PIECE) && !frame.contains("item.done");
    let pieces = came.iter().filter(is_piece).count();
    let has = |mark: &str| came.iter().any(|frame| frame.contains(mark));
    let (mut input, mut output) = (INPUT, 10 * pieces as u64);
    // Of the dialects only this one reports before the end.
    if dialect == Dialect::Anthropic && has("message_start") {
        (input, output) = (700, output.max(1));
    }
    let ends = [
        "message_delta",
        "completion_tokens",
        "response.completed",
        "usageMetadata",
        "eval_count",
    ];
    let is_estimated = !ends.iter().any(|end| has(end));
    if !is_estimated {
        (input, output) = (700, 50);
    }
    RequestUsage {
        tokens: Usage {
            input,
            output,
            ..Usage::default()
        },
        is_estimated,
    }
}

/// Frames after which an answer is cut: at once, after its start, in its middle, before its end.
fn places(dialect: Dialect) -> [usize; 4] {
    let whole = frames(spoken(dialect), &say()).len();
    [0, 1, whole / 2, whole - 1]
}

#[test]
fn what_came_of_an_answer_that_was_cut_is_counted_before_the_next_try() {
    for dialect in DIALECTS {
        for place in places(dialect) {
            let name = format!("{dialect:?} after {place}");
            let cut = say().end(End::Early(place));
            let server = ModelServer::start(vec![cut.into(), say().into()]);
            let mut costs = allowing(2);
            let turn = metered(&model(dialect, &server), &mut costs).expect(&name);
            let whole = cost_of(dialect, frames(spoken(dialect), &say()).len());
            assert_eq!((turn.usage, turn.estimated), (Some(whole.tokens), false));
            // An answer of this dialect is whole without its last frame.
            if turn.tries == 1 {
                assert_eq!(dialect, Dialect::OpenAiChat, "{name}");
                continue;
            }
            let failed = FailedRequest {
                code: "incomplete",
                usage: cost_of(dialect, place),
            };
            assert_eq!(costs.failed, [failed], "{name}");
        }
        // What came before a connection is reset may not arrive.
        let cut = say().end(End::Reset(3));
        let server = ModelServer::start(vec![cut.into(), say().into()]);
        let mut costs = allowing(2);
        metered(&model(dialect, &server), &mut costs).unwrap();
        let [failed] = costs.failed[..] else {
            panic!("{:?}", costs.failed);
        };
        assert!(failed.usage.is_estimated, "{dialect:?}");
        assert!(failed.usage.tokens.input >= 700, "{dialect:?}");
    }
}

#[test]
fn what_came_before_a_deadline_or_a_stop_is_counted() {
    let short = Duration::from_millis(100);
    for dialect in DIALECTS {
        for place in places(dialect) {
            for code in ["silence", "turn_timeout"] {
                let silent = say().end(End::Silent(place));
                let server = ModelServer::start(vec![silent.into()]);
                let mut model = model(dialect, &server);
                match code {
                    "silence" => model.deadlines.silence = short,
                    _ => model.deadlines.turn = short,
                }
                let mut costs = allowing(1);
                let error = metered(&model, &mut costs).unwrap_err();
                assert_eq!(error.code(), code);
                let [failed] = costs.failed[..] else {
                    panic!("{:?}", costs.failed);
                };
                assert_eq!(failed.code, code);
                // A slow machine may not have read all of it.
                let most = cost_of(dialect, place);
                assert!(
                    failed.usage.tokens.output <= most.tokens.output,
                    "{dialect:?}"
                );
                assert!(
                    failed.usage.tokens.input >= most.tokens.input,
                    "{dialect:?}"
                );
                if code == "silence" {
                    assert_eq!(failed.usage, most, "{dialect:?} after {place}");
                }
            }
        }
        let mut costs = Costs {
            stop: Some(Stop::new()),
            ..allowing(1)
        };
        // The middle is before the frame that tells what it cost, so it is estimated however much was read.
        let [_, _, middle, _] = places(dialect);
        let server = ModelServer::start(vec![say().end(End::Silent(middle)).into()]);
        let error = metered(&model(dialect, &server), &mut costs).unwrap_err();
        assert_eq!(error.code(), "stopped");
        let usage = costs.failed[0].usage;
        assert!(usage.is_estimated && usage.tokens.output >= 10, "{usage:?}");
        // No head of an answer ever came; the request may be worked on all the same.
        let server = ModelServer::start(vec![Reply::Nothing]);
        let mut model = model(dialect, &server);
        model.deadlines.headers = short;
        let mut costs = allowing(1);
        metered(&model, &mut costs).unwrap_err();
        assert_eq!(
            costs.failed[0].usage,
            RequestUsage {
                tokens: Usage {
                    input: INPUT,
                    ..Usage::default()
                },
                is_estimated: true,
            }
        );
    }
}

#[test]
fn what_a_server_does_not_accept_costs_nothing() {
    for dialect in DIALECTS {
        for reply in [
            Reply::status(429),
            Reply::status(500),
            Reply::status(400),
            Say::nothing().error("overloaded_error").into(),
        ] {
            let at_once = matches!(reply, Reply::Say(_));
            let server = ModelServer::start(vec![reply]);
            let mut costs = allowing(3);
            metered(&model(dialect, &server), &mut costs).unwrap_err();
            for failed in &costs.failed {
                // These begin an answer before they report the error.
                let begins = ["Anthropic", "OpenAiChat", "OpenAiResponses"];
                let begun = at_once && begins.contains(&format!("{dialect:?}").as_str());
                assert_eq!(
                    failed.usage.tokens.input > 0,
                    begun,
                    "{dialect:?}: {failed:?}"
                );
            }
        }
    }
}

#[test]
fn a_try_that_is_not_allowed_is_not_begun() {
    for dialect in DIALECTS {
        let server = ModelServer::start(vec![say().end(End::Early(2)).into()]);
        let mut costs = allowing(1);
        let error = metered(&model(dialect, &server), &mut costs).unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            ("halted", "model `fast`: no more".to_owned())
        );
        assert_eq!((server.requests().len(), costs.failed.len()), (1, 1));
    }
}

#[test]
fn answers_that_do_not_count_cost_what_the_server_reports() {
    for dialect in DIALECTS {
        let short = Say::text("x").usage(7, 5, 0, 0).ending(Ending::Length);
        let server = ModelServer::start(vec![short.into()]);
        let mut costs = allowing(1);
        metered(&model(dialect, &server), &mut costs).unwrap_err();
        let usage = costs.failed[0].usage;
        assert_eq!(
            (usage.tokens.input, usage.tokens.output),
            (7, 5),
            "{dialect:?}"
        );
        assert!(!usage.is_estimated, "{dialect:?}");
    }
}

#[test]
fn an_answer_without_tokens_is_estimated() {
    for dialect in DIALECTS {
        let quiet = Say {
            usage: None,
            ..say()
        };
        let server = ModelServer::start(vec![quiet.call("read", r#"{"path": "a"}"#).into()]);
        let turn = metered(&model(dialect, &server), &mut allowing(1)).unwrap();
        let usage = turn.usage.unwrap();
        assert!(turn.estimated, "{dialect:?}");
        assert_eq!(usage.input, INPUT, "{dialect:?}");
        // 120 bytes of text, and about 17 of the call.
        assert!((45..=47).contains(&usage.output), "{dialect:?}: {usage:?}");
    }
}

/// Arguments that are streamed count from their first piece, also where the whole of them follows.
#[test]
fn half_a_call_is_counted() {
    let long = format!(r#"{{"text": "{}"}}"#, PIECE.repeat(10));
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenAiChat,
        Dialect::OpenAiResponses,
    ] {
        let frames = frames(spoken(dialect), &Say::nothing().call("write", &long));
        let half = |frame: &String| frame.contains(PIECE);
        let first = frames.iter().position(half).unwrap();
        let reply = Reply::Frames {
            frames: frames[..=first].to_vec(),
            end: End::Early(first + 1),
        };
        let server = ModelServer::start(vec![reply]);
        let mut costs = allowing(1);
        metered(&model(dialect, &server), &mut costs).unwrap_err();
        let output = costs.failed[0].usage.tokens.output;
        assert!((50..=60).contains(&output), "{dialect:?}: {output}");
        let server = ModelServer::start(vec![Reply::Frames {
            frames,
            end: End::Whole,
        }]);
        let turn = metered(&model(dialect, &server), &mut allowing(1)).unwrap();
        let output = turn.usage.unwrap().output;
        assert!((100..=110).contains(&output), "{dialect:?}: {output}");
    }
}

/// So many calls in one frame, each with arguments of so many bytes.
fn parallel(dialect: Dialect, calls: usize, bytes: usize) -> Reply {
    let arguments = json!({"text": "x".repeat(bytes)});
    let all = |call: serde_json::Value| vec![call; calls];
    let frame = match dialect {
        Dialect::Gemini => {
            let parts = all(json!({"functionCall": {"name": "write", "args": arguments}}));
            json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
        }
        Dialect::Ollama => {
            let calls = all(json!({"function": {"name": "write", "arguments": arguments}}));
            json!({"message": {"content": "", "tool_calls": calls}, "done": true})
        }
        _ => {
            let function = json!({"name": "write", "arguments": arguments});
            let call = |at| json!({"index": at, "id": format!("call_{at}"), "function": function});
            let calls: Vec<serde_json::Value> = (0..calls).map(call).collect();
            json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})
        }
    };
    let frame = match dialect {
        Dialect::Ollama => format!("{frame}\n"),
        _ => format!("data: {frame}\n\n"),
    };
    Reply::Frames {
        frames: vec![frame],
        end: End::Whole,
    }
}

#[test]
fn parallel_calls_count_once_each() {
    let bounded = ClientSettings {
        answer_bytes_max: 4 * 1024 * 1024,
        ..settings()
    };
    let client = Client::with_pace(bounded, StillPace::new()).unwrap();
    for dialect in [Dialect::Gemini, Dialect::Ollama, Dialect::OpenAiChat] {
        for (calls, kilobytes, fits) in [(2, 1_900, true), (60, 60, true), (60, 70, false)] {
            let name = format!("{dialect:?}: {calls} of {kilobytes} KiB");
            let reply = parallel(dialect, calls, kilobytes * 1024);
            let server = ModelServer::start(vec![reply]);
            match turn(&client, &model(dialect, &server)).0 {
                Ok(turn) => assert!(fits && turn.calls.len() == calls, "{name}"),
                Err(error) => assert!(!fits && error.code() == "too_large", "{name}: {error}"),
            }
        }
    }
}
