//! A new attempt starts clean: no output and no temporary file of an earlier attempt reaches the result.

use crate::workspace;

use std::fmt::Write as _;

use workspace::Workspace;
use workspace::daemon::Daemon;
use workspace::gate::Gate;

/// How an output comes into being: its name, what attempt 1 and attempt 2 do, and what the file holds afterwards if
/// it was missing before, and if it held `old`.
struct Way {
    name: &'static str,
    first: &'static str,
    second: &'static str,
    new: Option<&'static str>,
    after_old: Option<&'static str>,
}

const WAYS: [Way; 5] = [
    Way {
        name: "printed",
        first: "echo draft",
        second: "echo final",
        new: Some("final\n"),
        after_old: Some("final\n"),
    },
    Way {
        name: "written",
        first: "echo draft > {r}",
        second: "echo final > {r}",
        new: Some("final\n"),
        after_old: Some("final\n"),
    },
    Way {
        name: "appended",
        first: "echo draft >> {r}",
        second: "echo final >> {r}",
        new: Some("final\n"),
        after_old: Some("old\nfinal\n"),
    },
    Way {
        name: "replaced",
        first: "rm -f {r}; mkdir {r}",
        second: "echo final > {r}",
        new: Some("final\n"),
        after_old: Some("final\n"),
    },
    // Attempt 2 writes nothing, so that there is nothing to publish.
    Way {
        name: "missing",
        first: "echo draft > {r}",
        second: ": > \"$HOME/second\"",
        new: None,
        after_old: Some("old\n"),
    },
];

/// How attempt 1 ends: its name, what its command does last, and what the skill says besides.
const ENDS: [(&str, &str, &str); 5] = [
    ("exit", "exit 3", ""),
    ("signal", "kill -9 $$", ""),
    ("timeout", "sleep 600", "timeout: 2s, "),
    (
        "check",
        "true",
        "verification: [{command: 'test \"$WORKERCTL_ATTEMPT\" -ge 2'}], ",
    ),
    (
        "limit",
        "head -c 3000000 /dev/zero > \"$TMPDIR/much\"; sleep 600",
        "limits: {written: 1MiB}, ",
    ),
];

fn skill(id: &str, way: &Way, (last, more): (&str, &str), retry: &str) -> String {
    let (first, second) = (way.first, way.second);
    format!(
        "  - id: {id}\n    description: d\n    retry: {retry}\n    {}\n    \
         interface: {{outputs: [{{name: r, type: file, destination: \"out/{id}.txt\"}}]}}\n    run: |\n      \
         test -z \"$(ls -A \"$TMPDIR\")\" || {{ echo TMPDIR is not empty >&2; exit 9; }}\n      \
         echo left > \"$TMPDIR/left\"\n      \
         if [ \"$WORKERCTL_ATTEMPT\" = 1 ]; then\n        {first}\n        {last}\n      else\n        {second}\n      fi\n",
        more.trim_end_matches(", ")
    )
}

fn expect_result(
    workspace: &Workspace,
    id: &str,
    way: &Way,
    old: bool,
    (code, shown): (i32, String),
) {
    let expected = if old { way.after_old } else { way.new };
    let succeeds = way.name != "missing";
    assert_eq!(code == 0, succeeds, "{id}: {shown}");
    assert_eq!(
        workspace.read(&format!("out/{id}.txt")).as_deref(),
        expected,
        "{id}: {shown}"
    );
}

/// Every kind of output with every way in which an attempt can end, sandboxed and not, with and without a file there.
#[test]
fn a_retry_publishes_nothing_of_an_earlier_attempt() {
    let retry = "{max_attempts: 2, backoff: 1ms}";
    let mut skills = String::new();
    let mut cases = Vec::new();
    for way in &WAYS {
        for (end, last, more) in ENDS {
            for old in [false, true] {
                let id = format!("{}-{end}-{}", way.name, if old { "old" } else { "new" });
                skills.push_str(&skill(&id, way, (last, more), retry));
                cases.push((id, way, old));
            }
        }
    }
    for workspace in [
        Workspace::with_skills(&skills),
        Workspace::without_sandbox(&skills),
    ] {
        for (id, _, _) in cases.iter().filter(|case| case.2) {
            workspace.write(&format!("out/{id}.txt"), "old\n");
        }
        let daemon = Daemon::start(&workspace);
        let runs: Vec<String> = cases
            .iter()
            .map(|case| workspace.submit(&[&case.0]))
            .collect();
        for ((id, way, old), run) in cases.iter().zip(runs) {
            let (code, detail) = workspace.wait(&run);
            assert_eq!(detail["summary"]["attempts"], 2, "{id}: {detail:#}");
            expect_result(&workspace, id, way, *old, (code, format!("{detail:#}")));
        }
        daemon.stop();
    }
}

#[test]
fn an_attempt_after_a_lost_engine_publishes_nothing_of_the_lost_one() {
    let stands = Gate::text("gate");
    let mut skills = String::new();
    for way in &WAYS {
        skills.push_str(&skill(way.name, way, (&stands, ""), "{max_attempts: 1}"));
    }
    for workspace in [
        Workspace::with_skills(&skills),
        Workspace::without_sandbox(&skills),
    ] {
        let mut gate = Gate::new(&workspace, "gate");
        for (way, old) in WAYS.iter().zip([false, true, true, false, true]) {
            if old {
                workspace.write(&format!("out/{}.txt", way.name), "old\n");
            }
            let daemon = Daemon::start(&workspace);
            let run = workspace.submit(&[way.name]);
            assert_eq!(gate.reached(), (run.clone(), 1));
            daemon.kill();
            let daemon = Daemon::start(&workspace);
            let (code, detail) = workspace.wait(&run);
            expect_result(
                &workspace,
                way.name,
                way,
                old,
                (code, format!("{detail:#}")),
            );
            daemon.stop();
        }
    }
}

#[test]
fn a_retry_with_several_outputs_publishes_those_of_the_last_attempt() {
    let mut outputs = String::new();
    for name in ["one", "two", "three"] {
        let _ = write!(
            outputs,
            "{{name: {name}, type: file, destination: out/{name}.txt}}, "
        );
    }
    let skills = format!(
        "  - id: several\n    description: d\n    retry: {{max_attempts: 2, backoff: 1ms}}\n    \
         interface: {{outputs: [{outputs}]}}\n    run: |\n      \
         echo \"$WORKERCTL_ATTEMPT\" > {{one}}; echo \"$WORKERCTL_ATTEMPT\" > {{two}}; echo \"$WORKERCTL_ATTEMPT\" > {{three}}\n      \
         test \"$WORKERCTL_ATTEMPT\" = 2\n"
    );
    let workspace = Workspace::with_skills(&skills);
    workspace.run(&["run", "several"]).expect_code(0);
    for name in ["one", "two", "three"] {
        assert_eq!(workspace.read(&format!("out/{name}.txt")).unwrap(), "2\n");
    }
}

#[test]
fn a_retry_of_a_mutating_skill_starts_from_the_tip_with_an_empty_tmpdir() {
    for way in &WAYS[..4] {
        let skills = skill(
            "m",
            way,
            ("exit 3", "mutating: true\n    idempotent: true"),
            "{max_attempts: 2, backoff: 1ms}",
        );
        let workspace = Workspace::with_skills(&skills);
        workspace.write("out/m.txt", "old\n");
        workspace.commit_all("old");
        workspace.run(&["run", "m"]).expect_code(0);
        let landed = workspace.git(&["show", "HEAD:out/m.txt"]);
        assert_eq!(Some(landed.as_str()), way.after_old, "{}", way.name);
    }
}

#[test]
fn a_directory_that_cannot_be_written_does_not_outlive_its_attempt() {
    let skills = "  - id: modules\n    description: d\n    retry: {max_attempts: 2, backoff: 1ms}\n    run: |\n      \
                  test -z \"$(ls -A \"$TMPDIR\")\" || exit 9\n      mkdir -p \"$TMPDIR/a/b\"; echo x > \"$TMPDIR/a/b/c\"; \
                  chmod -R a-w \"$TMPDIR/a\"\n      test \"$WORKERCTL_ATTEMPT\" = 2\n";
    let workspace = Workspace::with_skills(skills);
    workspace.run(&["run", "modules"]).expect_code(0);
    let left = std::fs::read_dir(workspace.state().join("scratch")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| !path.join("a").exists()), "{left:?}");
}

#[test]
fn a_destination_that_a_command_writes_by_its_path_is_not_replaced_by_what_it_printed() {
    for printed in ["true", "echo printed"] {
        let skills = format!(
            "  - id: direct\n    description: d\n    interface: {{outputs: [{{name: r, type: file, destination: out/r.txt}}]}}\n    \
             run: 'echo direct > \"out/$(printf r).txt\"; {printed}'\n"
        );
        let workspace = Workspace::without_sandbox(&skills);
        workspace.write("out/r.txt", "old\n");
        let done = workspace.run(&["run", "direct"]).expect_code(5);
        let said = done.stdout + &done.stderr;
        assert!(
            said.contains("was written directly during the run") && said.contains("`{r}`"),
            "{said}"
        );
        assert_eq!(workspace.read("out/r.txt").unwrap(), "direct\n");
    }
}
