//! Walls around the commands of real runs: what is theirs, what is granted, and what the kernel refuses.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[path = "walls/around.rs"]
mod around;
#[path = "walls/definitions.rs"]
mod definitions;
#[path = "walls/escapes.rs"]
mod escapes;
#[path = "walls/own.rs"]
mod own;
#[path = "walls/without.rs"]
mod without;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, skip};

/// Whether the kernel has what it takes; says so where it has not.
fn walls_or_skip() -> bool {
    let stand = workerctl::process::walls_stand();
    if !stand {
        skip("the kernel has no Landlock that is a wall");
    }
    stand
}

/// Whether commands can have containers; says so where they cannot.
fn containers_or_skip() -> bool {
    let stand = workerctl::process::containers_stand();
    if let Err(error) = &stand {
        skip(&error.to_string());
    }
    stand.is_ok() && walls_or_skip()
}

/// A workspace with a home that holds a key, and skills whose `run` is one of these texts.
fn bed(skills: &str) -> Workspace {
    let workspace = Workspace::with_skills("");
    for (path, text) in [(".ssh/id", "key\n"), (".cache/kept", "as it was\n")] {
        let path = workspace.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let worker = format!("worker: {{id: w, name: W, type: OpsWorker}}\nskills:\n{skills}");
    workspace.write("workers/w/worker.yaml", &worker);
    workspace.commit_all("skills");
    workspace
}

/// Runs a skill and answers the run in full.
fn run(workspace: &Workspace, skill: &str) -> Value {
    workspace.run(&["run", skill, "--json"]).value()
}

fn outcome(detail: &Value) -> &str {
    detail["summary"]["outcome"]["kind"].as_str().unwrap()
}

/// What a command of either kind tries, and what nothing but walls keeps from it; `S` is the state directory, `C` the
/// checkout.
const ATTEMPTS: [&str; 58] = [
    // Files of the checkout.
    "echo x > $C/new",
    "echo x >> $C/tracked.txt",
    "truncate -s 0 $C/tracked.txt",
    "rm $C/tracked.txt",
    "mv $C/tracked.txt $TMPDIR/",
    "ln $C/tracked.txt $TMPDIR/hard && echo x >> $TMPDIR/hard",
    "ln -s $C/tracked.txt $TMPDIR/soft && echo x >> $TMPDIR/soft",
    "touch $TMPDIR/t && mv $TMPDIR/t $C/",
    "touch $TMPDIR/t && ln $TMPDIR/t $C/hard",
    "ln -s /etc/hostname $C/link",
    "mkdir $C/sub",
    "mkfifo $C/pipe",
    "dd if=/dev/zero of=$C/zero count=1",
    "sed -i s/as/was/ $C/tracked.txt",
    "tar -C $C -cf - tracked.txt | (mkdir $TMPDIR/x && tar -C $TMPDIR/x -xf - && cp $TMPDIR/x/tracked.txt $C/copy)",
    "cd $C && echo x >> tracked.txt",
    "cd / && echo x > .$C/new",
    "echo x > /proc/self/root$C/new",
    "echo x > $TMPDIR/../../../repository/new",
    "env -i /bin/sh -c \"echo x > $C/new\"",
    "setsid sh -c \"echo x > $C/late\" & wait $!",
    "(nohup sh -c \"echo x > $C/late\" > /dev/null 2>&1 & wait $!)",
    // Its repository, definitions and what the engine keeps there.
    "git -C $C config user.name Evil",
    "git -C $C commit -q --allow-empty -m evil",
    "echo x >> $C/tracked.txt; git -C $C stash",
    "git -C $C update-ref refs/heads/evil HEAD",
    "git -C $C tag evil",
    "git -C $C remote add evil /nowhere",
    "git -C $C checkout -q -b evil",
    "echo x > $C/.git/hooks/post-commit",
    "echo /tmp > $C/.git/objects/info/alternates",
    "echo x > $C/.git/index.lock",
    "mv $C/.git $C/git",
    "echo x >> $C/workers/w/worker.yaml",
    "echo x > $C/workerctl.yaml",
    "echo x > $C/.workerctl/evil",
    "echo x >> $(ls -d $C/workspace/threads/*.jsonl | head -1)",
    // The state directory, and trees of other runs.
    "echo x > $S/evil",
    "ls $S",
    "cat $S/store/id",
    "cat $S/lock",
    "cp -r $S/store $TMPDIR/",
    "rm -r $S/scratch",
    "mv $TMPDIR $S/elsewhere",
    "for n in 1 2; do T=$(realpath $S)/trees/$n/repository; [ $T != ${PWD%/} ] && cat $T/tracked.txt && exit; done; false",
    "for n in 1 2; do T=$(realpath $S)/trees/$n/repository; [ $T != ${PWD%/} ] && echo x > $T/evil && exit; done; false",
    // Keys, and the home directory.
    "cat $HOME/.ssh/id",
    "ls $HOME/.ssh",
    "cd $HOME/.ssh && cat id",
    "ln $HOME/.ssh/id $TMPDIR/key && cat $TMPDIR/key",
    "ln -s $HOME/.ssh/id $TMPDIR/key && cat $TMPDIR/key",
    "cat /proc/self/root$HOME/.ssh/id",
    "mv $HOME/.ssh $TMPDIR/",
    "echo x >> $HOME/.cache/kept",
    "echo x > $HOME/.profile",
    // Terminals, and the engine's process.
    "ls /dev/pts",
    "kill -0 $PPID",
    "readlink /proc/$PPID/cwd && ls /proc/$PPID/fd && cat /proc/$PPID/environ /proc/$PPID/auxv",
];

/// What is refused at every level: `W` is the program.
const REFUSED_ANYWAY: [&str; 4] = [
    "$W -C $C --state-dir $S status",
    "setsid $W -C $C --state-dir $S run read-0 & wait $!",
    "env -i $W -C $C --state-dir $S cancel latest",
    "unshare -m mount -t tmpfs none $C/workers",
];

/// What succeeds in a container and changes nothing outside: directories of its own stand in these places.
const HARMLESS_IN_A_CONTAINER: [&str; 3] = ["echo x > $HOME/.profile", "echo x > $S/evil", "ls $S"];

/// The engine's process is traced (`PTRACE_SEIZE`).
const TRACE: &str = "P=$PPID; python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(l.ptrace(0x4206, int(sys.argv[1]), 0, 0) != 0)' $P";

/// Whether the kernel lets processes of one user trace each other, without walls.
fn may_trace() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let is_root = std::fs::File::open("/etc/shadow").is_ok();
    is_root || scope.is_ok_and(|scope| scope.trim() == "0")
}

fn attempts() -> Vec<&'static str> {
    let python = std::process::Command::new("python3").arg("-V").output();
    if python.is_err() {
        skip("tracing: there is no python3");
    }
    let trace = python.is_ok().then_some(TRACE);
    let attempts = ATTEMPTS.into_iter().chain(REFUSED_ANYWAY);
    attempts.chain(trace).collect()
}

/// Two mutating skills that wait for each other: afterwards there are two trees.
const PAIR: &str = "  - {id: one, description: d, mutating: true, parallel: true, sandbox: off, run: 'touch $HOME/one; until [ -e $HOME/two ]; do sleep 0.05; done'}\n  - {id: two, description: d, mutating: true, parallel: true, sandbox: off, run: 'touch $HOME/two; until [ -e $HOME/one ]; do sleep 0.05; done'}\n";

/// Leaves the trees of two runs, so that there is one that is not a run's own.
fn leave_trees(workspace: &Workspace) {
    let pair = ["one", "two"].map(|skill| workspace.submit(&[skill]));
    for run in pair {
        assert_eq!(outcome(&workspace.wait(&run).1), "succeeded");
    }
    for tree in ["1", "2"] {
        let tree = workspace.state().join("trees").join(tree);
        assert!(
            tree.join("repository/tracked.txt").exists(),
            "{}",
            tree.display()
        );
    }
}

/// The text of a command that tries it.
fn trying(attempt: &str) -> String {
    let program = env!("CARGO_BIN_EXE_workerctl");
    let text = format!("C=$HOME/../repository S=$HOME/../state W={program}; {attempt}");
    serde_json::to_string(&text).unwrap()
}

/// Everything that attempts are after: the checkout, its history, the home directory.
fn belongings(workspace: &Workspace) -> (String, String, Vec<(String, Vec<u8>)>) {
    let mut home = Vec::new();
    for directory in ["", ".ssh", ".cache"] {
        for entry in std::fs::read_dir(workspace.home.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let shown = path.display().to_string();
                home.push((shown, std::fs::read(path).unwrap()));
            }
        }
    }
    home.sort();
    let tree = format!("{:?}", workspace.tree());
    let refs = workspace.git(&["for-each-ref", "refs/heads", "refs/tags"]);
    let log = workspace.git(&["log", "--format=%H %an"]);
    (tree, format!("{refs:?}{log:?}"), home)
}

/// Every attempt by a skill of either kind is refused, and changes nothing.
fn nothing_succeeds(sandbox: &str, level: u32) {
    let attempts = attempts();
    let skill = |kind: &str, keys: &str, nth: usize| {
        let text = trying(attempts[nth]);
        format!("  - {{id: {kind}-{nth}, description: d, {keys}sandbox: {sandbox}, run: {text}}}\n")
    };
    let numbers = || 0..attempts.len();
    let mut skills: Vec<String> = numbers().map(|nth| skill("read", "", nth)).collect();
    skills.extend(numbers().map(|nth| skill("write", "mutating: true, ", nth)));
    skills.push(PAIR.to_owned());
    let workspace = bed(&skills.concat());
    let daemon = Daemon::start(&workspace);
    leave_trees(&workspace);
    run(&workspace, "read-0");
    let before = belongings(&workspace);
    let mut succeeded = Vec::new();
    for kind in ["read", "write"] {
        for (nth, attempt) in attempts.iter().enumerate() {
            let detail = run(&workspace, &format!("{kind}-{nth}"));
            let harmless = level == 2 && HARMLESS_IN_A_CONTAINER.contains(attempt);
            if outcome(&detail) != "failed" && !harmless {
                succeeded.push(format!(
                    "{kind}: {attempt}: {}",
                    detail["summary"]["outcome"]
                ));
            }
            let reached = &detail["attempts"][0]["execution"]["sandbox_level"];
            assert_eq!(reached, level, "{attempt}: {detail}");
        }
    }
    assert!(succeeded.is_empty(), "{succeeded:#?}");
    assert_eq!(before, belongings(&workspace));
    daemon.stop();
}

#[test]
fn nothing_that_either_kind_of_skill_tries_succeeds() {
    if walls_or_skip() {
        nothing_succeeds("required", 1);
    }
}

#[test]
fn nothing_of_it_succeeds_in_a_container_either() {
    if containers_or_skip() {
        nothing_succeeds("private", 2);
    }
}

#[test]
fn in_a_container_home_and_temporary_files_are_its_own() {
    if !containers_or_skip() {
        return;
    }
    let workspace = bed(r##"
  - id: own
    description: d
    sandbox: private
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: 'test "$(ls -A $HOME)" = "" && test ! -e /tmp/workspace-probe && echo x > $HOME/x && echo x > /tmp/x && echo x > $TMPDIR/x && test "$(ls /proc | grep -c "^[0-9]")" -lt 9 && cat tracked.txt > /dev/null && ! chmod 600 tracked.txt && echo "# done" > {r}'
    verification: [{command: 'grep -q done {r}'}]
  - id: granted
    description: d
    sandbox: {level: private, write: [~/.cache], reads: [/, ~/.ssh]}
    run: 'cat $HOME/.ssh/id && echo own >> $HOME/.cache/new'
  - id: change
    description: d
    mutating: true
    sandbox: {level: private, network: none}
    run: 'echo x > own.txt && git add own.txt && git commit -q -m own && git log --oneline && echo y >> tracked.txt && test "$(grep -c : /proc/net/dev)" = 1'
  - {id: ends, description: d, sandbox: private, run: 'kill -9 $$'}
  - {id: code, description: d, sandbox: private, run: [/bin/sh, -c, 'exit 7']}
  - {id: stays, description: d, sandbox: private, timeout: 1s, run: 'setsid sleep 100000 & sleep 100000'}
"##);
    let daemon = Daemon::start(&workspace);
    for skill in ["own", "granted", "change"] {
        let detail = run(&workspace, skill);
        assert_eq!(outcome(&detail), "succeeded", "{skill}: {detail}");
        let level = &detail["attempts"][0]["execution"]["sandbox_level"];
        assert_eq!(level, 2, "{skill}: {detail}");
    }
    assert_eq!(workspace.read("reports/r.md").as_deref(), Some("# done\n"));
    assert_eq!(workspace.read("own.txt").as_deref(), Some("x\n"));
    assert!(!workspace.home.join("x").exists());
    assert!(workspace.home.join(".cache/new").exists());
    for (skill, code) in [("ends", 137), ("code", 7)] {
        let ended = &run(&workspace, skill)["attempts"][0]["execution"]["ended"];
        assert_eq!(ended["code"], code, "{skill}: {ended}");
    }
    assert_eq!(outcome(&run(&workspace, "stays")), "timed_out");
    daemon.stop();
}

/// What is refused looks like a matter of modes; whoever wrote the skill is told what it may be.
#[test]
fn the_default_is_level_1_and_a_refusal_says_how_to_grant() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(
        "  - {id: cache, description: d, run: 'echo x >> $HOME/.cache/kept'}\n  - {id: free, description: d, sandbox: off, run: 'echo x >> $HOME/.cache/kept'}\n",
    );
    let refused = workspace.run(&["run", "cache"]).expect_code(1);
    assert!(refused.stdout.contains("sandbox (level 1)"), "{refused:?}");
    let shown = workspace.run(&["show", "latest"]).stdout;
    assert!(shown.contains("sandbox level 1"), "{shown}");
    let free = run(&workspace, "free");
    assert_eq!(outcome(&free), "succeeded");
    assert_eq!(free["attempts"][0]["execution"]["sandbox_level"], 0);
    let shown = workspace.run(&["skill", "show", "free"]).stdout;
    assert!(
        shown.contains("sandbox") && shown.contains("off"),
        "{shown}"
    );
    workspace.write(
        "workerctl.yaml",
        "sandbox: {level: required, write: [~/.cache]}\n",
    );
    let granted = run(&workspace, "cache");
    assert_eq!(outcome(&granted), "succeeded", "{granted}");
    workspace.write("workerctl.yaml", "sandbox: loose\n");
    let wrong = workspace.run(&["check"]).expect_code(4);
    assert!(wrong.stdout.contains("workerctl.yaml:1"), "{wrong:?}");
}

#[test]
fn what_leads_to_the_engines_own_is_refused_before_anything_starts() {
    let workspace = bed(r"
  - {id: above, description: d, sandbox: {write: [/]}, run: 'true'}
  - {id: state, description: d, sandbox: {write: [~/../state]}, run: 'true'}
  - {id: reads, description: d, sandbox: {reads: [~/link]}, run: 'true'}
  - {id: linked, description: d, sandbox: {write: [~/git]}, run: 'true'}
");
    std::os::unix::fs::symlink(workspace.state(), workspace.home.join("link")).unwrap();
    std::os::unix::fs::symlink(workspace.root.join(".git"), workspace.home.join("git")).unwrap();
    let daemon = Daemon::start(&workspace);
    for skill in ["above", "reads", "linked"] {
        let refused = workspace.run(&["run", skill, "--json"]).expect_code(4);
        assert_eq!(refused.refusal(), "sandbox_grant", "{skill}");
        for said in [
            "never granted",
            "workers/w/worker.yaml:",
            "grant another directory",
        ] {
            assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        }
    }
    workspace.run(&["check"]).expect_code(4);
    daemon.stop();
}

/// Without walls the same attempts do what they say: so it is the walls that refuse them. What the socket refuses it
/// refuses here too.
#[test]
fn without_walls_the_list_says_what_succeeds() {
    let mut refused = Vec::new();
    for attempt in attempts() {
        let text = trying(attempt);
        let workspace = bed(&format!(
            "  - {{id: s, description: d, sandbox: off, run: {text}}}\n  - {{id: change, description: d, mutating: true, run: 'true'}}\n"
        ));
        if attempt.contains("/trees/") {
            run(&workspace, "change");
        }
        if outcome(&run(&workspace, "s")) != "succeeded" {
            refused.push(attempt);
        }
    }
    println!("refused without walls: {refused:#?}");
    // Whether the last one is refused is a matter of privileges.
    assert!(REFUSED_ANYWAY[..3].iter().all(|one| refused.contains(one)));
    refused.retain(|attempt| !REFUSED_ANYWAY.contains(attempt));
    refused.retain(|attempt| *attempt != TRACE || may_trace());
    assert!(refused.is_empty(), "{refused:#?}");
}
