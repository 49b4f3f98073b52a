//! Streams as the programs print them, whole and broken.

use super::*;
use crate::cli::generic::Output;

const CLEAN: Exit = Exit::Code(0);

/// Program, case, exit code, what the verdict is.
const CASES: &[(&str, &str, i32, &str)] = &[
    ("claude", "success", 0, "done"),
    ("claude", "refused", 0, "tool_refused"),
    ("claude", "retried", 0, "done"),
    ("claude", "rate_limited", 1, "rate_limited"),
    ("claude", "server", 1, "server"),
    ("claude", "auth", 1, "auth"),
    ("claude", "empty", 0, "empty"),
    ("claude", "cut_once", 0, "Looking around a bit here."),
    ("codex", "success", 0, "done"),
    // Its stream has no word of it: only checks can find that the work is not done.
    ("codex", "refused", 0, "done"),
    ("codex", "retried", 0, "done"),
    ("codex", "rate_limited", 1, "rate_limited"),
    ("codex", "server", 1, "server"),
    ("codex", "auth", 1, "auth"),
    ("codex", "empty", 0, "empty"),
    ("codex", "cut", 1, "incomplete"),
    ("opencode", "success", 0, "done"),
    ("opencode", "refused", 0, "tool_refused"),
    ("opencode", "empty", 0, "empty"),
    ("gemini", "success", 0, "done"),
    ("gemini", "empty", 0, "agent_failed"),
    ("qwen", "success", 0, "done"),
];

fn stream(program: &str, case: &str) -> String {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/tests/streams");
    let path = format!("{directory}/{program}-{case}.jsonl");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn known(program: &str) -> Format {
    Format::Known(Known::named(program).unwrap())
}

fn read(format: Format, bytes: &[u8]) -> (Reading, Vec<Seen>) {
    let mut reading = Reading::new(format);
    let mut seen = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => seen.extend(reading.piece(line, false)),
            None => seen.extend(reading.piece(line, true)),
        }
    }
    seen.extend(reading.end());
    (reading, seen)
}

fn verdict(reading: &Reading, exit: Exit) -> String {
    match reading.verdict(exit, &[], "") {
        Ok(()) => reading.text().to_owned(),
        Err(fault) => fault.kind.code().to_owned(),
    }
}

#[test]
fn each_recorded_case_is_told_apart() {
    for (program, case, code, expected) in CASES {
        let (reading, seen) = read(known(program), stream(program, case).as_bytes());
        let found = verdict(&reading, Exit::Code(*code));
        assert_eq!(found.trim(), *expected, "{program} {case}: {reading:?}");
        let unknown = seen.iter().any(|one| matches!(one, Seen::Unknown(_)));
        assert!(!unknown, "{program} {case}: {seen:?}");
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_no_success() {
    for (program, case, _, expected) in CASES.iter().filter(|case| case.3 == "done") {
        let whole = stream(program, case);
        let whole = whole.trim_end();
        for cut in 0..whole.len() {
            let (reading, _) = read(known(program), &whole.as_bytes()[..cut]);
            let found = verdict(&reading, CLEAN);
            assert_ne!(found.trim(), *expected, "{program} {case} at {cut}");
        }
    }
}

#[test]
fn what_nobody_knows_is_handed_on_and_changes_nothing() {
    for (program, case, code, expected) in CASES {
        let mut mixed = String::new();
        for line in stream(program, case).lines() {
            mixed.push_str("{\"type\":\"of_next_year\",\"result\":\"done\"}\nno event\n[]\n");
            mixed.push_str(line);
            mixed.push('\n');
        }
        mixed.push_str("{\"type\":\"of_next_year\"}\n");
        let (reading, seen) = read(known(program), mixed.as_bytes());
        assert_eq!(
            verdict(&reading, Exit::Code(*code)).trim(),
            *expected,
            "{program} {case}"
        );
        let handed_on = seen.iter().filter(|one| matches!(one, Seen::Unknown(_)));
        assert!(handed_on.count() > 3, "{program} {case}");
    }
}

#[test]
fn turns_are_counted_and_have_their_tokens() {
    for (program, turns, input) in [
        ("claude", 2, 2),
        ("opencode", 2, 22),
        ("codex", 2, 2),
        ("gemini", 2, 2),
    ] {
        let (reading, seen) = read(known(program), stream(program, "success").as_bytes());
        let tokens: u64 = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Turn { reported, .. } => Some(reported.input),
                _ => None,
            })
            .sum();
        let tokens = reading.total().map_or(tokens, |total| total.input);
        assert_eq!(
            (reading.turns(), tokens),
            (turns, input),
            "{program}: {seen:?}"
        );
    }
    let (reading, _) = read(known("claude"), stream("claude", "turns").as_bytes());
    assert!(reading.turns_exhausted());
    assert_eq!((reading.turns(), reading.cost()), (2, Some(48)));
}

/// The output tokens of the turns that were seen: reported, of each turn, and whether that is an estimate.
fn outputs(seen: &[Seen]) -> Vec<(u64, u64, bool)> {
    let turns = seen.iter().filter_map(|one| match one {
        Seen::Turn { turn, reported } => {
            let output = turn.usage.unwrap().output;
            Some((reported.output, output, turn.estimated))
        }
        _ => None,
    });
    turns.collect()
}

#[test]
fn tokens_of_claude_are_those_of_the_whole_answer() {
    // What its server counted of each answer is 100, of which 2 are known when the answer begins.
    let whole = stream("claude", "cut_once");
    let (reading, seen) = read(known("claude"), whole.as_bytes());
    assert_eq!(outputs(&seen), [(100, 100, false), (100, 100, false)]);
    let total = reading.total().unwrap();
    assert_eq!((total.input, total.output), (150, 205));
    let lost: Vec<&Seen> = seen
        .iter()
        .filter(|one| matches!(one, Seen::Lost { .. }))
        .collect();
    let [Seen::Lost { tokens, reported }] = lost[..] else {
        panic!("{seen:?}");
    };
    // 15 bytes of an answer of which the beginning was told.
    assert_eq!((tokens.input, tokens.output, reported.output), (50, 5, 2));
    // Without the pieces of its answers only the total at the end is right.
    let events = whole.lines().filter(|line| !line.contains("stream_event"));
    let events: Vec<&str> = events.collect();
    let (reading, seen) = read(known("claude"), events.join("\n").as_bytes());
    let content = "Looking around a bit here.Bash{}".len()
        + r#"{"command":"echo hi","description":"d"}"#.len();
    let estimated = crate::turn::estimated_tokens(content - 2);
    assert_eq!(outputs(&seen), [(2, estimated, true), (2, 9, true)]);
    assert_eq!(reading.total(), Some(total));
}

#[test]
fn a_turn_that_is_cut_anywhere_is_counted_with_what_came_of_it() {
    let whole = stream("claude", "cut_once");
    let mut before = 0;
    for cut in 0..whole.lines().count() {
        let lines: Vec<&str> = whole.lines().take(cut).collect();
        let (reading, seen) = read(known("claude"), lines.join("\n").as_bytes());
        let all = seen.iter().map(|one| match one {
            Seen::Turn { turn, .. } => turn.usage.unwrap().sum(),
            Seen::Lost { tokens, .. } => tokens.sum(),
            _ => 0,
        });
        let sum: u64 = all.sum();
        assert!(sum >= before, "{cut}: {sum} after {before}: {seen:?}");
        before = sum;
        if cut > 1 {
            // Either something came, or a request is in flight.
            assert!(sum > 0 || reading.is_asking(), "{cut}");
        }
    }
    assert_eq!(before, 150 + 205);
}

#[test]
fn codex_tells_a_total_that_has_cached_tokens_within() {
    let end = r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":30,"output_tokens":7,"reasoning_output_tokens":5}}"#;
    let message =
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}}"#;
    let cut = r#"{"type":"error","message":"stream disconnected before completion, retrying 1/5"}"#;
    let mut reading = Reading::new(known("codex")).with_prompt(30);
    let mut seen = Vec::new();
    for line in [cut, message, end] {
        seen.extend(reading.piece(line.as_bytes(), false));
    }
    let total = reading.total().unwrap();
    let parts = (
        total.input,
        total.cache_read,
        total.cache_write,
        total.output,
    );
    assert_eq!(parts, (10, 60, 30, 7));
    let lost = seen.iter().find_map(|one| match one {
        Seen::Lost { tokens, .. } => Some(tokens.input),
        _ => None,
    });
    assert_eq!(lost, Some(10), "{seen:?}");
    assert_eq!(outputs(&seen), [(0, 2, true)]);
}

#[test]
fn a_refusal_may_be_declared_to_be_expected() {
    let (reading, _) = read(known("claude"), stream("claude", "refused").as_bytes());
    assert_eq!(reading.verdict(CLEAN, &["Bash".to_owned()], ""), Ok(()));
    let fault = reading
        .verdict(CLEAN, &["Read".to_owned()], "")
        .unwrap_err();
    assert_eq!(
        fault.message,
        "it refused the tool `Bash`, so its work may be incomplete"
    );
    assert!(!fault.kind.may_be_repeated());
}

#[test]
fn what_it_said_last_stands_for_a_result_that_never_came() {
    let silent = Reading::new(known("claude"));
    let fault = silent
        .verdict(
            Exit::Code(1),
            &[],
            "hm\nerror: unknown option '--max-turns'\n\n",
        )
        .unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (
            FaultKind::NoResult,
            "it ended without a result: exit code 1: error: unknown option '--max-turns'"
        )
    );
    let fault = silent
        .verdict(Exit::Code(1), &[], "Please log in first")
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Auth);
    let (reading, _) = read(known("claude"), stream("claude", "success").as_bytes());
    assert_eq!(verdict(&reading, Exit::Signal(9)), "agent_exit");
}

#[test]
fn a_limit_with_a_known_end_names_it() {
    let event =
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":AT}}"#;
    let at = std::time::SystemTime::now() + std::time::Duration::from_hours(2);
    let seconds = at.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let event = event.replace("AT", &seconds.to_string());
    let stream = format!("{event}\n{}", stream("claude", "rate_limited"));
    let (reading, _) = read(known("claude"), stream.as_bytes());
    let fault = reading.verdict(Exit::Code(1), &[], "").unwrap_err();
    let until = fault
        .until
        .unwrap()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        (fault.kind, until.as_secs()),
        (FaultKind::RateLimited, seconds)
    );
}

#[test]
fn a_long_line_is_bounded_and_what_follows_is_read() {
    let mut reading = Reading::new(known("claude"));
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..64 {
        assert_eq!(reading.piece(&piece, true), []);
    }
    let seen = reading.piece(b"", false);
    assert!(matches!(seen.as_slice(), [Seen::Noted(_)]), "{seen:?}");
    for line in stream("claude", "success").lines() {
        reading.piece(line.as_bytes(), false);
    }
    assert_eq!(reading.turns(), 2);
    // It may have told of a refusal.
    assert_eq!(verdict(&reading, CLEAN), "agent_failed");
}

fn shape(output: Output) -> Shape {
    let pointer = |text: &str| Some(text.to_owned());
    Shape {
        output,
        done: Some(("/kind".to_owned(), "end".to_owned())),
        result: pointer("/answer"),
        failure: pointer("/error"),
        denials: pointer("/denied"),
        input_tokens: pointer("/tokens/in"),
        output_tokens: pointer("/tokens/out"),
        cost: pointer("/usd"),
    }
}

#[test]
fn a_described_program_is_believed_as_far_as_its_description_goes() {
    let found = |output: Output, text: &str| {
        let (reading, _) = read(Format::Described(shape(output)), text.as_bytes());
        verdict(&reading, CLEAN)
    };
    let end = r#"{"kind":"end","answer":"yes","tokens":{"in":3,"out":4},"usd":0.5}"#;
    assert_eq!(
        found(Output::JsonLines, &format!("{{\"kind\":\"x\"}}\n{end}\n")),
        "yes"
    );
    assert_eq!(
        found(Output::JsonLines, "{\"kind\":\"x\",\"answer\":\"yes\"}\n"),
        "no_result"
    );
    assert_eq!(
        found(
            Output::JsonLines,
            r#"{"kind":"end","answer":"yes","denied":[{"name":"Bash"}]}"#
        ),
        "tool_refused"
    );
    assert_eq!(
        found(
            Output::JsonLines,
            r#"{"kind":"end","answer":"yes","error":"429"}"#
        ),
        "agent_failed"
    );
    assert_eq!(
        found(
            Output::JsonLines,
            r#"{"kind":"end","answer":"status 429","error":true}"#
        ),
        "rate_limited"
    );
    assert_eq!(found(Output::JsonLines, r#"{"kind":"end"}"#), "empty");
    assert_eq!(found(Output::Json, &end.replace(',', ",\n")), "yes");
    assert_eq!(found(Output::Json, "{\"kind\":"), "no_result");
    assert_eq!(found(Output::Text, "one\ntwo\n"), "one\ntwo\n");
    assert_eq!(found(Output::Text, "\n"), "empty");
    let (reading, seen) = read(Format::Described(shape(Output::JsonLines)), end.as_bytes());
    assert_eq!(reading.cost(), Some(500_000));
    let counted = seen
        .iter()
        .any(|one| matches!(one, Seen::Turn { reported, .. } if reported.output == 4));
    assert!(counted, "{seen:?}");
}

fn launch() -> Launch<'static> {
    Launch {
        binary: "agent",
        model: Some("m"),
        base_url: Some("http://127.0.0.1:1/v1"),
        key: Some("secret-key"),
        mutating: true,
        walled: true,
        allowed: None,
        disallowed: &[],
        writes: false,
        turns: 7,
        money: Some(1_500_000),
        silence_ms: 60_000,
        directories: &[],
        arguments: &[],
    }
}

#[test]
fn a_key_stands_in_no_argument_and_in_no_file() {
    for program in Known::ALL {
        let launched = program.launch(&launch()).unwrap();
        let public = format!("{:?}{:?}", launched.argv, launched.files);
        assert!(!public.contains("secret-key"), "{public}");
        let given = launched
            .environment
            .iter()
            .any(|(_, value)| value == "secret-key");
        assert!(given, "{program:?}: {:?}", launched.environment);
    }
}

#[test]
fn a_list_of_tools_is_enforced_or_refused() {
    let allowed = [
        "read_file".to_owned(),
        "Bash(git log:*)".to_owned(),
        "mcp__a__b".to_owned(),
    ];
    let forbidden = ["write_file".to_owned(), "Bash(rm:*)".to_owned()];
    let asked = Launch {
        allowed: Some(&allowed),
        disallowed: &forbidden,
        ..launch()
    };
    for program in Known::ALL {
        let launched = program.launch(&asked);
        assert_eq!(launched.is_ok(), program.restricts_tools(), "{program:?}");
    }
    let argv = Known::Claude.launch(&asked).unwrap().argv.join(" ");
    assert!(
        argv.contains("--tools Read,Bash --allowedTools Read,Bash(git log:*),mcp__a__b "),
        "{argv}"
    );
    assert!(
        argv.contains("--disallowedTools Write,Bash(rm:*) "),
        "{argv}"
    );
    assert!(
        argv.contains("--max-turns 7 --max-budget-usd 1.500000"),
        "{argv}"
    );
}

#[test]
fn what_changes_nothing_is_given_nothing_to_change_with() {
    let asked = Launch {
        mutating: false,
        walled: false,
        ..launch()
    };
    let argv = |program: Known| program.launch(&asked).unwrap().argv.join(" ");
    assert!(argv(Known::Claude).contains("--allowedTools Read,Glob,Grep "));
    assert!(argv(Known::Codex).contains("-s read-only"));
    let config = &Known::Opencode.launch(&asked).unwrap().files[0].1;
    assert!(
        config.contains("\"bash\":\"deny\"") && config.contains("\"edit\":\"deny\""),
        "{config}"
    );
    // Within walls the kernel keeps it, and its own sandbox could not stand inside of them.
    let walled = Known::Codex.launch(&launch()).unwrap().argv.join(" ");
    assert!(
        walled.contains("--dangerously-bypass-approvals-and-sandbox") && walled.ends_with(" -"),
        "{walled}"
    );
}

#[test]
fn a_program_that_tries_without_end_or_waits_for_an_hour_is_stuck() {
    let mut reading = Reading::new(known("opencode"));
    let line =
        r#"level=ERROR message="stream error" small=false error.error="AI_APICallError: oops""#;
    for _ in 0..6 {
        reading.error_line(line);
        assert!(!reading.is_stuck());
    }
    reading.error_line(line);
    assert!(reading.is_stuck());
    let mut reading = Reading::new(known("codex"));
    let event = |message: &str| format!(r#"{{"type":"error","message":"{message}"}}"#);
    reading.piece(
        event("usage limit: try again in 30 seconds").as_bytes(),
        false,
    );
    assert!(!reading.is_stuck());
    reading.piece(event("usage limit: try again in 2 hours").as_bytes(), false);
    assert!(reading.is_stuck());
}

#[test]
fn what_goes_on_after_its_result_is_not_done() {
    let turn = r#"{"type":"assistant","message":{"id":"later","model":"m","content":[{"type":"text","text":"not yet"}]}}"#;
    let stream = format!("{}{turn}\n", stream("claude", "success"));
    let (reading, _) = read(known("claude"), stream.as_bytes());
    assert_eq!(verdict(&reading, CLEAN), "no_result");
    let odd =
        r#"{"type":"result","subtype":"success","is_error":"true","result":"API Error: 500"}"#;
    let (reading, _) = read(known("claude"), odd.as_bytes());
    assert_eq!(verdict(&reading, CLEAN), "server");
}
