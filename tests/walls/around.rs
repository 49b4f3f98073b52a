//! Ways around the sandbox that are no call of the kernel's: what is landed, published, inherited and shown.

use std::os::unix::fs::PermissionsExt;

use crate::walls::{bed, outcome, run, walls_or_skip};
use crate::workspace::daemon::Daemon;

/// A definition could say `sandbox: off`.
#[test]
fn definitions_land_only_where_a_person_looks_first() {
    let change = "mkdir -p workers/evil && echo 'worker: {id: evil}' > workers/evil/worker.yaml";
    let teach = "mkdir -p workspace/skills && echo '---' > workspace/skills/evil.md";
    let configure = "echo 'sandbox: off' > workerctl.yaml";
    let workspace = bed(&format!(
        "  - {{id: worker, description: d, mutating: true, run: \"{change}\"}}\n  - {{id: configuration, description: d, mutating: true, run: \"{configure}\"}}\n  - {{id: skill, description: d, mutating: true, run: \"{teach}\"}}\n  - {{id: asks, description: d, mutating: true, approval_required: true, run: \"{change}\"}}\n  - {{id: free, description: d, mutating: true, sandbox: off, run: \"{configure}\"}}\n"
    ));
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (skill, path) in [
        ("worker", "workers/evil/worker.yaml"),
        ("configuration", "workerctl.yaml"),
        ("skill", "workspace/skills/evil.md"),
    ] {
        let failure = &run(&workspace, skill)["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "definitions_changed", "{failure}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(path), "{message}");
        assert!(message.contains("approval_required"), "{message}");
    }
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    let asked = run(&workspace, "asks");
    assert_eq!(asked["summary"]["phase"], "awaiting_approval", "{asked}");
    assert_eq!(outcome(&run(&workspace, "free")), "succeeded");
    daemon.stop();
}

/// A shell's own descriptors are open in what it starts.
#[test]
fn nothing_is_inherited_from_who_started_the_engine() {
    let workspace = bed(
        "  - {id: reads, description: d, sandbox: off, run: 'cat <&9'}\n  - {id: walled, description: d, run: 'cat <&9'}\n",
    );
    for skill in ["reads", "walled"] {
        let mut shell = workspace.program("sh");
        let inner = workspace.workerctl(&["run", skill]);
        shell.args(["-c", "exec 9<$HOME/.ssh/id; exec \"$@\"", "sh"]);
        shell.arg(inner.get_program()).args(inner.get_args());
        let done = workspace.start(&mut shell).end();
        assert_eq!(done.code, 1, "{done:?}");
        assert!(!done.stdout.contains("key"), "{done:?}");
    }
}

/// Whoever executed it would become the engine's user.
#[test]
fn a_published_output_keeps_no_bit_that_changes_the_user() {
    if !walls_or_skip() {
        return;
    }
    // The sandbox refuses these bits.
    let workspace = bed(
        "  - {id: sly, description: d, sandbox: off, interface: {outputs: [{name: r, destination: out/sh}]}, run: 'echo x > {r}; chmod 6777 {r}'}\n",
    );
    assert_eq!(outcome(&run(&workspace, "sly")), "succeeded");
    let mode = std::fs::metadata(workspace.root.join("out/sh")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7777, 0o775);
}

/// Root reads it all the same, and would publish what its owner cannot read.
#[test]
fn a_published_output_can_be_read_by_its_owner() {
    if !walls_or_skip() || !rustix::process::geteuid().is_root() {
        return;
    }
    let workspace = bed(
        "  - {id: shut, description: d, interface: {outputs: [{name: r, destination: out/r}]}, run: 'echo x > {r}; chmod 0 {r}'}\n",
    );
    assert_eq!(outcome(&run(&workspace, "shut")), "succeeded");
    let mode = std::fs::metadata(workspace.root.join("out/r")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7777, 0o400);
}

#[test]
fn what_a_person_approves_is_shown_whole() {
    let run_text = "printf '*.sh -diff\\n' > .gitattributes; echo EVIL-LINE > s.sh; git add -A; GIT_AUTHOR_NAME=Mallory git commit -q -m 'all mine'; echo TAKEN-BACK > gone.txt; git add -A; git commit -q -m more; git rm -q gone.txt; rm tracked.txt; ln -s /etc/passwd tracked.txt";
    let text = serde_json::to_string(run_text).unwrap();
    let workspace = bed(&format!(
        "  - {{id: sly, description: d, mutating: true, approval_required: true, sandbox: {{write: [~/.cache], unix_sockets: true}}, run: {text}}}\n"
    ));
    let asked = run(&workspace, "sly");
    assert_eq!(asked["summary"]["phase"], "awaiting_approval", "{asked}");
    let diff = workspace.run(&["diff", "latest"]).expect_code(0).stdout;
    for seen in [
        "+EVIL-LINE",
        "Author: Mallory",
        "all mine",
        "+TAKEN-BACK",
        "-as committed",
        "+/etc/passwd",
    ] {
        assert!(diff.contains(seen), "{seen}: {diff}");
    }
    let shown = workspace.run(&["show", "latest"]).stdout;
    assert!(
        shown.contains("auto; writes ~/.cache; Unix sockets"),
        "{shown}"
    );
}

#[test]
fn the_file_of_a_secret_is_read_by_no_command() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(
        "  - {id: paying, description: d, env: [{name: KEY, secret: {file: ~/paid/key}}], run: 'test \"$KEY\" = hunter2-hunter2 && ! cat \"$HOME/paid/key\"'}\n  - {id: other, description: d, run: '! cat \"$HOME/paid/key\"'}\n  - {id: near, description: d, env: [{name: KEY, secret: {file: ~/paid/key}}], sandbox: {write: [~/paid]}, run: 'true'}\n",
    );
    std::fs::create_dir(workspace.home.join("paid")).unwrap();
    std::fs::write(workspace.home.join("paid/key"), "hunter2-hunter2\n").unwrap();
    for skill in ["paying", "other"] {
        assert_eq!(outcome(&run(&workspace, skill)), "succeeded", "{skill}");
    }
    let refused = workspace.run(&["run", "near", "--json"]).expect_code(4);
    assert_eq!(refused.refusal(), "sandbox_grant");
}

/// A directory of programs is part of the grant that builds need.
#[test]
fn no_program_that_others_execute_is_replaced_by_a_grant() {
    if !walls_or_skip() {
        return;
    }
    let skill = |id: &str, level: &str| {
        format!(
            "  - {{id: {id}, description: d, sandbox: {{level: {level}, write: [~/.cargo]}}, run: 'echo x > \"$HOME/.cargo/registry/f\" && echo x >> \"$HOME/.cargo/lock\" && ! echo x > \"$HOME/.cargo/bin/git\" && ! mv \"$HOME/.cargo/bin\" \"$HOME/.cargo/registry/\"'}}\n"
        )
    };
    let levels = crate::walls::levels::sandboxes();
    let skills: String = levels.iter().map(|level| skill(level, level)).collect();
    let workspace = bed(&skills);
    for path in [".cargo/bin", ".cargo/registry"] {
        std::fs::create_dir_all(workspace.home.join(path)).unwrap();
    }
    std::fs::write(workspace.home.join(".cargo/lock"), "").unwrap();
    let path = std::env::var("PATH").unwrap();
    for level in &levels {
        let mut command = workspace.workerctl(&["run", level, "--json"]);
        let bin = workspace.home.join(".cargo/bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        let detail = workspace.start(&mut command).end().value();
        assert_eq!(outcome(&detail), "succeeded", "{level}: {detail}");
        assert!(!bin.join("git").exists(), "{level}");
    }
}

/// A typing error must not let every run read what the definition names.
#[test]
fn the_file_of_a_secret_stays_hidden_while_its_definition_is_broken() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(
        "  - {id: looks, description: d, run: '! cat \"$HOME/keys/typo\" && ! cat \"$HOME/keys/quote\" && ! cat \"$HOME/keys/agent\"'}\n",
    );
    std::fs::create_dir(workspace.home.join("keys")).unwrap();
    for name in ["typo", "quote", "agent"] {
        std::fs::write(workspace.home.join("keys").join(name), "hunter2-hunter2\n").unwrap();
    }
    workspace.worker(
        "v",
        "  - {id: typo, description: d, timeout: xyzzy, env: [{name: K, secret: {file: ~/keys/typo}}], run: 'true'}\n  - {id: agent, description: d, agent: {cli: claude, key: 'file:~/keys/agent'}, instructions: Say hello.}\n",
    );
    workspace.worker(
        "u",
        "  - {id: quote, description: d, env: [{name: K, secret: {file: ~/keys/quote}}], run: 'true}\n",
    );
    let detail = run(&workspace, "looks");
    assert_eq!(outcome(&detail), "succeeded", "{detail}");
}

#[test]
fn what_holds_something_never_granted_is_not_granted_either() {
    let skill = |id: &str, path: &str| {
        format!("  - {{id: {id}, description: d, sandbox: {{write: [{path}]}}, run: 'true'}}\n")
    };
    let mut rows = vec![
        ("repository", "~/other", "repository's"),
        ("threads", "workspace/threads", "definitions, logs"),
        ("skills", ".claude", "definitions, logs"),
        ("home", "~/", "contains `~/.ssh`"),
        ("config", "~/.config", "contains `~/.config/gh`"),
        ("target", "~/dots", "contains `~/.netrc`"),
        ("link", "~/mail", "contains `~/mail/key`"),
        ("model", "~/keys", "contains `~/keys/k`"),
    ];
    if std::fs::File::open("/etc/shadow").is_ok() {
        rows.push(("machine", "/etc", "contains `/etc/"));
    }
    let granted = [
        ("named", "~/.ssh"),
        ("cargo", "~/.cargo"),
        ("key", "~/keys/k"),
    ];
    let refused = rows.iter().map(|(id, path, _)| skill(id, path));
    let refused: String = refused.collect();
    let workspace = bed(&(refused + &granted.map(|(id, path)| skill(id, path)).concat()));
    std::fs::create_dir_all(workspace.home.join("other/.git")).unwrap();
    for path in [
        ".config/gh/hosts.yml",
        ".cargo/credentials.toml",
        "dots/netrc",
        "keys/k",
        "key",
        "mail/kept",
    ] {
        let path = workspace.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "key\n").unwrap();
    }
    for (target, link) in [("dots/netrc", ".netrc"), ("key", "mail/key")] {
        let target = workspace.home.join(target);
        std::os::unix::fs::symlink(target, workspace.home.join(link)).unwrap();
    }
    let model = |name: &str, path: &str| {
        format!("{name}: {{provider: anthropic, model: m, key: 'file:{path}'}}")
    };
    let models = [model("a", "~/keys/k"), model("b", "~/mail/key")].join(", ");
    workspace.write("workerctl.yaml", &format!("models: {{{models}}}\n"));
    for (skill, _, why) in rows {
        let refused = workspace.run(&["run", skill, "--json"]).expect_code(4);
        assert_eq!(refused.refusal(), "sandbox_grant", "{skill}");
        assert!(refused.stderr.contains(why), "{why}: {refused:?}");
    }
    for (skill, _) in granted {
        assert_eq!(outcome(&run(&workspace, skill)), "succeeded", "{skill}");
    }
}
