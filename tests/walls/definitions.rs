//! Results that change what later runs and agents may do: definitions under each of their names, and protected files.

use std::os::unix::fs::symlink;

use crate::walls::{bed, outcome, run};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

/// Ways to change a definition; of each, a text and whether it is one.
const WAYS: [(&str, &str); 32] = [
    ("a linked worker", "echo x >> elsewhere/lw/worker.yaml"),
    ("its removal", "git rm -q elsewhere/lw/worker.yaml"),
    ("a file next to it", "echo x > elsewhere/lw/lib.sh"),
    ("a link to a worker", "ln -sfn ../other workers/lw"),
    (
        "a new worker behind a link",
        "mkdir collection/n; echo x > collection/n/worker.yaml",
    ),
    (
        "a new skill behind a link",
        "mkdir -p collection/skills; echo x > collection/skills/x.md",
    ),
    ("a link behind a link", "ln -s ../elsewhere collection/n"),
    (
        "what a link to nothing leads to",
        "mkdir missing; echo x > missing/worker.yaml",
    ),
    ("that as a link", "ln -s elsewhere missing"),
    ("`file`", "echo x >> shared/fil.md"),
    ("its removal", "git rm -q shared/fil.md"),
    ("its new name", "git mv shared/fil.md shared/x.md"),
    ("its mode", "chmod +x shared/fil.md"),
    ("a link in its place", "ln -sf other.md shared/fil.md"),
    (
        "a link in the place of its directory",
        "mv shared moved; ln -s moved shared",
    ),
    ("its name in another case", "echo x > shared/FIL.md"),
    (
        "a file that is named and missing",
        "echo x > shared/later.md",
    ),
    ("`script`", "echo x >> scripts/go.sh"),
    ("`script` through a link", "echo x >> scripts/linked.sh"),
    ("a link on the way to a script", "ln -sfn elsewhere tools"),
    ("a hook's script", "echo x >> hooks/hook.sh"),
    ("a script that tells", "echo x >> hooks/tell.py"),
    ("the command of a secret", "echo x > hooks/secret"),
    ("a check without a sandbox", "echo x > hooks/check.sh"),
    (
        "a directory of workers behind a link",
        "mkdir -p vendor/a/workers/x; echo x > vendor/a/workers/x/worker.yaml",
    ),
    ("a link on the way to workers", "ln -s ../vendor packages/b"),
    (
        "a submodule on the way to workers",
        "b=$(git rev-parse HEAD); git update-index --add --cacheinfo 160000,$b,packages/c; git commit -q -m a; mkdir -p packages/c",
    ),
    ("a skill root", "echo x >> library/one/SKILL.md"),
    ("a file of a root's skill", "echo x > library/one/more.md"),
    ("a linked skill of a root", "echo x >> store/two/SKILL.md"),
    (
        "a link in the place of a family of skills",
        "ln -s /tmp .claude",
    ),
    (
        "the configuration in another case",
        "echo x > WorkerCtl.yaml",
    ),
];

/// Files next to definitions that are none.
const FREE: &str = "echo x > collection/data.txt; echo x > shared/other.md; mkdir vendor/a; echo x > vendor/a/lib; echo x > tool.sh";

fn skill(id: &str, more: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!("  - {{id: {id}, description: d, mutating: true{more}, run: {text}}}\n")
}

fn linked(skills: &str) -> Workspace {
    let named = "  - {id: fil, file: ../../shared/fil.md}\n  - {id: later, file: ../../shared/later.md}\n  \
        - {id: go, description: d, run: {script: ../../scripts/go.sh, interpreter: sh}}\n  \
        - {id: linked, description: d, run: {script: ../../tools/linked.sh, interpreter: sh}}\n  \
        - {id: secret, description: d, run: 'true', env: [{name: S, secret: {command: [hooks/secret]}}]}\n  \
        - {id: open, description: d, sandbox: off, run: 'true', verification: [{command: 'sh hooks/check.sh'}]}\n";
    let workspace = bed(&format!("{skills}{named}"));
    let page = "---\nskill: {id: fil, description: d, run: 'true'}\n---\n# x\n";
    let root = "---\nname: NAME\ndescription: d\n---\nDo it.\n";
    for (path, text) in [
        (
            "elsewhere/lw/worker.yaml",
            "worker: {id: lw, name: l}\nskills: [{id: a, description: d, run: 'true'}]\n",
        ),
        ("collection/data.txt", "data\n"),
        ("shared/fil.md", page),
        ("scripts/go.sh", "true\n"),
        ("scripts/linked.sh", "true\n"),
        ("hooks/hook.sh", "true\n"),
        ("hooks/tell.py", "\n"),
        ("packages/plain/readme", "x\n"),
        ("library/one/SKILL.md", &root.replace("NAME", "one")),
        ("store/two/SKILL.md", &root.replace("NAME", "two")),
        (
            "workerctl.yaml",
            "workers: {paths: [workers, 'packages/*/workers']}\nskills: {roots: [library]}\n\
             hooks: {post_commit: [{command: 'A=1 sh -e hooks/hook.sh'}]}\nnotify: {on_failure: 'exec python3 hooks/tell.py'}\n",
        ),
    ] {
        workspace.write(path, text);
    }
    for (target, link) in [
        ("../elsewhere/lw", "workers/lw"),
        ("../collection", "workers/many"),
        ("../missing", "workers/gone"),
        ("scripts", "tools"),
        ("../vendor/a", "packages/a"),
        ("../store/two", "library/two"),
    ] {
        symlink(target, workspace.root.join(link)).unwrap();
    }
    workspace.commit_all("links");
    workspace
}

#[test]
fn a_definition_is_changed_unseen_under_none_of_its_names() {
    let mut skills: String = WAYS
        .iter()
        .enumerate()
        .map(|(nth, (_, text))| skill(&format!("s{nth}"), "", text))
        .collect();
    skills += &skill("free", "", FREE);
    let workspace = linked(&skills);
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let mut landed = Vec::new();
    for (nth, (way, _)) in WAYS.iter().enumerate() {
        let shown = run(&workspace, &format!("s{nth}"));
        let failure = &shown["summary"]["outcome"]["failure"];
        if failure["code"] != "definitions_changed" {
            landed.push(format!("{way}: {}", shown["summary"]["outcome"]));
        }
    }
    assert!(landed.is_empty(), "{landed:#?}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    let free = run(&workspace, "free");
    assert_eq!(outcome(&free), "succeeded", "{free:#}");
    daemon.stop();
}

/// What a run may write in the checkout is no result that could be compared.
#[test]
fn a_directory_that_holds_a_definition_is_not_granted() {
    let refused = [
        "shared",
        "elsewhere",
        "collection",
        "scripts",
        "hooks",
        "store/two",
        "vendor/a",
        "missing",
    ];
    let grant = |(nth, path): (usize, &&str)| {
        format!("  - {{id: g{nth}, description: d, sandbox: {{write: [{path}]}}, run: 'true'}}\n")
    };
    let mut skills: String = refused.iter().enumerate().map(grant).collect();
    skills += "  - {id: free, description: d, sandbox: {write: [cache]}, run: 'true'}\n";
    let workspace = linked(&skills);
    std::fs::create_dir(workspace.root.join("cache")).unwrap();
    for (nth, path) in refused.iter().enumerate() {
        let done = workspace.run(&["run", &format!("g{nth}"), "--json"]);
        assert_eq!(done.expect_code(4).refusal(), "sandbox_grant", "{path}");
    }
    assert_eq!(outcome(&run(&workspace, "free")), "succeeded");
}

/// The set in force counts: what became a definition since the run was recorded is one.
#[test]
fn a_kept_result_that_has_become_a_definition_does_not_land() {
    let workspace = bed(&skill(
        "w",
        "",
        "echo x >> tracked.txt; mkdir shared; echo x > shared/new.md",
    ));
    workspace.write("workerctl.yaml", "land_wait: 10ms\n");
    workspace.commit_all("wait");
    workspace.write("tracked.txt", "edited\n");
    let shown = run(&workspace, "w");
    assert_eq!(
        shown["summary"]["outcome"]["failure"]["code"], "checkout_dirty",
        "{shown:#}"
    );
    workspace.git(&["checkout", "-q", "tracked.txt"]);
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    workspace.write(
        "workers/w/worker.yaml",
        &format!("{worker}  - {{id: n, file: ../../shared/new.md}}\n"),
    );
    let id = shown["summary"]["run"].as_str().unwrap();
    let refused = workspace.run(&["land", id]);
    let said = refused.stdout.clone() + &refused.stderr;
    assert!(
        refused.code != 0 && said.contains("shared/new.md") && said.contains("defines what is run"),
        "{said}"
    );
    assert!(!workspace.root.join("shared/new.md").exists());
}

/// Ways to bring a protected file into a result.
const PROTECTED: [(&str, &str); 20] = [
    ("a new one", "mkdir .cursor; echo x > .cursor/rules"),
    ("in any directory", "mkdir -p a/b; echo x > a/b/CLAUDE.md"),
    ("in another case", "echo x > Agents.MD"),
    (
        "its directory in another case",
        "mkdir -p .GitHub/Workflows; echo x > .GitHub/Workflows/x.yml",
    ),
    (
        "a commit of the run",
        "mkdir -p .github/workflows; echo x > .github/workflows/x.yml; git add -A; git commit -q -m x",
    ),
    ("a merge", "git merge -q --no-edit side"),
    ("a change", "echo x >> GEMINI.md"),
    ("a removal", "git rm -q GEMINI.md"),
    ("a rename from it", "git mv GEMINI.md g.md"),
    ("a rename to it", "git mv tracked.txt .mcp.json"),
    ("a link", "ln -s /tmp .cursor"),
    ("a link above it", "ln -s /tmp .github"),
    ("a file in its place", "echo x > .husky"),
    (
        "a submodule",
        "b=$(git rev-parse HEAD); git update-index --add --cacheinfo 160000,$b,.codex; git commit -q -m a; mkdir -p .codex",
    ),
    (
        "attributes",
        "echo '* -diff' > src.gitattributes; mkdir q; mv src.gitattributes q/.gitattributes",
    ),
    (
        "submodules",
        "git config -f .gitmodules submodule.x.url /tmp",
    ),
    ("a pipeline", "echo x > .gitlab-ci.yml"),
    ("hooks", "echo x > .pre-commit-config.yaml"),
    (
        "a pattern of the configuration",
        "mkdir ci; echo x > ci/run",
    ),
    (
        "what it excepts, but for another",
        "mkdir -p docs/AGENTS.md.d .gemini; echo x > .gemini/settings.json",
    ),
];

#[test]
fn a_protected_file_is_changed_only_where_a_person_looks_first() {
    let mut skills: String = PROTECTED
        .iter()
        .enumerate()
        .map(|(nth, (_, text))| skill(&format!("s{nth}"), "", text))
        .collect();
    skills += &skill("asks", ", approval_required: true", "echo x >> GEMINI.md");
    skills += &skill("excepted", "", "mkdir -p docs; echo x > docs/AGENTS.md");
    skills += &skill("free", ", sandbox: off", "echo x >> GEMINI.md");
    skills += "  - {id: writes, description: d, run: 'echo x > {o}', interface: {outputs: [{name: o, destination: AGENTS.md}]}}\n";
    let workspace = bed(&skills);
    workspace.write(
        "workerctl.yaml",
        "protected_files: [/ci/, '!docs/AGENTS.md']\n",
    );
    workspace.write("GEMINI.md", "g\n");
    workspace.commit_all("protected");
    workspace.git(&["checkout", "-q", "-b", "side"]);
    workspace.write("CLAUDE.md", "c\n");
    workspace.commit_all("side");
    workspace.git(&["checkout", "-q", "main"]);
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let names: Vec<String> = (0..PROTECTED.len()).map(|nth| format!("s{nth}")).collect();
    let outputs = [("writes", "an output")];
    let rows = names
        .iter()
        .map(String::as_str)
        .zip(PROTECTED.map(|(way, _)| way));
    let mut landed = Vec::new();
    for (skill, way) in rows.chain(outputs) {
        let shown = run(&workspace, skill);
        let failure = &shown["summary"]["outcome"]["failure"];
        let message = failure["message"].as_str().unwrap_or_default();
        if failure["code"] != "protected_files" || !message.contains("approval_required") {
            landed.push(format!("{way}: {}", shown["summary"]["outcome"]));
        }
    }
    assert!(landed.is_empty(), "{landed:#?}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    assert!(!workspace.root.join("AGENTS.md").exists());
    assert_eq!(
        run(&workspace, "asks")["summary"]["phase"],
        "awaiting_approval"
    );
    for skill in ["excepted", "free"] {
        let shown = run(&workspace, skill);
        assert_eq!(outcome(&shown), "succeeded", "{shown:#}");
    }
    daemon.stop();
    let said = workspace.run(&["check"]).stdout;
    assert!(
        said.contains("destination-protected") && said.contains("AGENTS.md"),
        "{said}"
    );
}
