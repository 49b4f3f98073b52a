//! Answers that are cut or damaged at any place: a turn that counts is the whole one.

use workerctl_agent::{Dialect, Turn, TurnError};

use crate::rig::{DIALECTS, StillPace, client, model, turn};
use crate::server::render::Spoken;
use crate::server::script::{Reply, Say};
use crate::server::{ModelServer, frames};

pub(crate) fn spoken(dialect: Dialect) -> Spoken {
    match dialect {
        Dialect::Anthropic => Spoken::Anthropic,
        Dialect::OpenAiChat => Spoken::Chat,
        Dialect::OpenAiResponses => Spoken::Responses,
        Dialect::Gemini => Spoken::Gemini,
        Dialect::Ollama => Spoken::Ollama,
    }
}

fn say() -> Say {
    Say::text("I look.")
        .call("read", r#"{"path": "a"}"#)
        .usage(10, 20, 5, 0)
}

/// One turn for each body, all of one client and one server.
fn turns(dialect: Dialect, bodies: &[Vec<u8>]) -> Vec<Result<Turn, TurnError>> {
    // A body that fails is asked for three times, so the script is told what comes next by each turn.
    let server = ModelServer::start(vec![Reply::Nothing]);
    let client = client(&StillPace::new());
    let model = model(dialect, &server);
    let one = |body: &Vec<u8>| {
        let reply = Reply::Bytes { body: body.clone() };
        server.follow(vec![reply]);
        turn(&client, &model).0
    };
    bodies.iter().map(one).collect()
}

fn whole(dialect: Dialect) -> (Vec<u8>, Turn) {
    let body = frames(spoken(dialect), &say()).concat().into_bytes();
    let turn = turns(dialect, std::slice::from_ref(&body))
        .remove(0)
        .unwrap();
    (body, turn)
}

/// Cuts that leave nothing out: what ends an answer may lack the blank line, and a `[DONE]` its word.
#[test]
fn an_answer_that_is_cut_anywhere_is_incomplete() {
    for dialect in DIALECTS {
        let (body, whole) = whole(dialect);
        // Every third byte, and each of the last ones, where the end is.
        let places = (0..body.len()).filter(|at| at % 3 == 0 || at + 60 > body.len());
        let cut: Vec<Vec<u8>> = places.map(|at| body[..at].to_vec()).collect();
        let mut counted = 0;
        for (piece, turn) in cut.iter().zip(turns(dialect, &cut)) {
            let shown = String::from_utf8_lossy(piece);
            match turn {
                Ok(turn) => {
                    assert_eq!(
                        (&turn.text, &turn.calls),
                        (&whole.text, &whole.calls),
                        "{shown}"
                    );
                    assert_eq!(turn.stop, whole.stop, "{shown}");
                    counted += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), "incomplete", "{dialect:?}: {error}: {shown}");
                }
            }
        }
        // Chat completions have the reason long before the end; its tokens come later.
        let most = if dialect == Dialect::OpenAiChat {
            120
        } else {
            2
        };
        assert!(counted <= most, "{dialect:?}: {counted}");
    }
}

/// Random damage ends a turn in some named way; its reader goes on living.
#[test]
fn a_damaged_answer_harms_nothing() {
    // A generator of Knuth's, so that a failure can be repeated.
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for dialect in DIALECTS {
        let (body, _) = whole(dialect);
        let damaged: Vec<Vec<u8>> = (0..150)
            .map(|_| {
                let mut body = body.clone();
                for _ in 0..=random(3) {
                    let at = random(body.len());
                    match random(3) {
                        0 => body[at] = u8::try_from(random(256)).unwrap(),
                        1 => drop(body.remove(at)),
                        _ => {
                            let to = (at + random(80)).min(body.len());
                            let again = body[at..to].to_vec();
                            body.splice(at..at, again);
                        }
                    }
                }
                body
            })
            .collect();
        for turn in turns(dialect, &damaged) {
            if let Err(error) = turn {
                assert!(!error.to_string().contains("its reader ended"), "{error}");
            }
        }
    }
}

/// Numbers that a server names are not taken for sizes.
#[test]
fn a_place_far_away_costs_nothing() {
    let far = u64::MAX;
    for (dialect, frame) in [
        (
            Dialect::Anthropic,
            format!(
                "{{\"type\": \"content_block_start\", \"index\": {far}, \"content_block\": {{\"type\": \"tool_use\", \"id\": \"x\", \"name\": \"a\"}}}}"
            ),
        ),
        (
            Dialect::OpenAiChat,
            format!(
                "{{\"choices\": [{{\"delta\": {{\"tool_calls\": [{{\"index\": {far}, \"id\": \"x\", \"function\": {{\"name\": \"a\"}}}}]}}, \"finish_reason\": \"tool_calls\"}}]}}"
            ),
        ),
        (
            Dialect::OpenAiResponses,
            format!(
                "{{\"type\": \"response.output_item.done\", \"output_index\": {far}, \"item\": {{\"type\": \"function_call\", \"call_id\": \"x\", \"name\": \"a\"}}}}"
            ),
        ),
    ] {
        let body = format!("data: {frame}\n\n").into_bytes();
        let turn = turns(dialect, &[body]).remove(0);
        match dialect {
            Dialect::OpenAiChat => assert_eq!(turn.unwrap().calls[0].name, "a"),
            _ => assert_eq!(turn.unwrap_err().code(), "incomplete"),
        }
    }
}

/// Where the dialect says when a call is whole, one that never is does not count, though its arguments may.
#[test]
fn a_call_that_is_never_closed_is_half_a_call() {
    for (dialect, closing) in [
        (Dialect::Anthropic, "content_block_stop\""),
        (Dialect::OpenAiResponses, "response.output_item.done\""),
    ] {
        let mut frames = frames(spoken(dialect), &Say::nothing().call("list", "{}"));
        let before = frames.len();
        frames.retain(|frame| !frame.contains(closing));
        assert_eq!(frames.len(), before - 1);
        let turn = turns(dialect, &[frames.concat().into_bytes()]).remove(0);
        assert_eq!(turn.unwrap_err().code(), "incomplete", "{dialect:?}");
    }
}
