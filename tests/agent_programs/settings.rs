//! What `agent` says of a program, and what is shown of its work.

use std::os::unix::fs::PermissionsExt;

use super::workspace::skip;
use super::{LOOK, Rig, ended, message, played};

#[test]
fn a_refusal_that_is_expected_fails_nothing_and_events_of_next_year_are_kept() {
    let script = format!(
        "echo '{{\"type\":\"of_next_year\",\"x\":1}}'; {}",
        played("claude", "refused", 0)
    );
    let rig = Rig::new(
        "cli: claude, may_be_denied: [Bash]",
        &format!("{LOOK}}}\n"),
        &script,
    );
    assert_eq!(ended(&rig.ran("look")), "succeeded");
    let logs = rig.logs();
    assert!(
        logs.contains("{\"type\":\"of_next_year\",\"x\":1}"),
        "{logs}"
    );
    assert!(logs.contains("refused: `Bash`"), "{logs}");
}

#[test]
fn a_login_is_lent_and_a_refreshed_one_taken_back() {
    let token = |nth: u32| format!("{{\"token\":\"tok-{nth}-0123456789abcdef0123\"}}");
    let script = format!(
        "cp $HOME/.claude/.credentials.json $did/lent; printf '%s' '{}' > $HOME/.claude/.credentials.json; {}",
        token(2),
        played("claude", "success", 0)
    );
    let rig = Rig::new("cli: claude, login: host", &format!("{LOOK}}}\n"), &script);
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "auth", "{shown:#}");
    assert!(
        message(&shown).contains(".claude/.credentials.json` cannot be copied"),
        "{shown:#}"
    );
    let own = rig.workspace.home.join(".claude/.credentials.json");
    std::fs::create_dir(own.parent().unwrap()).unwrap();
    std::fs::write(&own, token(1)).unwrap();
    assert_eq!(ended(&rig.ran("look")), "succeeded");
    assert_eq!(rig.did("lent"), token(1));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), token(2));
    // What it says of its login is masked.
    rig.plays(&format!(
        "cat $HOME/.claude/.credentials.json; {}",
        played("claude", "success", 0)
    ));
    assert_eq!(ended(&rig.ran("look")), "succeeded");
    assert!(
        !rig.logs().contains("tok-2-0123456789abcdef0123"),
        "{}",
        rig.logs()
    );
    // Half a login is none: it stays as it was.
    rig.plays(&format!(
        "echo '{{\"tok' > $HOME/.claude/.credentials.json; {}",
        played("claude", "success", 0)
    ));
    assert_eq!(ended(&rig.ran("look")), "succeeded");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), token(2));
}

#[test]
fn what_cannot_be_started_or_held_to_its_bounds_is_refused_with_a_remedy() {
    let skills = format!(
        "{LOOK}}}\n  - {{id: held, description: d, instructions: i, allowed-tools: [Read]}}\n  - {{id: sets, description: d, instructions: i, toolsets: [a]}}\n"
    );
    let rig = Rig::new("cli: codex", &skills, "exit 3");
    rig.workspace
        .write("workerctl.yaml", "toolsets: {a: {builtin: [bash]}}\n");
    for (skill, said, remedy) in [
        (
            "held",
            "asks for `allowed-tools` or `disallowed-tools`, which `codex` does not support",
            "such as `claude`",
        ),
        ("sets", "asks for tool sets", "remove"),
    ] {
        let done = rig.workspace.run(&["run", skill]).expect_code(6);
        assert!(
            done.stderr.contains(said) && done.stderr.contains(remedy),
            "{done:?}"
        );
    }
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "no_result", "{shown:#}");
    assert!(
        message(&shown).contains("`codex`: it ended without a result: exit code 3"),
        "{shown:#}"
    );
    std::fs::remove_file(rig.binary()).unwrap();
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "program_not_found", "{shown:#}");
    assert!(message(&shown).contains(&rig.binary()), "{shown:#}");
}

#[test]
fn a_described_program_is_used_as_it_is_described() {
    let keys = "cli: generic, env: {MODE: quiet}, args: [--file, '{prompt}'], prompt: file, output: jsonl, done: {at: /kind, is: end}, result: /answer, failure: /error, usage: {input: /in, output: /out, cost: /usd}";
    let script = "cp \"$(tail -n 1 $did/argv)\" $did/prompt\necho '{\"kind\":\"step\"}'; echo '{\"kind\":\"end\",\"answer\":\"forty-two\",\"in\":7,\"out\":3,\"usd\":0.25}'";
    let skills = "  - {id: look, description: Looks, instructions: Look around., interface: {outputs: [{name: r, type: file, destination: out/r.txt}]}}\n";
    let rig = Rig::new(keys, skills, script);
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "succeeded", "{shown:#}\n{}", rig.logs());
    assert!(
        rig.did("prompt").starts_with("Look around."),
        "{}",
        rig.did("prompt")
    );
    assert_eq!(rig.workspace.read("out/r.txt").unwrap(), "forty-two\n");
    let spent = &shown["summary"]["spent"];
    assert_eq!(
        (&spent["tokens"]["input"], &spent["money"]),
        (&7.into(), &"0.25".into()),
        "{spent:#}"
    );
    rig.plays("echo '{\"kind\":\"step\",\"answer\":\"no\"}'");
    assert_eq!(ended(&rig.ran("look")), "no_result");
    assert!(
        rig.did("env").contains("\nMODE=quiet\n"),
        "{}",
        rig.did("env")
    );
}

#[test]
fn what_a_program_writes_outside_of_its_places_is_refused() {
    let script = format!(
        "echo x > $did/../outside; echo x > escaped; {}",
        played("claude", "success", 0)
    );
    let skills =
        format!("{LOOK}}}\n  - {{id: fix, description: d, instructions: i, mutating: true}}\n");
    let rig = Rig::new("cli: claude", &skills, &script);
    for skill in ["look", "fix"] {
        let level = &rig.ran(skill)["attempts"][0]["execution"]["sandbox_level"];
        if *level == 0 {
            skip("this kernel has no walls");
            return;
        }
        assert!(!rig.workspace.home.join("outside").exists(), "{skill}");
    }
    assert_eq!(rig.workspace.git(&["ls-files", "escaped"]), "escaped\n");
}

#[test]
fn what_each_turn_took_is_shown() {
    let rig = Rig::new(
        "cli: claude",
        &format!("{LOOK}}}\n"),
        &played("claude", "success", 0),
    );
    let shown = rig.ran("look");
    let turns = shown["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2, "{shown:#}");
    assert_eq!(turns[0]["calls"][0], "Bash");
    assert_eq!(
        (&turns[1]["turn"], &turns[1]["money"]),
        (&2.into(), &"0.000048".into())
    );
    let text = rig.workspace.run(&["show", "latest"]).stdout;
    assert!(
        text.contains("       1  2 tokens  Bash\n")
            && text.contains("       2  2 tokens, money 0.000048\n"),
        "{text}"
    );
}

#[test]
fn doctor_names_the_programs_that_it_finds_and_misses() {
    let rig = Rig::new("cli: codex", &format!("{LOOK}}}\n"), "");
    let text = rig.workspace.read("workers/w/worker.yaml").unwrap();
    let named = text.replacen(&format!("binary: {}, ", rig.binary()), "", 1);
    rig.workspace.write("workers/w/worker.yaml", &named);
    let bin = rig.workspace.home.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let claude = bin.join("claude");
    std::fs::write(&claude, "#!/bin/sh\necho '2.0.1 (Claude Code)'\n").unwrap();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let mut command = rig.workspace.workerctl(&["doctor"]);
    let done = rig.workspace.start(command.env("PATH", path)).end();
    let said = format!("{}{}", done.stdout, done.stderr).replace('\n', " ");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("`claude` 2.0.1 at") && said.contains("the tested version is 2.1.332"),
        "{said}"
    );
    assert!(
        said.contains("skills are executed by `codex`, which is not on the path"),
        "{said}"
    );
}

#[test]
fn what_a_program_prints_beside_its_events_is_bounded_and_its_answer_masked() {
    let noise = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo '{\"type\":\"next_year\"}'; echo 0123456789012345678901234567890123456789 >&2; done";
    let script = format!(
        "{noise}; printf '{{\"type\":\"assistant\",\"message\":{{\"id\":\"m\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"the key is %s\"}}]}}}}\\n{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"the key is %s\"}}\\n' $ANTHROPIC_API_KEY $ANTHROPIC_API_KEY"
    );
    let skills = "  - {id: look, description: Looks, instructions: i, interface: {outputs: [{name: r, type: file, destination: out/r.txt}]}}\n";
    let rig = Rig::new("cli: claude", skills, &script);
    rig.workspace
        .write("workerctl.yaml", "output_bytes_max: 20000\n");
    let shown = rig.ran("look");
    assert_eq!(ended(&shown), "succeeded", "{shown:#}");
    let logs = rig.logs();
    assert!(
        logs.contains("bytes omitted here: the output exceeds `output_bytes_max`")
            && logs.len() < 100_000,
        "{}",
        logs.len()
    );
    assert!(
        rig.workspace
            .read("out/r.txt")
            .unwrap()
            .starts_with("the key is ")
    );
}
