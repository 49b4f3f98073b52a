//! A secret that everything repeats which could come by it, in every form: nowhere but with those who were given it.

use std::fs;

use serde_json::json;

use super::workspace::daemon::Daemon;
use super::workspace::observed::files_below;
use super::workspace::{Workspace, eventually};
use super::{Rig, call, text};

/// Quotes, a backslash and more that programs write otherwise.
const CANARY: &str = r#"Kan'arie "6"\ü/$x+b0d9c6b5e3f"#;

const SKILLS: &str = r#"
  - id: loud
    description: d
    mutating: true
    env: [CANARY_ENV]
    run: |
      test -n "$CANARY" && sh "$HOME/forms"; sh "$HOME/forms" >&2; echo x >> tracked.txt
    verification: [{command: 'sh "$HOME/forms"', description: loud}]
    hooks: {post_tools: ['sh "$HOME/forms" >&2; exit 1'], post_commit: ['sh "$HOME/forms" >&2; exit 1']}
  - {id: failing, description: d, env: [CANARY_ENV], run: 'sh "$HOME/forms" >&2; exit 3'}
  - id: checked
    description: d
    env: [CANARY_ENV]
    run: 'true'
    verification: [{command: 'sh "$HOME/forms"; exit 1', description: loud}]
  - id: blocked
    description: d
    mutating: true
    env: [CANARY_ENV]
    run: echo x >> tracked.txt
    hooks: {post_tools: ['sh "$HOME/forms" >&2; exit 2']}
  - {id: woken, description: d, env: [CANARY_ENV], wake: 'sh "$HOME/forms"', run: 'echo "$WORKERCTL_WAKE"'}
  - {id: unwoken, description: d, env: [CANARY_ENV], wake: 'sh "$HOME/forms"; exit 3', run: 'true'}
  - id: named
    description: d
    mutating: true
    env: [CANARY_ENV]
    run: echo x > "$(sh "$HOME/forms" | sed -n 1p)"
  - id: ignored
    description: d
    mutating: true
    env: [CANARY_ENV]
    run: mkdir out; echo out/ > .gitignore; echo x > "out/$(sh "$HOME/forms" | sed -n 1p)"; exit 3
  - id: drifting
    description: d
    mutating: true
    env: [CANARY_ENV]
    run: echo x >> tracked.txt
    verification: [{command: 'echo x > "$(sh "$HOME/forms" | sed -n 1p)"', description: drift}]
  - id: change
    description: d
    mutating: true
    env: [CANARY_ENV]
    instructions: Change it.
"#;

const ENV: &str = "{name: CANARY, secret: {command: [/bin/cat, HOME/canary]}}";

/// Fails, and tells what it was told, besides what it repeats.
const NOTIFY: &str =
    "notify: {on_failure: 'cat >> ../told; sh \"$HOME/forms\"; sh \"$HOME/forms\" >&2; exit 1'}\n";

/// Each skill, and the code of its failure.
const RUNS: [(&str, Option<&str>); 10] = [
    ("loud", None),
    ("failing", Some("exit_code")),
    ("checked", Some("check_failed")),
    ("blocked", Some("hook_blocked")),
    ("woken", None),
    ("unwoken", Some("wake_failed")),
    ("named", Some("secret_in_path")),
    ("ignored", Some("exit_code")),
    ("drifting", Some("check_changed_result")),
    ("change", None),
];

/// What of the secret's forms must be nowhere, in one line each; the first can be the name of a file.
fn forms(workspace: &Workspace) -> Vec<String> {
    let base64 = |arguments: &str| {
        let script = format!("printf '%s' \"$1\" | base64 {arguments}");
        let mut command = workspace.program("sh");
        let done = command
            .args(["-c", &script, "sh", CANARY])
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        // Without what depends on what stands behind it.
        text.trim_end()
            .trim_end_matches('=')
            .split_at(40)
            .0
            .to_owned()
    };
    let hex: Vec<String> = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let quoted = serde_json::to_string(CANARY).unwrap();
    let inner = quoted[1..quoted.len() - 1].to_owned();
    let twice = serde_json::to_string(&inner).unwrap();
    let percent = CANARY.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    vec![
        hex.concat(),
        base64("-w0"),
        CANARY.to_owned(),
        twice[1..twice.len() - 1].to_owned(),
        inner,
        percent.collect(),
        CANARY.replace('\'', r"'\''"),
    ]
}

fn expect_none(forms: &[String], what: &str, bytes: &[u8]) {
    for form in forms {
        let found = xtest::contains(bytes, form.as_bytes());
        assert!(
            !found,
            "{what} holds `{form}`:\n{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

/// A workspace of skills, a model and a command of `notify` that repeat all of these forms.
fn rig(forms: &[String]) -> Rig {
    let said = forms.join("\n");
    let harmless = json!({"path": "new.txt", "content": "harmless\n"});
    let script = vec![
        call("bash", &json!({"command": "sh ~/forms"})),
        call("bash", &json!({"command": format!(": {said}")})),
        call("write_file", &harmless),
        call("no_such_tool", &json!({"said": said})),
        text(&said),
    ];
    let rig = Rig::configured(SKILLS, "", script);
    let workspace = &rig.workspace;
    let env = ENV.replace("HOME", workspace.home.to_str().unwrap());
    let worker = "workers/w/worker.yaml";
    let definition = workspace.read(worker).unwrap();
    workspace.write(worker, &definition.replace("CANARY_ENV", &env));
    let config = workspace.read("workerctl.yaml").unwrap();
    workspace.write("workerctl.yaml", &(config + NOTIFY));
    workspace.commit_all("canary");
    fs::write(workspace.home.join("canary"), format!("{CANARY}\n")).unwrap();
    let printing = format!("cat <<'END-OF-FORMS'\n{said}\nEND-OF-FORMS\n");
    fs::write(workspace.home.join("forms"), printing).unwrap();
    rig
}

fn expect_none_shown(workspace: &Workspace, forms: &[String], arguments: &[&str]) {
    let done = workspace.run(arguments);
    let shown = done.stdout + &done.stderr;
    expect_none(forms, &format!("{arguments:?}"), shown.as_bytes());
}

/// Neither in any object of the repository nor in any file beside the home directory, nor in the name of one.
fn expect_none_kept(workspace: &Workspace, forms: &[String]) {
    let objects = workspace.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    for line in objects.lines() {
        let object = line.split(' ').next().unwrap();
        let content = workspace.git(&["cat-file", "-p", object]);
        expect_none(forms, object, content.as_bytes());
    }
    let base = workspace.root.parent().unwrap();
    for path in files_below(base, &|path| path != workspace.home) {
        let name = path.to_str().unwrap();
        expect_none(forms, name, &fs::read(&path).unwrap());
        expect_none(forms, "a file's name", name.as_bytes());
    }
}

#[test]
fn a_secret_that_all_repeat_is_nowhere_but_with_those_who_were_given_it() {
    let forms = forms(&Workspace::new());
    let rig = rig(&forms);
    let workspace = &rig.workspace;
    let daemon = Daemon::start(workspace);
    let mut told = 0;
    for (skill, code) in RUNS {
        let key = format!("key-{skill}");
        let run = workspace.submit(&[skill, "--key", &key]);
        let (_, shown) = workspace.wait(&run);
        let outcome = &shown["summary"]["outcome"];
        let kind = if code.is_some() {
            "failed"
        } else {
            "succeeded"
        };
        assert_eq!(outcome["kind"], kind, "{skill}: {shown:#}");
        if let Some(code) = code {
            assert_eq!(outcome["failure"]["code"], code, "{skill}: {outcome}");
            told += 1;
            eventually("the notice", || {
                let text = workspace.read("../told").unwrap_or_default();
                (text.lines().count() >= told).then_some(())
            });
        }
        let logs = workspace.run(&["logs", &run]).expect_code(0);
        let is_silent = ["named", "ignored", "drifting"].contains(&skill);
        assert!(
            logs.stdout.contains("***") || is_silent,
            "masked, not lost: {logs:?}"
        );
        for arguments in [
            ["show", &run].as_slice(),
            &["show", &run, "--json"],
            &["logs", &run],
            &["logs", &run, "--json"],
            &["run", skill, "--no-wait", "--key", &key],
        ] {
            expect_none_shown(workspace, &forms, arguments);
        }
    }
    for of_all in ["runs", "threads", "status", "stats"] {
        expect_none_shown(workspace, &forms, &[of_all, "--json"]);
    }
    // A model is told what its tools say without secrets; what it said itself it has.
    let results = (1..5).flat_map(|request| rig.results(request));
    let results = results.collect::<Vec<_>>().join("\n");
    assert!(results.contains("***"), "{results}");
    expect_none(&forms, "a tool's result", results.as_bytes());
    expect_none(&forms, "the daemon's log", daemon.log().as_bytes());
    daemon.stop();
    expect_none_kept(workspace, &forms);
}
