//! Commands of runs whose skill may ask the engine: they submit, wait and read, and decide nothing.

use std::path::Path;

use serde_json::Value;
use workerctl::daemon::routes;

use crate::approval::{asked, bed, ended, outcome};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually, skip};

/// What commands of runs may ask for. Everything else is for people, new operations included.
const FOR_RUNS: [&str; 27] = [
    "version",
    "openapi",
    "status",
    "metrics",
    "follow",
    "workers",
    "skills",
    "problems",
    "schedules",
    "calendar",
    "next_slots",
    "explain_schedule",
    "slots",
    "stats",
    "backfill",
    "list_runs",
    "submit_run",
    "show_run",
    "cancel_run",
    "diff",
    "changes",
    "output",
    "thread",
    "logs",
    "log_text",
    "events",
    "render",
];

/// Commands that decide something for a person, change the service, or end what others have started.
const FOR_PEOPLE: [&str; 19] = [
    "approve RUN",
    "deny RUN --note x",
    "resolve RUN --as succeeded --note x",
    "retry RUN",
    "land RUN",
    "discard RUN",
    "cancel RUN",
    "schedule pause w/timed --reason x",
    "schedule resume w/timed",
    "schedule trigger w/timed",
    "reload",
    "drain",
    "store gc",
    "store rebuild",
    "notify test",
    "web --no-open",
    "web --logout",
    "skill trust say",
    "daemon",
];

/// A workspace in which `asking/ask` runs this text, as a command that may ask the engine. `$W` asks it.
fn asking(text: &str) -> Workspace {
    let workspace = bed();
    let program = env!("CARGO_BIN_EXE_workerctl");
    let lines = format!(
        "W='{program} -C {} --state-dir {}'\n{text}",
        workspace.root.display(),
        workspace.state().display()
    );
    std::fs::write(workspace.home.join("ask.sh"), lines).unwrap();
    let skill = "  - id: ask\n    description: d\n    workerctl: true\n    sandbox: off\n    interface: {inputs: [{name: other, type: string, default: none}]}\n    run: sh \"$HOME/ask.sh\" {other}\n";
    workspace.worker("asking", skill);
    let timed = "  - id: timed\n    description: d\n    schedule: '0 0 1 1 *'\n    run: 'true'\n  - id: long\n    description: d\n    run: sleep 1000\n";
    workspace.worker("w2", timed);
    workspace.commit_all("those that ask");
    workspace
}

#[test]
fn only_these_operations_are_for_runs() {
    let routes = routes();
    let for_runs = routes.iter().filter(|route| route.by_person.is_none());
    let for_runs: Vec<_> = for_runs.map(|route| route.id).collect();
    assert_eq!(for_runs, FOR_RUNS);
}

#[test]
fn a_command_of_a_run_decides_nothing_for_a_person() {
    let lines = FOR_PEOPLE.map(|command| {
        let command = command.replace("RUN", "$1").replace("w/timed", "w2/timed");
        format!("echo '== {command}'; $W {command} 2>&1; echo \"code $?\"\n")
    });
    let workspace = asking(&lines.concat());
    let daemon = Daemon::start(&workspace);
    let waiting = asked(&workspace, &["say"]);
    let other = format!("other={waiting}");
    let run = workspace.submit(&["asking/ask", "-i", &other]);
    let detail = ended(&workspace, &run);
    assert_eq!(outcome(&detail), "succeeded", "{detail}");
    let log = workspace.run(&["logs", &run]).expect_code(0).stdout;
    for said in log.split("== ").skip(1) {
        assert!(said.contains("code 6"), "{said}");
        assert!(said.contains("outside of "), "{said}");
        assert!(!said.contains("workerctl: true"), "{said}");
    }
    assert_eq!(log.matches("== ").count(), FOR_PEOPLE.len(), "{log}");
    let phase = workspace.show(&waiting)["summary"]["phase"].clone();
    assert_eq!(phase, "awaiting_approval");
    let schedules = workspace.json(&["schedule", "list"]);
    assert!(
        !schedules.to_string().contains("\"paused_by\""),
        "{schedules}"
    );
    // The same by a person.
    workspace.run(&["approve", &waiting]).expect_code(0);
    daemon.stop();
}

#[test]
fn a_command_of_a_run_submits_waits_reads_and_cancels_what_it_submitted() {
    let workspace = asking(
        "set -ex\nrun=$($W run --no-wait w2/long)\n$W status\n$W runs\n$W show \"$run\"\n$W cancel \"$run\" --now\n$W wait \"$run\" || test $? = 130\n$W logs \"$run\"\nUSER=somebody $W run --no-wait w2/timed > \"$HOME/submitted\"\n",
    );
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["asking/ask"]);
    let detail = ended(&workspace, &run);
    let log = workspace.run(&["logs", &run]).stdout;
    assert_eq!(outcome(&detail), "succeeded", "{detail} {log}");
    let submitted = std::fs::read_to_string(workspace.home.join("submitted")).unwrap();
    let child = ended(&workspace, submitted.trim());
    let by = &child["submitted_by"];
    assert!(by.as_str().unwrap().starts_with("run "), "{by}");
    assert_eq!(child["summary"]["parent"], run.as_str(), "{child:#}");
    assert_eq!(child["parent_skill"]["skill"], "ask");
    let children = detail["children"].as_array().unwrap();
    assert_eq!(children.len(), 2, "{detail:#}");
    assert_eq!(children[1], submitted.trim());
    let shown = workspace.run(&["show", submitted.trim()]).stdout;
    assert!(
        shown.contains(&format!("started by run {run} (asking/ask)")),
        "{shown}"
    );
    let shown = workspace.run(&["show", &run]).stdout;
    let started = format!(
        "started runs {}, {}",
        children[0].as_str().unwrap(),
        submitted.trim()
    );
    assert!(shown.contains(&started), "{shown}");
    let thread = std::fs::read_to_string(child["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["run"]["parent"], run.as_str());
    daemon.stop();
}

/// A command can clear its environment, and is recognised by the mark of its process.
#[test]
fn a_command_with_a_cleared_environment_decides_nothing() {
    let bare = "cd /; env -i PATH=\"$PATH\" HOME=\"$HOME\"";
    let forged = format!("{bare} WORKERCTL_WORKSPACE=/elsewhere");
    let lines = [bare, &forged].map(|env| {
        format!("{env} $W skill trust say 2>&1; echo \"code $?\"\n{env} $W store rebuild 2>&1; echo \"code $?\"\n")
    });
    let workspace = asking(&lines.concat());
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["asking/ask"]);
    ended(&workspace, &run);
    let log = workspace.run(&["logs", &run]).expect_code(0).stdout;
    assert_eq!(
        log.matches("is not available to commands of a run").count(),
        4,
        "{log}"
    );
    assert_eq!(log.matches("code 6").count(), 4, "{log}");
    daemon.stop();
}

#[test]
fn a_command_that_outlives_its_engine_hosts_none() {
    for env in [
        "",
        "cd /; env -i PATH=\"$PATH\" HOME=\"$HOME\"",
        "WORKERCTL_WORKSPACE=/elsewhere",
    ] {
        outlives_its_engine(env);
    }
}

fn outlives_its_engine(env: &str) {
    let workspace = asking(&format!(
        "echo x > \"$HOME/started\"\nuntil test -e \"$HOME/killed\"; do sleep 0.1; done\n{env} $W resolve \"$1\" --as succeeded --note x > \"$HOME/said\" 2>&1\necho $? >> \"$HOME/said\"; mv \"$HOME/said\" \"$HOME/done\"\n",
    ));
    // Out of its group and with its parent gone, it is ended by the next engine only.
    let text = std::fs::read_to_string(workspace.home.join("ask.sh")).unwrap();
    std::fs::write(workspace.home.join("inner.sh"), text).unwrap();
    std::fs::write(
        workspace.home.join("ask.sh"),
        "setsid sh \"$HOME/inner.sh\" \"$1\" &\nwait\n",
    )
    .unwrap();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["asking/ask"]);
    eventually("it runs", || {
        workspace.home.join("started").exists().then_some(())
    });
    daemon.kill();
    std::fs::write(workspace.home.join("killed"), "").unwrap();
    let said = eventually("it asked", || {
        std::fs::read_to_string(workspace.home.join("done")).ok()
    });
    assert!(
        said.contains("`workerctl resolve` is not available to commands of a run"),
        "{said}"
    );
    let daemon = Daemon::start(&workspace);
    ended(&workspace, &run);
    daemon.stop();
}

/// Starts a daemon as `nobody` in a control group of its own, where `/proc` hides other users' processes, and asks it from
/// outside of that group, from inside, and from a shell that is older than it. Each line says who asked and the exit code.
const HIDDEN: &str = r#"
mount -o remount,hidepid=invisible /proc || exit 75
own=$1/workerctl-hidden-$$
mkdir "$own" || exit 75
as="setpriv --reuid 65534 --regid 65534 --clear-groups"
mkfifo "$2/go" && chmod 666 "$2/go"
( echo 0 > "$own/cgroup.procs"; exec $as sh -c "read line < $2/go; $W status > $2/older 2>&1; echo older \$?" ) &
# The kernel counts ages in hundredths of a second.
sleep 0.1
( echo 0 > "$own/cgroup.procs"; exec $as $W daemon > "$2/log" 2>&1 ) &
daemon=$!
# Only a daemon accepts a run that nobody waits for; `status` would host an engine itself.
until $as $W run --no-wait w2/long > /dev/null 2>&1; do sleep 0.1; done
$as $W status > "$2/apart" 2>&1; echo "apart $?"
( echo 0 > "$own/cgroup.procs"; $as $W status > "$2/within" 2>&1; echo "within $?" )
echo > "$2/go"
wait %1
$as $W cancel latest --now > /dev/null
kill $daemon; wait $daemon
"#;

#[test]
fn hidden_ancestors_are_told_apart_by_control_group_and_age() {
    let tree = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    let tree = tree
        .iter()
        .find(|tree| Path::new(tree).join("cgroup.procs").exists());
    let (Some(tree), true) = (tree, rustix::process::geteuid().is_root()) else {
        skip("hiding processes needs root and a cgroup2 tree");
        return;
    };
    let workspace = asking("true\n");
    let place = workspace.root.parent().unwrap();
    let program = place.join("workerctl");
    std::fs::copy(env!("CARGO_BIN_EXE_workerctl"), &program).unwrap();
    let w = format!(
        "{} -C {} --state-dir {}",
        program.display(),
        workspace.root.display(),
        workspace.state().display()
    );
    let owned = workspace
        .program("chown")
        .arg("-R")
        .arg("65534:65534")
        .arg(place)
        .status();
    assert!(owned.unwrap().success());
    let mut hidden = workspace.program("unshare");
    hidden.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        HIDDEN,
        "sh",
    ]);
    let done = workspace
        .start(hidden.arg(tree).arg(&workspace.home).env("W", w))
        .end();
    let left = std::fs::read_dir(tree).unwrap().flatten();
    for entry in left.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("workerctl-hidden-")
    }) {
        let _ = std::fs::remove_dir(entry.path());
    }
    if done.code == 75 {
        skip(&done.stderr);
        return;
    }
    let said = |who: &str| std::fs::read_to_string(workspace.home.join(who)).unwrap_or_default();
    let all = format!(
        "{done:?} {} {} {}",
        said("apart"),
        said("older"),
        said("log")
    );
    assert!(done.stdout.contains("apart 0\n"), "{all}");
    assert!(done.stdout.contains("older 0\n"), "{all}");
    assert!(done.stdout.contains("within 6\n"), "{all}");
    let within = said("within");
    assert!(within.contains("`/proc` hides process"), "{within}");
    assert!(
        within.contains("hint: run the command in a control group other than"),
        "{within}"
    );
}
