//! Tools of a model: each for real, and what a skill restricts.

use serde_json::{Value, json};

use super::server::script::{Reply, Say};
use super::{Rig, call, changing, failure, outcome, reading, text};

/// Runs the skill with these calls, a turn each, and answers what came of them: an error begins with `!`.
fn called(rig: &Rig, skill: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let turn = |(name, arguments): &(&str, Value)| call(name, arguments);
    let mut script: Vec<Reply> = calls.iter().map(turn).collect();
    script.push(text("Done."));
    rig.server.follow(script);
    let shown = rig.ran(&[skill]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    told(rig)
}

/// The results that the last request tells.
pub(super) fn told(rig: &Rig) -> Vec<String> {
    let seen = rig.server.requests();
    let messages = seen.last().unwrap().body["messages"].as_array().unwrap();
    let parts = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let results = parts.filter(|part| part["type"] == "tool_result");
    results
        .map(|part| {
            let mark = if part["is_error"] == true { "!" } else { "" };
            format!("{mark}{}", super::text_of(&part["content"]))
        })
        .collect()
}

const LONG: &str = "    max_iterations: 50\n";

#[test]
fn each_tool_of_a_change_does_what_it_says() {
    let more = format!("{LONG}    verification: [{{command: grep -q whole report.md}}]\n");
    let rig = Rig::new(&changing(&more), vec![text("never")]);
    let rows = [
        ("read_file", json!({"path": "tracked.txt"}), "as committed"),
        (
            "write_file",
            json!({"path": "new/a.txt", "content": "one two\n"}),
            "",
        ),
        (
            "edit_file",
            json!({"path": "new/a.txt", "old_text": "two", "new_text": "three"}),
            "",
        ),
        ("list_directory", json!({"path": "new"}), "a.txt"),
        ("glob", json!({"pattern": "**/*.txt"}), "new/a.txt"),
        (
            "grep",
            json!({"pattern": "thr.e", "path": "new"}),
            "new/a.txt:1:one three",
        ),
        (
            "bash",
            json!({"command": "cat new/a.txt; echo err >&2"}),
            "one three",
        ),
        ("bash", json!({"command": "echo half; exit 3"}), "half"),
        (
            "submit_output",
            json!({"name": "report", "content": "whole\n"}),
            "`report` is handed in as `report.md`",
        ),
    ];
    let calls: Vec<(&str, Value)> = rows
        .iter()
        .map(|(name, arguments, _)| (*name, arguments.clone()))
        .collect();
    let results = called(&rig, "change", &calls);
    for ((name, _, wanted), result) in rows.iter().zip(&results) {
        assert!(result.contains(wanted), "{name}: {result}");
    }
    assert!(results[6].contains("err"), "{}", results[6]);
    assert!(
        results[7].starts_with('!') && results[7].contains('3'),
        "{}",
        results[7]
    );
    assert_eq!(
        rig.workspace.git(&["show", "HEAD:new/a.txt"]),
        "one three\n"
    );
    assert_eq!(rig.workspace.git(&["show", "HEAD:report.md"]), "whole\n");
}

#[test]
fn listed_files_of_a_skill_are_loaded_and_others_are_not() {
    let rig = Rig::new("", vec![text("never")]);
    let page = "---\ndescription: Reports\nmutating: false\nmax_iterations: 50\nfiles: [{path: forms.md, description: for forms}]\n---\nTell it.\n";
    rig.workspace.write(
        "workers/p/worker.yaml",
        "worker: {id: p, name: P, type: OpsWorker}\n",
    );
    rig.workspace.write("workers/p/skills/tell/SKILL.md", page);
    rig.workspace
        .write("workers/p/skills/tell/forms.md", "A form.\n");
    rig.workspace
        .write("workers/p/skills/tell/secret.md", "Not listed.\n");
    rig.workspace.commit_all("pages");
    let calls = [
        ("loadSkillFile", json!({"path": "forms.md"})),
        ("loadSkillFile", json!({"path": "secret.md"})),
        ("loadSkillFile", json!({"path": "../../worker.yaml"})),
        (
            "loadSkillFile",
            json!({"path": "forms.md", "skillName": "other"}),
        ),
    ];
    let results = called(&rig, "p/tell", &calls);
    assert!(results[0].contains("A form."), "{results:?}");
    for result in &results[1..] {
        assert!(result.starts_with('!'), "{results:?}");
        assert!(!result.contains("Not listed."), "{results:?}");
    }
}

#[test]
fn a_skill_that_changes_nothing_gets_no_tool_that_does() {
    let rig = Rig::walled(&reading(LONG), "", vec![text("never")]);
    let calls = [
        ("write_file", json!({"path": "new.txt", "content": "x"})),
        (
            "edit_file",
            json!({"path": "tracked.txt", "old_text": "as", "new_text": "was"}),
        ),
        ("bash", json!({"command": "cat tracked.txt"})),
        ("bash", json!({"command": "echo x > new.txt"})),
        ("bash", json!({"command": "echo x >> tracked.txt"})),
        ("bash", json!({"command": "echo x > ~/new.txt"})),
    ];
    let results = called(&rig, "mrr", &calls);
    let reading = [
        "read_file",
        "list_directory",
        "glob",
        "grep",
        "bash",
        "list_skills",
        "use_skill",
    ];
    assert_eq!(rig.offered(), reading);
    assert_eq!(results[2], "as committed\n");
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result.starts_with('!'), at != 2, "{at}: {result}");
    }
    assert_eq!(rig.workspace.git(&["status", "--porcelain"]), "");
    assert!(!rig.workspace.home.join("new.txt").exists());
}

#[test]
fn built_in_tools_of_a_tool_set_are_all_that_there_are() {
    let skill = reading(&format!("{LONG}    toolsets: [narrow]\n"));
    let narrow = "toolsets:\n  narrow: {builtin: [read_file, grep, write_file]}\n";
    let rig = Rig::configured(&skill, narrow, vec![text("done")]);
    rig.run(&["mrr"]).expect_code(0);
    // None is added that a skill of this kind would not have.
    assert_eq!(rig.offered(), ["read_file", "grep"]);
}

#[test]
fn a_restriction_leaves_what_it_names() {
    let rig = Rig::new(
        &changing(&format!("{LONG}    allowed-tools: Bash(git:*) Read\n")),
        vec![text("never")],
    );
    let calls = [
        ("read_file", json!({"path": "tracked.txt"})),
        ("bash", json!({"command": "git log --format=%s"})),
        ("bash", json!({"command": "cat tracked.txt"})),
        ("bash", json!({"command": "git log; cat tracked.txt"})),
        ("bash", json!({"command": "git log $(cat tracked.txt)"})),
        ("write_file", json!({"path": "new.txt", "content": "x"})),
        ("grep", json!({"pattern": "as"})),
        (
            "submit_output",
            json!({"name": "report", "content": "whole\n"}),
        ),
    ];
    let results = called(&rig, "change", &calls);
    assert_eq!(rig.offered(), ["read_file", "bash", "submit_output"]);
    assert_eq!(results[0], "as committed\n");
    assert_eq!(results[1], "begin\n");
    assert!(!results[7].starts_with('!'), "{results:?}");
    for result in &results[2..7] {
        assert!(result.starts_with('!'), "{results:?}");
    }
    assert_eq!(
        rig.workspace
            .git(&["show", "--format=", "--name-only", "HEAD"]),
        "report.md\n"
    );
}

#[test]
fn what_is_disallowed_is_neither_offered_nor_called() {
    let more = format!(
        "{LONG}    allowed-tools: [Read, Write, Bash]\n    disallowed-tools: [write_file, run_shell_command(cat:*), WebFetch]\n"
    );
    let rig = Rig::new(&changing(&more), vec![text("never")]);
    let calls = [
        ("bash", json!({"command": "git log --format=%s"})),
        ("bash", json!({"command": "cat tracked.txt"})),
        ("bash", json!({"command": "true; cat tracked.txt"})),
        ("write_file", json!({"path": "new.txt", "content": "x"})),
        (
            "submit_output",
            json!({"name": "report", "content": "whole\n"}),
        ),
    ];
    let results = called(&rig, "change", &calls);
    assert_eq!(rig.offered(), ["read_file", "bash", "submit_output"]);
    assert_eq!(results[0], "begin\n");
    for result in &results[1..4] {
        assert!(result.starts_with('!'), "{results:?}");
    }
}

#[test]
fn rules_of_paths_hold_for_what_links_lead_to() {
    let read = |path: &str| ("read_file", json!({"path": path}));
    let write = |path: &str| ("write_file", json!({"path": path, "content": "PWNED"}));
    let calls = [
        read("docs/l/s.txt"),
        read("docs/../docs/l/s.txt"),
        read("docs/f"),
        write("docs/l/s.txt"),
        write("docs/l/new/t.txt"),
        ("list_directory", json!({"path": "docs/l"})),
        read("sec/s.txt"),
        read("Sec/s.txt"),
        read("docs/a.txt"),
    ];
    for more in [
        "    allowed-tools: [Read(docs/**), Write(docs/**), LS(docs/**)]\n",
        "    disallowed-tools: [Read(sec/**), Write(sec/**), LS(sec/**)]\n",
    ] {
        let rig = Rig::new(&changing(&format!("{LONG}{more}")), vec![text("never")]);
        rig.workspace.write("docs/a.txt", "open\n");
        for path in ["sec/s.txt", "Sec/s.txt"] {
            rig.workspace.write(path, "SECRET\n");
        }
        let link =
            |to, name| std::os::unix::fs::symlink(to, rig.workspace.root.join(name)).unwrap();
        link("../sec", "docs/l");
        link("l/s.txt", "docs/f");
        rig.workspace.git(&["add", "-A"]);
        rig.workspace.git(&["commit", "-q", "-m", "links"]);
        let results = called(&rig, "change", &calls);
        let (open, refused) = results.split_last().unwrap();
        assert!(open.contains("open"), "{more}{open}");
        for (result, asked) in refused.iter().zip(&calls) {
            assert!(
                result.starts_with('!') && result.contains("allowed"),
                "{more}{asked:?}: {result}"
            );
        }
        assert_eq!(rig.workspace.git(&["show", "HEAD:sec/s.txt"]), "SECRET\n");
    }
}

#[test]
fn a_restriction_that_is_not_understood_rejects_the_skill() {
    let rows = [
        ("allowed-tools: [Read, \"Bash(git *log)\"]", "allowed_tools"),
        ("disallowed-tools: [\"Bash(git && ls)\"]", "allowed_tools"),
        ("allowed-tools: [Raed]", "definition"),
        ("disallowed-tools: Bash(git", "definition"),
    ];
    for (list, code) in rows {
        let more = format!("{LONG}    {list}\n");
        let rig = Rig::new(&changing(&more), vec![text("never")]);
        let checked = rig.workspace.run(&["check"]).expect_code(4);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains("restriction-malformed"), "{said}");
        let refused = rig.workspace.run(&["run", "change", "--json"]);
        assert_eq!(
            (refused.code, refused.refusal().as_str()),
            (4, code),
            "{list}"
        );
    }
}

#[test]
fn calls_that_are_wrong_go_back_as_errors() {
    let rig = Rig::new(&reading(LONG), vec![text("never")]);
    let rows = [
        ("fly", json!({}), "no tool `fly`"),
        ("read_file", json!({"path": 7}), "path"),
        ("read_file", json!({}), "path"),
        (
            "read_file",
            json!({"path": "tracked.txt", "colour": "red"}),
            "colour",
        ),
        ("read_file", json!({"path": "nothing.txt"}), "nothing.txt"),
        ("read_file", json!({"path": "/etc/passwd"}), "/etc/passwd"),
        ("read_file", json!({"path": "../home/key"}), ""),
        ("list_directory", json!({"path": ".."}), ""),
        ("glob", json!({"pattern": "../**"}), ""),
        ("grep", json!({"pattern": "("}), ""),
        (
            "bash",
            json!({"command": "true", "timeout_seconds": 0}),
            "timeout_seconds",
        ),
    ];
    let calls: Vec<(&str, Value)> = rows
        .iter()
        .map(|(name, arguments, _)| (*name, arguments.clone()))
        .collect();
    let results = called(&rig, "mrr", &calls);
    for ((name, arguments, says), result) in rows.iter().zip(&results) {
        assert!(result.starts_with('!'), "{name} {arguments}: {result}");
        assert!(result.contains(says), "{name} {arguments}: {result}");
    }
}

#[test]
fn what_is_no_file_and_what_is_too_much_do_no_harm() {
    let rig = Rig::new(&changing(LONG), vec![text("never")]);
    let calls = [
        (
            "bash",
            json!({"command": "mkfifo pipe; ln -s pipe link; ln -s loop loop; printf 'a\\377b'"}),
        ),
        ("read_file", json!({"path": "pipe"})),
        ("read_file", json!({"path": "link"})),
        ("read_file", json!({"path": "loop"})),
        ("grep", json!({"pattern": "x", "path": "pipe"})),
        (
            "edit_file",
            json!({"path": "pipe", "old_text": "a", "new_text": "b"}),
        ),
        (
            "bash",
            json!({"command": "yes 0123456789 | head -c 3000000; rm pipe link loop"}),
        ),
        (
            "bash",
            json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x > long.txt"}),
        ),
        ("read_file", json!({"path": "long.txt"})),
        ("bash", json!({"command": "rm long.txt"})),
    ];
    let results = called(&rig, "change", &calls);
    assert!(
        results[0].starts_with('a') && results[0].contains('b'),
        "{}",
        results[0]
    );
    for result in &results[1..4] {
        assert!(result.starts_with('!'), "{result}");
    }
    assert!(results[5].starts_with('!'), "{}", results[5]);
    assert!(
        results[6].starts_with("[only the last of 3000000 bytes]"),
        "{:.200}",
        results[6]
    );
    for result in &results {
        assert!(result.len() < 300_000, "{result:.200}");
    }
}

#[test]
fn three_errors_alike_in_a_row_end_the_attempt() {
    let wrong = || call("read_file", &json!({"path": "nothing.txt"}));
    let right = || call("read_file", &json!({"path": "tracked.txt"}));
    let other = || call("read_file", &json!({"path": "other.txt"}));
    let both: Reply = Say::nothing()
        .call("fly", "{}")
        .call("fly", "{}")
        .call("fly", "{}")
        .into();
    let rows: [(&str, Vec<Reply>, Option<usize>); 4] = [
        (
            "three turns",
            vec![wrong(), wrong(), wrong(), text("never")],
            Some(3),
        ),
        // It has seen none of these yet.
        ("one turn", vec![both, text("Done.")], None),
        (
            "with success between",
            vec![wrong(), wrong(), right(), wrong(), text("Done.")],
            None,
        ),
        (
            "with another between",
            vec![wrong(), wrong(), other(), wrong(), text("Done.")],
            None,
        ),
    ];
    for (name, script, ends) in rows {
        let rig = Rig::new(&reading(LONG), script);
        let Some(requests) = ends else {
            let shown = rig.ran(&["mrr"]);
            assert_eq!(outcome(&shown)["kind"], "succeeded", "{name}: {shown:#}");
            continue;
        };
        let shown = rig.fails(&["mrr"]);
        assert_eq!(failure(&shown)["code"], "tool_errors", "{name}: {shown:#}");
        assert_eq!(rig.asked(), requests, "{name}");
    }
}

const LINT: &str = r"toolsets:
  static-analysis:
    commands:
      lint: {run: [./lint, --json], description: Lints one file, schema: {type: object, properties: {path: {type: string}, depth: {type: integer, default: 2}}, required: [path]}}
      slow: {run: sleep 1000, description: Sleeps, timeout: 300ms}
      fix: {run: [./lint], description: Mends one file}
    read_only: [lint, slow]
";

#[test]
fn a_command_of_a_tool_set_reads_its_arguments_as_json() {
    let rig = Rig::configured(
        &reading(&format!("{LONG}    toolsets: [static-analysis]\n")),
        LINT,
        vec![text("never")],
    );
    rig.workspace.write("lint", "#!/bin/sh\necho \"$@\"; cat\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(rig.workspace.root.join("lint"), mode).unwrap();
    rig.workspace.commit_all("lint");
    let calls = [
        ("lint", json!({"path": "a; touch b"})),
        ("lint", json!({"path": 7})),
        ("lint", json!({})),
        ("slow", json!({})),
        ("fix", json!({})),
    ];
    let results = called(&rig, "mrr", &calls);
    let (arguments, stdin) = results[0].split_once('\n').unwrap();
    assert_eq!(arguments, "--json");
    let stdin: Value = serde_json::from_str(stdin).unwrap();
    assert_eq!(stdin, json!({"path": "a; touch b", "depth": 2}));
    for (at, says) in [
        (1, "path"),
        (2, "path"),
        (3, "too long"),
        (4, "no tool `fix`"),
    ] {
        let result = &results[at];
        assert!(
            result.starts_with('!') && result.contains(says),
            "{at}: {result}"
        );
    }
    rig.workspace.expect_no_process();
}

#[test]
fn a_restriction_may_name_a_command_of_a_tool_set() {
    let more = "    toolsets: [static-analysis]\n    allowed-tools: [lint]\n";
    let rig = Rig::configured(&reading(more), LINT, vec![text("Done.")]);
    rig.run(&["mrr"]).expect_code(0);
    assert_eq!(rig.offered(), ["lint"]);
}

#[test]
fn a_command_of_a_model_sees_no_key_and_no_variable_of_the_engine() {
    let rig = Rig::new(&reading(LONG), vec![text("never")]);
    let config = rig.workspace.read("workerctl.yaml").unwrap();
    let config = config.replace("file:~/key", "env:MODEL_KEY");
    rig.workspace.write("workerctl.yaml", &config);
    let parents = "for p in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do tr '\\0' '\\n' < /proc/$p/environ; done; env";
    rig.server.follow(vec![
        call("bash", &json!({"command": parents})),
        text("Done."),
    ]);
    let mut command = rig.workspace.workerctl(&["run", "mrr"]);
    command
        .env("MODEL_KEY", super::KEY)
        .env("OTHER_SECRET", "of-the-engine");
    let done = rig.workspace.start(&mut command).end().expect_code(0);
    let seen = &rig.server.requests()[0];
    assert_eq!(seen.headers["x-api-key"], super::KEY);
    let said = told(&rig).concat();
    assert!(said.contains("WORKERCTL_RUN="), "{said}");
    assert!(
        !said.contains("MODEL_KEY") && !said.contains("of-the-engine"),
        "{said}"
    );
    rig.holds_no_key(&format!("{done:?}{said}"));
}
