//! Every case at both levels, by a skill of either kind, as this user and as an ordinary one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use workerctl::engine::hidden;

use crate::walls::{bed, cases, containers_or_skip, furnish, outcome, run, walls_or_skip};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Done, Workspace, skip};

/// Who the engine runs as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum User {
    /// This process's own user.
    Own,
    /// One without privileges, which only root can become.
    Ordinary,
}

/// A number that no account has.
const ORDINARY: &str = "64123";

/// Names of files that the configuration and workers of these tests name, below `~/keys`.
const KEYS: [&str; 7] = [
    "token", "model", "webhook", "server", "secret", "broken", "program",
];

/// One thing to try.
pub(crate) struct Case {
    text: String,
    /// Whether it may succeed in a container, where it changes nothing outside.
    harmless: bool,
}

fn cases_of(lists: &[&[&str]]) -> Vec<Case> {
    let case = |text: &str| Case {
        text: text.to_owned(),
        harmless: cases::HARMLESS_IN_A_CONTAINER.contains(&text),
    };
    lists.concat().into_iter().map(case).collect()
}

fn all_cases() -> Vec<Case> {
    let mut found = cases_of(&[
        &cases::CHANGES,
        &cases::REFUSED_ANYWAY,
        &cases::READS,
        &cases::WRITES,
        &cases::PROCESSES,
    ]);
    let calls = cases::of_calls().into_iter().map(|(text, harmless)| Case {
        text: format!("cd $TMPDIR && {text}"),
        harmless,
    });
    let perl = Command::new("perl").arg("-v").output().is_ok();
    if !perl {
        skip("system calls: there is no perl");
    }
    found.extend(calls.filter(|_| perl));
    found
}

/// The variables of the engine that move secrets to other places, or name them.
fn variables(home: &Path) -> Vec<(&'static str, PathBuf)> {
    let moved = hidden::RELOCATING.map(|(name, _)| (name, home.join("moved").join(name)));
    let named = hidden::NAMING.map(|name| (name, home.join("named").join(name)));
    moved.into_iter().chain(named).collect()
}

/// Every file of the tables, as it lies for this workspace.
fn credentials(workspace: &Workspace) -> Vec<PathBuf> {
    let home = &workspace.home;
    let mut found: Vec<PathBuf> = hidden::IN_HOME.map(|name| home.join(name)).to_vec();
    for (variable, place) in hidden::RELOCATING {
        let within = hidden::IN_HOME.into_iter().map(Path::new);
        let within = within.filter_map(|name| name.strip_prefix(place).ok());
        found.extend(within.map(|name| home.join("moved").join(variable).join(name)));
    }
    found.extend(hidden::NAMING.map(|name| home.join("named").join(name)));
    let runtime = home.parent().unwrap().join("run");
    found.extend(hidden::IN_RUNTIME.map(|name| runtime.join(name)));
    found.extend(KEYS.map(|name| home.join("keys").join(name)));
    found
}

/// Makes each of them, with something to find in it.
fn write_credentials(workspace: &Workspace) {
    for path in credentials(workspace) {
        let is_directory = path.is_dir() || path.ends_with("workerctl");
        let path = if is_directory { path.join("key") } else { path };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "hidden-hidden-hidden\n").unwrap();
    }
    let configuration = "mcp: {http: {token_file: ~/keys/token}}
models: {m: {provider: anthropic, model: m, key: 'file:~/keys/model'}}
toolsets: {t: {mcp: {url: 'http://127.0.0.1:1/mcp', key: 'file:~/keys/server'}}}
agent: {cli: codex, key: 'file:~/keys/program'}
";
    workspace.write("workerctl.yaml", configuration);
    let worker = |id: &str, file: &str| {
        format!(
            "worker: {{id: {id}, name: N, type: OpsWorker}}\nnotify: {{on_failure: {{webhook: 'file:~/keys/webhook'}}}}\nskills:\n  - {{id: s, description: d, env: [{{name: KEY, secret: {{file: ~/keys/{file}}}}}], run: 'true'}}\n"
        )
    };
    workspace.write("workers/keys/worker.yaml", &worker("keys", "secret"));
    workspace.write("workers/breaks/worker.yaml", &worker("breaks", "broken"));
}

/// A script that tries all of these and prints how each ended.
fn script(workspace: &Workspace, program: &Path, cases: &[Case]) -> String {
    let caller = workspace.root.join("workers/w/call.pl");
    let mut text = format!(
        "export E=$PPID C={} S={} T={} W={} N={}\nB=$TMPDIR n=0\n",
        workspace.root.display(),
        workspace.state().display(),
        trees(workspace).display(),
        program.display(),
        caller.display(),
    );
    text.push_str(
        r#"try() {
    n=$((n + 1))
    mkdir "$B/$n"
    TMPDIR=$B/$n timeout 60 sh -c "$1" > "$B/said" 2>&1 < /dev/null
    echo "case $n $? $(tail -n 1 "$B/said" | tr -cd '[:print:]' | cut -c 1-160)"
}
"#,
    );
    for case in cases {
        let quoted = case.text.replace('\'', r"'\''");
        writeln!(text, "try '{quoted}'").unwrap();
    }
    text
}

/// The engine's command for such a user.
fn workerctl(workspace: &Workspace, user: User, program: &Path, arguments: &[&str]) -> Done {
    let mut command = match user {
        User::Own => workspace.program(program.to_str().unwrap()),
        User::Ordinary => {
            let mut command = workspace.program("setpriv");
            let [uid, gid] = ["reuid", "regid"].map(|kind| format!("--{kind}={ORDINARY}"));
            command.args([&uid, &gid, "--clear-groups"]).arg(program);
            command
        }
    };
    command.arg("-C").arg(&workspace.root);
    command.arg("--state-dir").arg(workspace.state());
    command.args(arguments).envs(variables(&workspace.home));
    workspace.start(&mut command).end()
}

/// Gives everything of a workspace to the ordinary user.
fn give_away(workspace: &Workspace) {
    let base = workspace.home.parent().unwrap();
    let mut command = Command::new("chown");
    let done = command
        .arg("-R")
        .arg(format!("{ORDINARY}:{ORDINARY}"))
        .arg(base)
        .status();
    assert!(done.unwrap().success());
}

/// What became of each case: its number from 1, its exit code, and the last line that it printed.
fn results(workspace: &Workspace, user: User, program: &Path, skill: &str) -> Vec<(i32, String)> {
    let done = workerctl(workspace, user, program, &["run", skill, "--json"]);
    assert_eq!(
        outcome(&done.value()),
        "succeeded",
        "{user:?} {skill}: {done:?}"
    );
    let log = workerctl(workspace, user, program, &["logs", "latest"]).stdout;
    let lines = log.lines().filter_map(|line| line.split_once("case "));
    let result = |(_, line): (&str, &str)| {
        let mut words = line.splitn(3, ' ').skip(1);
        let code = words.next().unwrap().parse().unwrap();
        (code, words.next().unwrap_or_default().to_owned())
    };
    lines.map(result).collect()
}

/// Two mutating skills that wait for each other: afterwards there are two trees.
const PAIR: &str = "  - {id: one, description: d, mutating: true, parallel: true, sandbox: off, run: 'touch $HOME/one; until [ -e $HOME/two ]; do sleep 0.05; done'}\n  - {id: two, description: d, mutating: true, parallel: true, sandbox: off, run: 'touch $HOME/two; until [ -e $HOME/one ]; do sleep 0.05; done'}\n";

/// Where trees of runs lie: apart from the workspace if the state directory is in it.
fn trees(workspace: &Workspace) -> PathBuf {
    let outside = workspace.home.join(".local/state/workerctl");
    let found = std::fs::read_dir(outside).into_iter().flatten().flatten();
    let found = found.map(|entry| entry.path()).find(|path| path.is_dir());
    found.unwrap_or_else(|| workspace.state().join("trees"))
}

/// Leaves the trees of two runs, so that there is one that is not a run's own.
fn leave_trees(workspace: &Workspace) {
    let daemon = Daemon::start(workspace);
    let pair = ["one", "two"].map(|skill| workspace.submit(&[skill]));
    for run in pair {
        assert_eq!(outcome(&workspace.wait(&run).1), "succeeded");
    }
    for tree in ["1", "2"] {
        let tree = trees(workspace).join(tree);
        let shown = tree.display();
        assert!(tree.join("repository/tracked.txt").exists(), "{shown}");
    }
    daemon.stop();
}

/// Everything that cases are after: the checkout, its history, the home directory.
fn belongings(workspace: &Workspace) -> (String, String, Vec<(PathBuf, Vec<u8>)>) {
    let mut home = Vec::new();
    let mut directories = vec![workspace.home.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            // Trees of runs lie in some of them.
            let is_state = path.ends_with(".local") || path.ends_with("moved");
            if path.is_dir() && !is_state {
                directories.push(path);
            } else if path.is_dir() {
            } else {
                home.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    home.sort();
    let tree = format!("{:?}", workspace.tree());
    let safe = format!("safe.directory={}", workspace.root.display());
    let git = |words: &[&str]| workspace.git(&[&["-c", &safe], words].concat());
    let refs = git(&["for-each-ref", "refs/heads", "refs/tags"]);
    let log = git(&["log", "--format=%H %an"]);
    (tree, format!("{refs:?}{log:?}"), home)
}

/// A workspace with one skill for each kind, level and list of cases, ready for this user.
pub(crate) struct Ground {
    pub(crate) workspace: Workspace,
    program: PathBuf,
    user: User,
}

impl Ground {
    pub(crate) fn new(user: User, skills: &str, scripts: &[(&str, &[Case])]) -> Ground {
        // The state directory lies in the workspace by default, and elsewhere by choice.
        let workspace = match user {
            User::Own => Workspace::with_state_inside(),
            User::Ordinary => Workspace::new(),
        };
        furnish(&workspace, &format!("{skills}{PAIR}"));
        leave_trees(&workspace);
        let program = workspace.home.parent().unwrap().join("workerctl");
        let built = env!("CARGO_BIN_EXE_workerctl");
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).unwrap();
        }
        workspace.write("workers/w/call.pl", cases::CALLER);
        for (name, list) in scripts {
            let text = script(&workspace, &program, list);
            workspace.write(&format!("workers/w/{name}.sh"), &text);
        }
        write_credentials(&workspace);
        // Git does not follow what these tests write in its place.
        workspace.commit_all("cases");
        if user == User::Ordinary {
            give_away(&workspace);
        }
        Ground {
            workspace,
            program,
            user,
        }
    }

    pub(crate) fn run(&self, skill: &str) -> serde_json::Value {
        let (workspace, program) = (&self.workspace, &self.program);
        workerctl(workspace, self.user, program, &["run", skill, "--json"]).value()
    }

    fn results(&self, skill: &str) -> Vec<(i32, String)> {
        results(&self.workspace, self.user, &self.program, skill)
    }
}

/// The users that the engine can run as here.
pub(crate) fn users() -> Vec<User> {
    let root = rustix::process::geteuid().is_root();
    let setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !root || !setpriv {
        skip("an ordinary user: it takes root and setpriv");
        return vec![User::Own];
    }
    vec![User::Own, User::Ordinary]
}

/// Levels that can be had here, by the word that asks for them.
pub(crate) fn sandboxes() -> Vec<&'static str> {
    let mut found = Vec::new();
    if walls_or_skip() {
        found.push("required");
        if containers_or_skip() {
            found.push("private");
        }
    }
    found
}

fn skill(id: &str, keys: &str, sandbox: &str, script: &str) -> String {
    format!(
        "  - {{id: {id}, description: d, {keys}timeout: 10m, sandbox: {sandbox}, run: {{script: {script}.sh, interpreter: /bin/sh}}}}\n"
    )
}

fn no_case_succeeds(user: User) {
    let sandboxes = sandboxes();
    // A mutating skill differs in what it may write.
    let of_files = cases_of(&[&cases::CHANGES, &cases::READS]);
    let lists = [("read", all_cases()), ("write", of_files)];
    let mut skills = String::new();
    for sandbox in &sandboxes {
        for (kind, keys) in [("read", ""), ("write", "mutating: true, ")] {
            skills.push_str(&skill(&format!("{kind}-{sandbox}"), keys, sandbox, kind));
        }
    }
    let scripts = lists
        .each_ref()
        .map(|(kind, list)| (*kind, list.as_slice()));
    let ground = Ground::new(user, &skills, &scripts);
    let before = belongings(&ground.workspace);
    for (kind, list) in &lists {
        let mut refused = Vec::new();
        for sandbox in &sandboxes {
            let results = ground.results(&format!("{kind}-{sandbox}"));
            assert_eq!(results.len(), list.len(), "{kind} {sandbox}");
            let mut wrong = Vec::new();
            let mut of_level = BTreeSet::new();
            for (case, (code, said)) in list.iter().zip(results) {
                let is_name = user == User::Own && cases::NAMES.contains(&case.text.as_str());
                let is_harmless = match *sandbox {
                    "private" => case.harmless,
                    _ => is_name,
                };
                if code != 0 {
                    of_level.insert(case.text.clone());
                }
                // A call that fails for another reason proves nothing.
                let proves_nothing = code == 9 || code == 8 || code == 124;
                if (code == 0 || proves_nothing) && !is_harmless {
                    wrong.push(format!("{}: {code} {said}", case.text));
                }
            }
            assert!(wrong.is_empty(), "{user:?} {kind} {sandbox}: {wrong:#?}");
            refused.push(of_level);
        }
        if let [first, second] = &refused[..] {
            let harmless = list.iter().filter(|case| case.harmless);
            let harmless: BTreeSet<String> = harmless.map(|case| case.text.clone()).collect();
            let only_first: Vec<_> = first.difference(second).collect();
            let allowed = only_first.iter().all(|text| harmless.contains(*text));
            assert!(
                allowed,
                "level 1 refuses and level 2 allows: {only_first:#?}"
            );
        }
    }
    assert_eq!(before, belongings(&ground.workspace));
}

#[test]
fn no_escape_succeeds_at_any_level_for_the_users_own_engine() {
    if walls_or_skip() {
        no_case_succeeds(User::Own);
    }
}

#[test]
fn no_escape_succeeds_at_any_level_for_an_ordinary_user() {
    if walls_or_skip() && users().contains(&User::Ordinary) {
        no_case_succeeds(User::Ordinary);
    }
}

/// Files of keys lie wherever the configuration says, and the tables list where programs keep theirs.
#[test]
fn files_of_keys_and_credentials_are_read_at_no_level() {
    if !walls_or_skip() {
        return;
    }
    let sandboxes = sandboxes();
    for user in users() {
        let mut skills = skill("read-off", "", "'off'", "credentials");
        for sandbox in &sandboxes {
            skills.push_str(&skill(
                &format!("read-{sandbox}"),
                "",
                sandbox,
                "credentials",
            ));
        }
        // The paths are those of this workspace, so the script is written once it is there.
        let ground = Ground::new(user, &skills, &[]);
        let paths = credentials(&ground.workspace);
        let list: Vec<Case> = paths
            .iter()
            .map(|path| Case {
                text: format!("grep -r . '{}'", path.display()),
                harmless: false,
            })
            .collect();
        let text = script(&ground.workspace, &ground.program, &list);
        ground.workspace.write("workers/w/credentials.sh", &text);
        let readable = ground.results("read-off");
        assert_eq!(readable.len(), paths.len());
        for (path, (code, said)) in paths.iter().zip(readable) {
            assert_eq!(code, 0, "without a sandbox: {}: {said}", path.display());
        }
        for sandbox in &sandboxes {
            let results = ground.results(&format!("read-{sandbox}"));
            let read = paths
                .iter()
                .zip(results)
                .filter(|(_, (code, _))| *code == 0);
            let read: Vec<_> = read.map(|(path, _)| path).collect();
            assert!(read.is_empty(), "{user:?} {sandbox}: {read:#?}");
        }
    }
}

#[test]
fn a_network_of_none_refuses_all_families_and_protocols() {
    if !walls_or_skip() || workerctl::process::landlock_abi() < 4 {
        skip("it takes Landlock with TCP");
        return;
    }
    let list: Vec<Case> = cases::of_networks()
        .into_iter()
        .map(|text| Case {
            text,
            harmless: false,
        })
        .collect();
    let sandboxes = sandboxes();
    let skills = sandboxes.iter().map(|sandbox| {
        let map = format!("{{level: {sandbox}, network: none}}");
        skill(sandbox, "", &map, "networks")
    });
    let skills: String = skills.collect();
    for user in users() {
        let ground = Ground::new(user, &skills, &[("networks", &list)]);
        for sandbox in &sandboxes {
            for (case, (code, said)) in list.iter().zip(ground.results(sandbox)) {
                assert_eq!(code, 1, "{user:?} {sandbox}: {}: {said}", case.text);
            }
        }
    }
}

/// What the cases of a list come to without a sandbox, each list in a workspace of its own.
fn without_a_sandbox(list: &[Case]) -> Vec<(i32, String)> {
    let workspace = bed(&(skill("tries", "", "'off'", "cases")
        + "  - {id: change, description: d, mutating: true, run: 'true'}\n"));
    let needs_a_run = |case: &Case| case.text.contains("$T/") || case.text.contains("threads");
    if list.iter().any(needs_a_run) {
        run(&workspace, "change");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_workerctl"));
    let text = script(&workspace, program, list);
    workspace.write("workers/w/cases.sh", &text);
    results(&workspace, User::Own, program, "tries")
}

/// So it is the sandbox that refuses them. What the socket refuses, it refuses here too.
#[test]
fn without_a_sandbox_the_changes_succeed() {
    let mut refused = Vec::new();
    for text in cases::CHANGES {
        let results = without_a_sandbox(&cases_of(&[&[text]]));
        if results[0].0 != 0 {
            refused.push((text, results));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    // Whether mounting is refused is a matter of privileges.
    let anyway = without_a_sandbox(&cases_of(&[&cases::REFUSED_ANYWAY[..3]]));
    assert!(anyway.iter().all(|(code, _)| *code != 0), "{anyway:#?}");
}
