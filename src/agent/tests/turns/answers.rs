//! Answers that count, in each dialect.

use std::sync::Barrier;

use serde_json::{Value, json};
use workerctl_agent::{Call, Client, ClientSettings, Delta, Dialect, Stop, Usage};

use crate::rig::{DIALECTS, StillPace, client, model, request, settings, told_text, turn};
use crate::server::ModelServer;
use crate::server::script::{End, Reply, Say};

/// The text and the calls that are expected, where calls have the arguments as JSON or as a problem.
struct Case {
    name: &'static str,
    script: Vec<Reply>,
    text: &'static str,
    calls: Vec<(&'static str, Result<Value, &'static str>)>,
    usage: Option<Usage>,
    /// Requests that the server saw.
    tries: u32,
}

fn case(name: &'static str, script: Vec<Reply>, text: &'static str) -> Case {
    Case {
        name,
        script,
        text,
        calls: Vec::new(),
        usage: None,
        tries: 1,
    }
}

fn said(name: &'static str, say: Say, text: &'static str) -> Case {
    case(name, vec![say.into()], text)
}

/// A call with an object as arguments.
fn call(name: &'static str, arguments: Value) -> (&'static str, Result<Value, &'static str>) {
    (name, Ok(arguments))
}

fn first_tries() -> Vec<Case> {
    let one = r#"{"path": "a/b.txt", "lines": [1, 2]}"#;
    let several = Say::text("I look.")
        .call("read", r#"{"path": "ä"}"#)
        .call("list", "{}")
        .call("read", r#"{"path": "c"}"#);
    let wrong = Say::nothing().call("read", "[1, 2]").call("read", "7");
    vec![
        said(
            "text",
            Say::text("Twelve ").and("spoons: äöü €."),
            "Twelve spoons: äöü €.",
        ),
        Case {
            calls: vec![call("read", json!({"path": "a/b.txt", "lines": [1, 2]}))],
            ..said(
                "one call without text",
                Say::nothing().call("read", one),
                "",
            )
        },
        Case {
            calls: vec![
                call("read", json!({"path": "ä"})),
                call("list", json!({})),
                call("read", json!({"path": "c"})),
            ],
            ..said("several calls after text", several, "I look.")
        },
        Case {
            calls: vec![
                ("read", Err("the arguments are a list, not an object")),
                ("read", Err("the arguments are a number, not an object")),
            ],
            ..said("arguments of the wrong type", wrong, "")
        },
        Case {
            usage: Some(Usage {
                input: 90,
                output: 20,
                cache_read: 900,
                cache_write: 0,
            }),
            ..said("usage", Say::text("Yes.").usage(90, 20, 900, 0), "Yes.")
        },
    ]
}

fn later_tries() -> Vec<Case> {
    let again = |name, tries: u32, mut script: Vec<Reply>| {
        script.push(Say::text("Done.").into());
        Case {
            tries,
            ..case(name, script, "Done.")
        }
    };
    let error = Say::text("x").error("overloaded_error");
    vec![
        again("reset once", 2, vec![cut(End::Reset(2))]),
        again("ended early once", 2, vec![cut(End::Early(2))]),
        again(
            "two failures",
            3,
            vec![Reply::status(500), cut(End::Early(1))],
        ),
        again("an error within the stream", 2, vec![error.into()]),
    ]
}

fn cut(end: End) -> Reply {
    Say::text("This ")
        .and("will ")
        .and("be ")
        .and("cut.")
        .end(end)
        .into()
}

#[test]
fn an_answer_counts_in_every_dialect() {
    for case in first_tries().into_iter().chain(later_tries()) {
        for dialect in DIALECTS {
            let name = format!("{} of {dialect:?}", case.name);
            let server = ModelServer::start(case.script.clone());
            let (turn, deltas) = turn(&client(&StillPace::new()), &model(dialect, &server));
            let turn = turn.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(turn.text, case.text, "{name}");
            assert_eq!(told_text(&deltas), case.text, "{name}");
            let call = |call: &Call| (call.name.clone(), call.arguments.clone());
            let expect = |(name, arguments): &(&str, Result<Value, &str>)| {
                ((*name).to_owned(), arguments.clone().map_err(str::to_owned))
            };
            assert_eq!(
                turn.calls.iter().map(call).collect::<Vec<_>>(),
                case.calls.iter().map(expect).collect::<Vec<_>>(),
                "{name}"
            );
            assert_eq!(turn.usage.filter(|_| !turn.estimated), case.usage, "{name}");
            assert_eq!(turn.tries, case.tries, "{name}");
            assert_eq!(server.requests().len(), case.tries as usize, "{name}");
            assert!(!turn.stop.is_empty(), "{name}");
            let told = deltas
                .iter()
                .filter(|delta| matches!(delta, Delta::Call { .. }))
                .count();
            assert_eq!(told, case.calls.len(), "{name}");
        }
    }
}

#[test]
fn ids_of_calls_differ_whether_the_server_gives_them_or_not() {
    for dialect in DIALECTS {
        let server =
            ModelServer::start(vec![Say::nothing().call("a", "{}").call("a", "{}").into()]);
        let (turn, _) = turn(&client(&StillPace::new()), &model(dialect, &server));
        let ids: Vec<String> = turn
            .unwrap()
            .calls
            .into_iter()
            .map(|call| call.id)
            .collect();
        match dialect {
            Dialect::Gemini | Dialect::Ollama => {
                assert_eq!(ids, ["synthetic-1-0", "synthetic-1-1"]);
            }
            Dialect::Anthropic | Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                assert_eq!(ids, ["call_0", "call_1"]);
            }
        }
    }
}

#[test]
fn tokens_written_to_a_cache_are_told_apart_where_the_dialect_does() {
    for dialect in [Dialect::Anthropic, Dialect::OpenAiChat] {
        let server = ModelServer::start(vec![Say::text("x").usage(5, 6, 7, 8).into()]);
        let (turn, _) = turn(&client(&StillPace::new()), &model(dialect, &server));
        let expect = Usage {
            input: 5,
            output: 6,
            cache_read: 7,
            cache_write: 8,
        };
        assert_eq!(turn.unwrap().usage, Some(expect));
    }
}

#[test]
fn a_slow_stream_is_told_as_it_comes() {
    for dialect in DIALECTS {
        let say = (0..20).fold(Say::nothing(), |say, n| say.and(&format!("{n} ")));
        let server = ModelServer::start(vec![say.gated().into()]);
        // Frames around the text: what begins the answer, and what ends it.
        server.let_through(3);
        let mut told = Vec::new();
        let turn = client(&StillPace::new())
            .turn(
                &model(dialect, &server),
                &request(),
                &mut |delta| {
                    told.push(delta);
                    server.let_through(if told.len() == 20 { 9 } else { 1 });
                },
                &Stop::new(),
            )
            .unwrap();
        assert_eq!(told.len(), 20, "{dialect:?}");
        assert_eq!(turn.text, told_text(&told), "{dialect:?}");
    }
}

#[test]
fn a_large_answer_comes_whole_and_one_too_large_does_not() {
    let part = "x".repeat(64 * 1024);
    let many = (0..48).fold(Say::nothing(), |say, _| say.and(&part));
    let one = Say::text(&part.repeat(48));
    for dialect in DIALECTS {
        for say in [&many, &one] {
            let server = ModelServer::start(vec![say.clone().into()]);
            let (whole, deltas) = turn(&client(&StillPace::new()), &model(dialect, &server));
            let whole = whole.unwrap_or_else(|error| panic!("{dialect:?}: {error}"));
            assert_eq!(whole.text.len(), 3 * 1024 * 1024, "{dialect:?}");
            assert_eq!(told_text(&deltas).len(), whole.text.len(), "{dialect:?}");

            let small = ClientSettings {
                answer_bytes_max: 1024 * 1024,
                ..settings()
            };
            let small = Client::with_pace(small, StillPace::new()).unwrap();
            let (error, _) = turn(&small, &model(dialect, &server));
            assert_eq!(error.unwrap_err().code(), "too_large", "{dialect:?}");
            assert_eq!(server.requests().len(), 2, "{dialect:?}");
        }
    }
}

/// One consumer that does nothing does not keep the others from their answers.
#[test]
fn a_slow_consumer_holds_up_nobody() {
    let server = ModelServer::start(vec![Say::text("a").and("b").into()]);
    let client = client(&StillPace::new());
    let (inside, outside) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = true;
            let mut on_delta = |_| {
                if std::mem::take(&mut first) {
                    inside.wait();
                    outside.wait();
                }
            };
            let model = model(DIALECTS[0], &server);
            client
                .turn(&model, &request(), &mut on_delta, &Stop::new())
                .unwrap();
        });
        inside.wait();
        for dialect in DIALECTS {
            let model = model(dialect, &server);
            client
                .turn(&model, &request(), &mut |_| {}, &Stop::new())
                .unwrap();
        }
        outside.wait();
    });
}

/// Servers that imitate this dialect number calls in their own ways.
#[test]
fn calls_of_one_index_are_told_apart_by_their_ids() {
    let part = |call: Value| {
        let chunk = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
        format!("data: {chunk}\n\n")
    };
    let begin = |id: &str, path: &str| json!({"id": id, "function": {"name": "read", "arguments": format!("{{\"path\": \"{path}")}});
    let rest = json!({"function": {"arguments": "\"}"}});
    for index in [Some(0), None] {
        let numbered = |mut call: Value| {
            if let Some(index) = index {
                call["index"] = index.into();
            }
            part(call)
        };
        let frames = vec![
            numbered(begin("x", "a")),
            numbered(rest.clone()),
            numbered(begin("y", "b")),
            numbered(rest.clone()),
            "data: {\"choices\": null}\n\n".into(),
            "data: {\"choices\": [{\"finish_reason\": \"tool_calls\"}]}\n\n".into(),
        ];
        let server = ModelServer::start(vec![Reply::Frames {
            frames,
            end: End::Whole,
        }]);
        let (turn, _) = turn(
            &client(&StillPace::new()),
            &model(Dialect::OpenAiChat, &server),
        );
        let calls = turn.unwrap().calls;
        let call = |id: &str, path: &str| Call {
            id: id.into(),
            name: "read".into(),
            arguments: Ok(json!({"path": path})),
        };
        assert_eq!(calls, [call("x", "a"), call("y", "b")]);
    }
}
