//! Where hidden files may lie, and what a container shows of the workspace.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixListener};

use workerctl::engine::hidden;

use crate::walls::levels::sandboxes;
use crate::walls::{bed, furnish, outcome, run, walls_or_skip};
use crate::workspace::{Workspace, eventually, skip};

/// Skills that are the same at each level, by names that end in it.
fn at_each_level(skill: impl Fn(&str) -> String) -> String {
    sandboxes().into_iter().map(skill).collect()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn a_state_directory_in_the_workspace_is_hidden_and_the_rest_is_shown() {
    let text = "cat tracked.txt link dir/inner > /dev/null && test \"$(readlink link)\" = tracked.txt && ! cat state/store/id && ! echo x > state/evil && ! echo x > new && ! mkdir sub && ! rm link && git log --oneline && echo x > exports/granted && ! ls ~/.ssh";
    let skills = at_each_level(|sandbox| {
        format!(
            "  - {{id: look-{sandbox}, description: d, sandbox: {{level: {sandbox}, write: [exports]}}, run: {}}}\n",
            quoted(text)
        )
    });
    let workspace = Workspace::with_state_inside();
    furnish(&workspace, &skills);
    for path in ["dir/inner", "exports/kept"] {
        workspace.write(path, "x\n");
    }
    symlink("tracked.txt", workspace.root.join("link")).unwrap();
    workspace.commit_all("more");
    for sandbox in sandboxes() {
        let detail = run(&workspace, &format!("look-{sandbox}"));
        assert_eq!(outcome(&detail), "succeeded", "{sandbox}: {detail}");
        assert_eq!(workspace.read("exports/granted").as_deref(), Some("x\n"));
        assert!(workspace.read("new").is_none());
        std::fs::remove_file(workspace.root.join("exports/granted")).unwrap();
    }
}

#[test]
fn the_documentation_lists_exactly_what_is_hidden() {
    let text = std::fs::read_to_string("docs/reference/sandbox.md").unwrap();
    let (_, rest) = text.split_once("<!-- hidden files -->").unwrap();
    let (table, _) = rest.split_once("<!-- end -->").unwrap();
    let listed: BTreeSet<String> = table
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    let in_home = hidden::IN_HOME.map(|name| format!("~/{name}"));
    let in_runtime = hidden::IN_RUNTIME.map(|name| format!("$XDG_RUNTIME_DIR/{name}"));
    let moved = hidden::RELOCATING.map(|(name, _)| name);
    let plain = [
        &hidden::OF_MACHINE[..],
        &hidden::OF_ROOT,
        &hidden::NAMING,
        &moved,
    ]
    .concat();
    let plain = plain.into_iter().map(str::to_owned);
    let hidden: BTreeSet<String> = in_home.into_iter().chain(in_runtime).chain(plain).collect();
    assert_eq!(listed, hidden);
}

/// A file of a key need not be there when the command starts.
#[test]
fn a_file_of_a_key_that_appears_later_is_hidden_too() {
    let text =
        "touch exports/started; until [ -e exports/go ]; do sleep 0.05; done; ! cat keys/late";
    let skills = at_each_level(|sandbox| {
        format!(
            "  - {{id: waits-{sandbox}, description: d, sandbox: {{level: {sandbox}, write: [exports]}}, run: {}}}\n",
            quoted(text)
        )
    });
    for sandbox in sandboxes() {
        let workspace = Workspace::with_state_inside();
        furnish(&workspace, &skills);
        for path in ["keys/other", "exports/kept"] {
            workspace.write(path, "x\n");
        }
        let key = workspace.root.join("keys/late");
        let model = format!(
            "models: {{m: {{provider: anthropic, model: m, key: 'file:{}'}}}}\n",
            key.display()
        );
        workspace.write("workerctl.yaml", &model);
        workspace.commit_all("more");
        let mut command = workspace.workerctl(&["run", &format!("waits-{sandbox}")]);
        let started = workspace.start(&mut command);
        eventually("the command starts", || workspace.read("exports/started"));
        std::fs::write(key, "key\n").unwrap();
        workspace.write("exports/go", "");
        let ended = started.end();
        assert_eq!(ended.code, 0, "{sandbox}: {ended:?}");
    }
}

/// A remote's address and the headers of requests hold passwords and tokens.
#[test]
fn passwords_of_the_repository_are_hidden_and_git_works_in_trees() {
    let hidden = "! grep -r hidden \"$WORKERCTL_WORKSPACE/.git/config\" \"$WORKERCTL_WORKSPACE/.git/modules\"";
    let tree = format!(
        "{hidden} && ! grep hidden .git/config && git log --oneline && test \"$(git config remote.origin.url)\" = https://example.com/r.git && touch new-$WORKERCTL_RUN && git add -A && git commit -q -m new"
    );
    let granted = "git -C \"$WORKERCTL_WORKSPACE\" log --oneline";
    let skills = at_each_level(|sandbox| {
        let read = format!(
            "  - {{id: read-{sandbox}, description: d, sandbox: {sandbox}, run: {}}}\n",
            quoted(hidden)
        );
        let write = format!(
            "  - {{id: write-{sandbox}, description: d, mutating: true, sandbox: {sandbox}, run: {}}}\n",
            quoted(&tree)
        );
        let named = format!(
            "  - {{id: named-{sandbox}, description: d, sandbox: {{level: {sandbox}, reads: [/, .git/config]}}, run: {}}}\n",
            quoted(granted)
        );
        read + &write + &named
    });
    let workspace = bed(&skills);
    for (name, value) in [
        (
            "remote.origin.url",
            "https://ada:hidden-1@example.com/r.git",
        ),
        (
            "http.https://example.com/.extraheader",
            "AUTHORIZATION: basic hidden-2",
        ),
    ] {
        workspace.git(&["config", name, value]);
    }
    workspace.write(".git/modules/a/b/HEAD", "ref: refs/heads/main\n");
    workspace.write(
        ".git/modules/a/b/config",
        "[remote \"o\"]\n\turl = https://ada:hidden-3@example.com/r.git\n",
    );
    for sandbox in sandboxes() {
        for kind in ["read", "write", "named"] {
            let detail = run(&workspace, &format!("{kind}-{sandbox}"));
            assert_eq!(outcome(&detail), "succeeded", "{kind} {sandbox}: {detail}");
        }
    }
}

/// A bind mount, or another mount of the same file system, gives a file another path.
#[test]
fn hidden_files_are_hidden_under_every_name() {
    let probe = std::process::Command::new("unshare")
        .args(["-m", "true"])
        .status();
    if !walls_or_skip() || !probe.is_ok_and(|status| status.success()) {
        skip("mounts: it takes root and unshare");
        return;
    }
    let text = "! cat /mnt/.ssh/id && cat /mnt/.cache/kept && ! cat /media/store/id";
    let skills = at_each_level(|sandbox| {
        format!(
            "  - {{id: look-{sandbox}, description: d, sandbox: {sandbox}, run: {}}}\n  - {{id: write-{sandbox}, description: d, sandbox: {{level: {sandbox}, write: [/media]}}, run: 'true'}}\n",
            quoted(text)
        )
    });
    let workspace = bed(&skills);
    workspace.run(&["status"]);
    let mounts =
        "mount --bind \"$HOME\" /mnt && mount --bind \"$HOME/../state\" /media && exec \"$@\"";
    let run_with_mounts = |skill: &str| {
        let inner = workspace.workerctl(&["run", skill, "--json"]);
        let mut command = workspace.program("unshare");
        command.args(["-m", "sh", "-c", mounts, "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        workspace.start(&mut command).end()
    };
    run(&workspace, "look-required");
    for sandbox in sandboxes() {
        let done = run_with_mounts(&format!("look-{sandbox}"));
        assert_eq!(outcome(&done.value()), "succeeded", "{sandbox}: {done:?}");
        let refused = run_with_mounts(&format!("write-{sandbox}")).expect_code(4);
        assert_eq!(refused.refusal(), "sandbox_grant", "{refused:?}");
    }
}

/// Sockets without a path are those of the whole machine.
#[test]
fn abstract_sockets_outside_are_refused_even_with_unix_sockets() {
    if !walls_or_skip() || workerctl::process::landlock_abi() < 6 {
        skip("it takes Landlock ABI 6");
        return;
    }
    let connect = "use Socket; socket(S, AF_UNIX, $ARGV[0] ? SOCK_DGRAM : SOCK_STREAM, 0) or exit 3; my $n = $ARGV[1]; $n =~ s/^@/\\0/; exit(connect(S, pack_sockaddr_un($n)) ? 0 : 1)";
    let workspace = bed("");
    let name = format!("workerctl-test-{}", std::process::id());
    let path = workspace.home.join("open");
    let abstract_address = |kind: &str| {
        use std::os::linux::net::SocketAddrExt;
        std::os::unix::net::SocketAddr::from_abstract_name(format!("{name}-{kind}")).unwrap()
    };
    let _stream = UnixListener::bind_addr(&abstract_address("0")).unwrap();
    let _datagrams = UnixDatagram::bind_addr(&abstract_address("1")).unwrap();
    let _with_path = UnixListener::bind(&path).unwrap();
    let text = format!(
        "perl -e '{connect}' 0 @{name}-0; test $? = 1 && {{ perl -e '{connect}' 1 @{name}-1; test $? = 1; }}"
    );
    let own = format!("perl -e '{connect}' 0 {}", path.display());
    let skills = at_each_level(|sandbox| {
        let sandboxed = |id: &str, text: &str| {
            format!(
                "  - {{id: {id}-{sandbox}, description: d, sandbox: {{level: {sandbox}, unix_sockets: true, reads: [/, ~/open]}}, run: {}}}\n",
                quoted(text)
            )
        };
        sandboxed("abstract", &text) + &sandboxed("path", &own)
    });
    workspace.write(
        "workers/w/worker.yaml",
        &format!("worker: {{id: w, name: W, type: OpsWorker}}\nskills:\n{skills}"),
    );
    for sandbox in sandboxes() {
        for kind in ["abstract", "path"] {
            let detail = run(&workspace, &format!("{kind}-{sandbox}"));
            assert_eq!(outcome(&detail), "succeeded", "{kind} {sandbox}: {detail}");
        }
    }
}

/// System V IPC goes with the grant of Unix sockets, and in a container it is the command's own.
#[test]
fn system_v_ipc_is_granted_with_unix_sockets() {
    if !walls_or_skip() {
        return;
    }
    let text = "perl -e 'my $i = shmget(0, 4096, 0600); defined $i or exit 1; shmctl($i, 0, 0)'";
    let granted = "{level: required, unix_sockets: true}";
    let workspace = bed(&format!(
        "  - {{id: refused, description: d, run: {0}}}\n  - {{id: granted, description: d, sandbox: {granted}, run: {0}}}\n  - {{id: own, description: d, sandbox: private, run: {0}}}\n",
        quoted(text)
    ));
    assert_eq!(outcome(&run(&workspace, "refused")), "failed");
    assert_eq!(outcome(&run(&workspace, "granted")), "succeeded");
    if sandboxes().contains(&"private") {
        assert_eq!(outcome(&run(&workspace, "own")), "succeeded");
    }
}

/// Those of root that reach beyond files; an inheritable or ambient one would survive what executes a program.
#[test]
fn commands_of_root_keep_few_capabilities() {
    const KEPT: u64 = 0b101_1111_1011;
    if !walls_or_skip() || !rustix::process::geteuid().is_root() {
        skip("capabilities: it takes root");
        return;
    }
    let text = "grep ^Cap /proc/self/status > exports/caps";
    let skills = at_each_level(|sandbox| {
        format!(
            "  - {{id: shows-{sandbox}, description: d, sandbox: {{level: {sandbox}, write: [exports]}}, run: {}}}\n",
            quoted(text)
        )
    });
    let workspace = bed(&skills);
    workspace.write("exports/kept", "");
    for sandbox in sandboxes() {
        for inheritable in [false, true] {
            let inner = workspace.workerctl(&["run", &format!("shows-{sandbox}"), "--json"]);
            let mut command = workspace.program("setpriv");
            if inheritable {
                let more = "caps=+net_raw,+sys_admin,+sys_ptrace";
                command.args([format!("--inh-{more}"), format!("--ambient-{more}")]);
            }
            command.arg(inner.get_program()).args(inner.get_args());
            let done = workspace.start(&mut command).end();
            assert_eq!(outcome(&done.value()), "succeeded", "{sandbox}: {done:?}");
            let found = workspace.read("exports/caps").unwrap();
            for line in found.lines() {
                let set = line.split_whitespace().last().unwrap();
                let set = u64::from_str_radix(set, 16).unwrap();
                assert_eq!(set & !KEPT, 0, "{sandbox} {inheritable}: {found}");
            }
        }
    }
}

/// The socket lies in the state directory, which a container hides.
#[test]
fn a_skill_that_may_ask_the_engine_reaches_it_at_each_level() {
    let program = env!("CARGO_BIN_EXE_workerctl");
    let skills = at_each_level(|sandbox| {
        format!(
            "  - {{id: asks-{sandbox}, description: d, workerctl: true, sandbox: {sandbox}, run: '{program} -C \"$WORKERCTL_WORKSPACE\" run w/asked && {program} -C \"$WORKERCTL_WORKSPACE\" runs'}}\n"
        )
    });
    let asked = "  - {id: asked, description: d, run: 'true'}\n";
    for workspace in [Workspace::new(), Workspace::with_state_inside()] {
        furnish(&workspace, &format!("{skills}{asked}"));
        for sandbox in sandboxes() {
            let detail = run(&workspace, &format!("asks-{sandbox}"));
            let log = workspace.run(&["logs", "latest"]).stdout;
            assert_eq!(outcome(&detail), "succeeded", "{sandbox}: {detail} {log}");
        }
    }
}
