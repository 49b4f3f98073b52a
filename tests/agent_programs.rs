//! Skills that agent programs execute: the real engine, and a program that plays what the real ones print.

use crate::workspace;

mod costs;
mod settings;

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::gate::Gate;
use workspace::{Done, Workspace};

/// What no log, thread or error may ever hold.
const KEY: &str = "sk-test-7d1e0c55ab9f4412";

const LOOK: &str = "  - {id: look, description: Looks, instructions: Look around.";

/// A workspace whose skills a program executes that this script plays.
struct Rig {
    workspace: Workspace,
}

impl Rig {
    /// `keys` are those of `agent` besides its program; `script` is shell text, run after the prompt was read.
    fn new(keys: &str, skills: &str, script: &str) -> Rig {
        let workspace = Workspace::with_skills(skills);
        std::fs::write(workspace.home.join("key"), KEY).unwrap();
        let rig = Rig { workspace };
        rig.plays(script);
        std::fs::create_dir(rig.workspace.home.join("did")).unwrap();
        let path = "workers/w/worker.yaml";
        let text = rig.workspace.read(path).unwrap();
        let is_grant = |line: &&str| line.starts_with("sandbox: {write");
        let grant = text.lines().find(is_grant).unwrap();
        let binary = rig.binary();
        let agent = format!(
            "sandbox: {{write: [~/did]}}\nagent: {{binary: {binary}, key: file:~/key, silence: 20s, {keys}}}"
        );
        rig.workspace.write(path, &text.replacen(grant, &agent, 1));
        let amend = ["commit", "-q", "-a", "--amend", "--no-edit"];
        rig.workspace.git(&amend);
        rig
    }

    fn binary(&self) -> String {
        self.workspace.home.join("agent").display().to_string()
    }

    /// What its program does from now on; `$did` is a directory that it may write to.
    fn plays(&self, script: &str) {
        let did = self.workspace.home.join("did");
        let text = format!(
            "#!/bin/sh\ndid={did}\ncat > $did/prompt\nenv > $did/env\nprintf '%s\\n' \"$@\" > $did/argv\nset --\n{script}\n",
            did = did.display()
        );
        let path = self.binary();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn did(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace.home.join("did").join(name)).unwrap()
    }

    /// Runs to the end and answers the run in full.
    fn ran(&self, skill: &str) -> Value {
        let shown = self.run(skill).value();
        self.workspace.expect_no_process();
        self.holds_no_key(&shown.to_string());
        shown
    }

    fn run(&self, skill: &str) -> Done {
        self.workspace.run(&["run", skill, "--json"])
    }

    /// What the logs of the latest run hold.
    fn logs(&self) -> String {
        let done = self.workspace.run(&["logs", "latest"]).expect_code(0);
        done.stdout + &done.stderr
    }

    fn holds_no_key(&self, said: &str) {
        assert!(!said.contains(KEY), "{said}");
        let base = self.workspace.root.parent().unwrap();
        let own = [
            self.workspace.home.join("key"),
            self.workspace.home.join("did/env"),
        ];
        for path in
            workspace::observed::files_below(base, &|path| !own.iter().any(|one| one == path))
        {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let found = xtest::contains(&bytes, KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// Shell text that prints what a program printed in this case, and ends with this code.
fn played(program: &str, case: &str, code: i32) -> String {
    let directory = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/agent/src/cli/tests/streams"
    );
    format!("cat {directory}/{program}-{case}.jsonl; exit {code}")
}

/// How a run ended: its outcome, or the code of its failure.
fn ended(shown: &Value) -> &str {
    let outcome = &shown["summary"]["outcome"];
    let code = outcome["failure"]["code"].as_str();
    code.or(outcome["kind"].as_str()).unwrap()
}

fn message(shown: &Value) -> &str {
    shown["summary"]["outcome"]["failure"]["message"]
        .as_str()
        .unwrap()
}

#[test]
fn each_case_is_told_apart_and_none_succeeds_that_did_no_work() {
    let cases = [
        ("claude", "success", 0, "succeeded"),
        ("claude", "refused", 0, "tool_refused"),
        ("claude", "retried", 0, "succeeded"),
        ("claude", "rate_limited", 1, "rate_limited"),
        ("claude", "server", 1, "server"),
        ("claude", "auth", 1, "auth"),
        ("claude", "empty", 0, "empty"),
        ("claude", "turns", 1, "iteration_limit"),
        ("codex", "success", 0, "succeeded"),
        ("codex", "rate_limited", 1, "rate_limited"),
        ("codex", "server", 1, "server"),
        ("codex", "auth", 1, "auth"),
        ("codex", "empty", 0, "empty"),
        ("codex", "cut", 1, "incomplete"),
        ("opencode", "success", 0, "succeeded"),
        ("opencode", "refused", 0, "tool_refused"),
        ("opencode", "empty", 0, "empty"),
        ("gemini", "success", 0, "succeeded"),
        ("qwen", "success", 0, "succeeded"),
    ];
    for (program, case, code, expected) in cases {
        let rig = Rig::new(
            &format!("cli: {program}"),
            &format!("{LOOK}}}\n"),
            &played(program, case, code),
        );
        let shown = rig.ran("look");
        assert_eq!(
            ended(&shown),
            expected,
            "{program} {case}: {shown:#}\n{}",
            rig.logs()
        );
        if expected == "succeeded" {
            assert_eq!(
                shown["answer"].as_str().unwrap().trim(),
                "done",
                "{shown:#}"
            );
        }
    }
}

#[test]
fn a_prompt_is_read_and_never_an_argument_and_the_surroundings_are_its_own() {
    let skills = "  - {id: look, description: Looks, instructions: Look around., interface: {inputs: [{name: what, default: trees}]}}\n";
    let rig = Rig::new(
        "cli: claude, model: opus",
        skills,
        &played("claude", "success", 0),
    );
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "succeeded", "{shown:#}");
    let prompt = rig.did("prompt");
    assert!(prompt.starts_with("Look around.\n"), "{prompt}");
    assert!(prompt.contains("\"what\": \"trees\""), "{prompt}");
    let argv = rig.did("argv");
    assert!(
        argv.contains("stream-json\n") && argv.contains("--model\nopus\n"),
        "{argv}"
    );
    assert!(
        !argv.contains("Look around") && !argv.contains(KEY),
        "{argv}"
    );
    let env = rig.did("env");
    let of = |name: &str| {
        let start = format!("{name}=");
        let found = env.lines().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("no {name}: {env}"))
    };
    assert_eq!(of("ANTHROPIC_API_KEY"), KEY);
    assert_eq!(of("PWD"), rig.workspace.root.display().to_string());
    let (home, tmp) = (of("HOME"), of("TMPDIR"));
    assert!(
        !home.starts_with(tmp) && !tmp.starts_with(home),
        "{home} {tmp}"
    );
    assert_ne!(home, rig.workspace.home.display().to_string());
    assert!(
        !std::path::Path::new(home).exists(),
        "its home goes with the attempt"
    );
}

#[test]
fn what_a_program_changed_is_verified_and_lands_as_one_commit_beside_a_person_who_works() {
    let skills = "  - {id: fix, description: Fixes, instructions: Fix it., mutating: true, verification: [{description: fixed, command: test -s fixed.txt}]}\n";
    let script = format!("echo whole > fixed.txt\n{}", played("codex", "success", 0));
    let rig = Rig::new("cli: codex", skills, &script);
    rig.workspace.write("tracked.txt", "a person writes\n");
    let before = rig.workspace.git(&["rev-parse", "HEAD"]);
    let shown = rig.ran("fix");
    assert_eq!(ended(&shown), "succeeded", "{shown:#}\n{}", rig.logs());
    let count = rig
        .workspace
        .git(&["rev-list", "--count", &format!("{}..HEAD", before.trim())]);
    assert_eq!(count.trim(), "1");
    assert_eq!(
        rig.workspace.git(&["status", "--porcelain"]),
        " M tracked.txt\n"
    );
    assert_eq!(rig.workspace.read("fixed.txt").unwrap(), "whole\n");
    // It says that it is done, and is not: that is what checks are for.
    rig.plays(&played("codex", "refused", 0));
    rig.workspace.git(&["rm", "-q", "fixed.txt"]);
    rig.workspace
        .git(&["commit", "-q", "-m", "again", "fixed.txt"]);
    let shown = rig.ran("fix");
    assert_eq!(ended(&shown), "check_failed", "{shown:#}");
}

#[test]
fn a_retry_of_a_program_publishes_nothing_of_an_earlier_attempt() {
    let skill = "  - {id: look, description: Looks, instructions: Look around., retry: {max_attempts: 2, backoff: 1ms}, \
                 interface: {outputs: [{name: r, type: file, destination: out.txt}]}, \
                 verification: [{command: 'test \"$WORKERCTL_ATTEMPT\" -ge 2'}]}\n";
    let first = |text: &str| format!("test $WORKERCTL_ATTEMPT = 1 && {{ {text}; }}");
    let draft = first("echo draft >> $WORKERCTL_OUTPUT_r; echo draft > $TMPDIR/left");
    let rows = [
        ("its answer", ":", "done\n"),
        (
            "a file that it wrote",
            "echo final >> $WORKERCTL_OUTPUT_r",
            "final\n",
        ),
    ];
    for (name, second, expected) in rows {
        let clean = "test -e $TMPDIR/left && touch $did/dirty";
        let script = format!(
            "{clean}; {draft} || {second}; {}",
            played("claude", "success", 0)
        );
        let rig = Rig::new("cli: claude", skill, &script);
        let shown = rig.ran("look");
        assert_eq!(ended(&shown), "succeeded", "{name}: {shown:#}");
        assert_eq!(shown["summary"]["attempts"], 2, "{name}");
        assert_eq!(rig.workspace.read("out.txt").unwrap(), expected, "{name}");
        assert!(!rig.workspace.home.join("did/dirty").exists(), "{name}");
    }
}

/// Its check passes, but the program had not said that it was done.
#[test]
fn a_program_that_was_lost_with_its_engine_is_unknown_whatever_it_wrote() {
    let skill = "  - {id: fix, description: Fixes, instructions: Fix it., mutating: true, \
                 interface: {outputs: [{name: r, type: file, destination: out.txt}]}, \
                 verification: [{command: 'grep -q whole {r}'}]}\n";
    let stands = Gate::text("did/stands").replace("$HOME/did", "$did");
    let script = format!("echo whole > $WORKERCTL_OUTPUT_r; {stands}");
    let rig = Rig::new("cli: claude", skill, &script);
    let mut gate = Gate::new(&rig.workspace, "did/stands");
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["fix"]);
    gate.reached();
    daemon.kill();
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 9, "{shown:#}");
    assert!(rig.workspace.committed_runs().is_empty());
    let kept = rig.workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(kept.contains("+whole"), "{kept}");
    daemon.stop();
}

#[test]
fn the_next_attempt_is_told_which_check_failed_and_how() {
    let skills = "  - {id: look, description: Looks, instructions: Look around., retry: {max_attempts: 2, backoff: {initial: 1ms}}, verification: [{description: twice, command: \"test -e ~/did/second || { echo it has no second; exit 3; }\"}]}\n";
    let script = format!(
        "test -e $did/first && touch $did/second; touch $did/first; {}",
        played("claude", "success", 0)
    );
    let rig = Rig::new("cli: claude", skills, &script);
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "succeeded", "{shown:#}");
    let prompt = rig.did("prompt");
    assert!(
        prompt.contains("failed (check_failed): check `twice` failed: exit code 3"),
        "{prompt}"
    );
    assert!(prompt.contains("printed:\nit has no second\n"), "{prompt}");
}

/// A turn of Claude Code that calls something; `$n` counts.
const TURN: &str = r#"printf '{"type":"assistant","message":{"id":"m%s","model":"m","usage":{"input_tokens":10,"output_tokens":5},"content":[{"type":"tool_use","id":"t%s","name":"Bash","input":{}}]}}\n{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s","content":"x"}]}}\n' $n $n $n"#;

#[test]
fn turns_and_tokens_are_bounded_while_it_works() {
    let endless =
        format!("n=0; while [ $n -lt 100000 ]; do n=$((n+1)); {TURN}; done; exec sleep 1000");
    let skills = format!(
        "{LOOK}, max_iterations: 3}}\n  - {{id: dear, description: Dear, instructions: i, budget: {{tokens: 40}}}}\n"
    );
    let rig = Rig::new("cli: claude", &skills, &endless);
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "iteration_limit", "{shown:#}");
    let shown = rig.ran("dear");
    assert_eq!(ended(&shown), "budget_exhausted", "{shown:#}");
    assert!(
        message(&shown).contains("of 40 tokens are spent (`budget.tokens`)"),
        "{shown:#}"
    );
    assert!(
        shown["summary"]["spent"]["tokens"]["input"]
            .as_u64()
            .unwrap()
            >= 30,
        "{shown:#}"
    );
}

#[test]
fn a_program_that_says_nothing_any_more_is_ended_with_what_it_said_last() {
    let rig = Rig::new(
        "cli: codex, silence: 1s",
        &format!("{LOOK}}}\n"),
        "trap '' TERM; exec sleep 1000",
    );
    let text = rig.workspace.read("workers/w/worker.yaml").unwrap();
    rig.workspace.write(
        "workers/w/worker.yaml",
        &text.replacen("silence: 20s, ", "", 1),
    );
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "silence", "{shown:#}");
    assert!(
        message(&shown).contains("`codex` said nothing for 1.0s"),
        "{shown:#}"
    );
    rig.plays(&format!(
        "{}; exec sleep 1000",
        played("codex", "rate_limited", 0).replace("; exit 0", "")
    ));
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "rate_limited", "{shown:#}");
}

#[test]
fn nothing_outlives_a_program_even_in_a_session_of_its_own() {
    let script = format!(
        "setsid sleep 1000 </dev/null >/dev/null 2>&1 &\n{}",
        played("claude", "success", 0)
    );
    let rig = Rig::new("cli: claude", &format!("{LOOK}}}\n"), &script);
    assert_eq!(ended(&rig.ran("look")), "succeeded");
    // Nor a stop, which it ignores.
    let gate = Gate::text("did/stands").replace("$HOME/did", "$did");
    rig.plays(&format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & {gate}; sleep 1000"
    ));
    let mut gate = Gate::new(&rig.workspace, "did/stands");
    rig.workspace.write("workerctl.yaml", "grace: 100ms\n");
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["look"]);
    gate.reached();
    rig.workspace.run(&["cancel", &run]).expect_code(0);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(ended(&shown), "cancelled", "{shown:#}");
    daemon.stop();
    rig.workspace.expect_no_process();
}

#[test]
fn an_engine_that_is_lost_leaves_no_program_and_pays_for_no_circle() {
    let script = format!(
        "echo x >> $did/starts; n=1; {TURN}; {}; sleep 1000",
        Gate::text("did/stands").replace("$HOME/did", "$did")
    );
    let skills = format!(
        "{LOOK}}}\n  - {{id: fix, description: Fixes, instructions: Fix it., mutating: true}}\n"
    );
    for (skill, expected, starts) in [("look", "crash_loop", 3), ("fix", "unknown", 1)] {
        let rig = Rig::new("cli: claude", &skills, &script);
        let mut gate = Gate::new(&rig.workspace, "did/stands");
        let mut daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&[skill]);
        for _ in 0..starts {
            gate.reached();
            daemon.kill();
            daemon = Daemon::start(&rig.workspace);
        }
        let (_, shown) = rig.workspace.wait(&run);
        assert_eq!(ended(&shown), expected, "{shown:#}");
        assert_eq!(rig.did("starts").lines().count(), starts, "{skill}");
        daemon.stop();
        rig.workspace.expect_no_process();
    }
}

#[test]
fn a_limit_of_a_plan_is_waited_for_where_that_is_allowed() {
    let reset = "$(($(date +%s) + 7200))";
    let script = format!(
        "printf '{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"resetsAt\":%s}}}}\n' {reset}; exec sleep 1000"
    );
    let skills = format!(
        "{LOOK}}}\n  - {{id: waits, description: d, instructions: i, on_rate_limit: {{wait: 6h}}}}\n"
    );
    let rig = Rig::new("cli: claude", &skills, &script);
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "rate_limited", "{shown:#}");
    assert!(
        message(&shown).contains("the allowance of its plan is used up, until 2"),
        "{shown:#}"
    );
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["waits"]);
    rig.workspace.wait_for_event(&run, "execution_finished");
    rig.workspace.wait_for_phase(&run, "queued");
    let waits = rig.workspace.show(&run)["summary"]["waiting_for"].to_string();
    assert!(waits.contains("rate limit"), "{waits}");
    rig.workspace.run(&["cancel", &run]).expect_code(0);
    assert_eq!(ended(&rig.workspace.wait(&run).1), "cancelled");
    daemon.stop();
    rig.workspace.expect_no_process();
}
