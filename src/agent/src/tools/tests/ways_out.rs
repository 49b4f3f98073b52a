//! Every way out of the root, into what is hidden, and to what is no file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde_json::json;

use super::Rig;
use crate::tools::BuiltIn::{EditFile, Glob, Grep, ListDirectory, ReadFile, WriteFile};
use crate::tools::{Bounds, FileCall, perform};

const OUTSIDE: &str = "outside the working area";
const HIDDEN: &str = "off limits";
const GIT: &str = "git's own data";

fn with_links() -> Rig {
    let rig = Rig::new();
    let outside = rig.path("../outside");
    rig.file("a/b/file", "inside");
    for (path, target) in [
        ("out", "../outside"),
        ("out-file", "../outside/secret"),
        ("a/up", "../.."),
        ("a/b/back", "../../a/b"),
        ("twice", "out"),
        ("loop", "loop"),
        ("to-state", "state"),
        ("to-secret", "a/../state/secret"),
        ("a/to-git", "../.git"),
        ("nowhere", "not-there"),
        ("new-outside", "../outside/new"),
        ("to-file", "a/b/file"),
        ("proc", "/proc/self/root"),
    ] {
        rig.link(path, target);
    }
    rig.link("absolute", &outside);
    rig.link("absolute-inside", rig.path("a/b"));
    rig
}

/// Paths that no tool opens.
fn refused() -> Vec<(String, &'static str)> {
    let rows = [
        ("..", OUTSIDE),
        ("../outside/secret", OUTSIDE),
        ("a/../../outside/secret", OUTSIDE),
        ("/etc/passwd", OUTSIDE),
        ("/", OUTSIDE),
        ("out/secret", OUTSIDE),
        ("a/up/outside/secret", OUTSIDE),
        ("twice/secret", OUTSIDE),
        ("absolute/secret", OUTSIDE),
        ("proc/etc/passwd", OUTSIDE),
        ("loop/x", "leads through too many"),
        ("state/secret", HIDDEN),
        ("state/none", HIDDEN),
        ("state", HIDDEN),
        ("to-state/secret", HIDDEN),
        ("not-yet/x", HIDDEN),
        ("a/b/back/../../../state/secret", HIDDEN),
        ("a/b/back/../../state/secret", "does not exist"),
        (".git/config", GIT),
        (".git", GIT),
        (".GIT/config", GIT),
        ("a/.git", GIT),
        ("a/to-git/config", GIT),
    ];
    rows.map(|(path, problem)| (path.to_owned(), problem))
        .to_vec()
}

#[test]
fn no_path_leads_out_or_into_what_is_hidden() {
    let rig = with_links();
    for (path, problem) in refused() {
        rig.fails(ReadFile, json!({"path": path}), problem);
        rig.fails(ListDirectory, json!({"path": path}), problem);
        rig.fails(Glob, json!({"pattern": "*", "path": path}), problem);
        rig.fails(Grep, json!({"pattern": "s", "path": path}), problem);
        rig.fails(
            EditFile,
            json!({"path": path, "old_text": "secret", "new_text": "x"}),
            problem,
        );
        if problem != "does not exist" {
            rig.fails(WriteFile, json!({"path": path, "content": "x"}), problem);
        }
    }
    for path in ["state/secret", ".git/config", "../outside/secret"] {
        assert_eq!(rig.text(path), "secret");
    }
    assert_eq!(rig.names("../outside"), ["secret"]);
    assert_eq!(rig.names("state"), ["secret"]);
}

#[test]
fn links_are_followed_inside_but_not_written_through() {
    let rig = with_links();
    for path in ["to-file", "a/b/back/file", "absolute-inside/file"] {
        assert_eq!(rig.works(ReadFile, json!({"path": path})), "inside");
    }
    for (path, problem) in [
        ("out-file", OUTSIDE),
        ("to-secret", HIDDEN),
        ("loop", "leads through too many"),
        ("nowhere", "does not exist"),
    ] {
        rig.fails(ReadFile, json!({"path": path}), problem);
        rig.fails(Grep, json!({"pattern": "s", "path": path}), problem);
    }
    for path in [
        "to-file",
        "out-file",
        "to-secret",
        "loop",
        "nowhere",
        "new-outside",
        "out",
    ] {
        let problem = "a symbolic link: write to the file that it leads to";
        rig.fails(WriteFile, json!({"path": path, "content": "x"}), problem);
        let arguments = json!({"path": path, "old_text": "s", "new_text": "x"});
        rig.fails(EditFile, arguments, problem);
    }
    rig.fails(
        WriteFile,
        json!({"path": "nowhere/f", "content": "x"}),
        "does not exist",
    );
    rig.works(WriteFile, json!({"path": "a/b/back/new/f", "content": "x"}));
    assert_eq!(rig.text("a/b/new/f"), "x");
    assert_eq!(rig.text("a/b/file"), "inside");
    assert_eq!(rig.names("../outside"), ["secret"]);
}

#[test]
fn searches_pass_no_link() {
    let rig = with_links();
    let found = rig.works(Grep, json!({"pattern": "secret|inside"}));
    assert_eq!(found, "a/b/file:1:inside\n");
    let found = rig.works(Glob, json!({"pattern": "**/{secret,config,file}"}));
    assert_eq!(found, "a/b/file\n");
}

#[test]
fn a_hidden_place_that_contains_the_root_hides_nothing_and_the_root_itself_hides_all() {
    let rig = Rig::new();
    rig.file("f", "text");
    let call = |tool, path: &str, hidden: &str| {
        perform(&FileCall {
            tool,
            arguments: json!({"path": path}),
            root: rig.path(""),
            cwd: rig.path(""),
            hidden: vec![rig.path(hidden)],
            bounds: Bounds::default(),
        })
    };
    assert_eq!(call(ReadFile, "f", "..").content, "text");
    assert!(call(ReadFile, "f", "").content.contains(HIDDEN));
    let listed = call(ListDirectory, "", "").content;
    assert_eq!(listed, "[the directory is empty]\n");
    // A hidden place may itself be named through a link.
    rig.link("alias", "state");
    assert!(
        call(ReadFile, "state/secret", "alias")
            .content
            .contains(HIDDEN)
    );
    rig.file("single", "secret");
    assert!(call(ReadFile, "single", "single").content.contains(HIDDEN));
}

#[test]
fn a_root_may_be_named_through_a_link() {
    let rig = Rig::new();
    rig.file("f", "text");
    rig.link("../alias", "w");
    let alias = rig.top.path().join("alias");
    for path in [alias.join("f"), rig.path("f"), "f".into()] {
        let reply = perform(&FileCall {
            tool: ReadFile,
            arguments: json!({"path": &path}),
            root: alias.clone(),
            cwd: alias.clone(),
            hidden: vec![alias.join("state")],
            bounds: Bounds::default(),
        });
        assert_eq!(reply.content, "text", "{}", path.display());
    }
}

#[test]
fn pipes_sockets_and_devices_are_refused_at_once() {
    let rig = Rig::new();
    let make = |name: &str, kind, device| {
        rustix::fs::mknodat(
            CWD,
            rig.path(name),
            kind,
            Mode::from_raw_mode(0o600),
            device,
        )
    };
    make("pipe", FileType::Fifo, 0).unwrap();
    let _socket = UnixListener::bind(rig.path("socket")).unwrap();
    let mut names = vec!["pipe", "socket"];
    // Only a privileged user may make a device; this one would never end.
    if make("zero", FileType::CharacterDevice, rustix::fs::makedev(1, 5)).is_ok() {
        names.push("zero");
    }
    let problem = "not a regular file";
    for name in &names {
        rig.fails(ReadFile, json!({"path": name}), problem);
        rig.fails(WriteFile, json!({"path": name, "content": "x"}), problem);
        let arguments = json!({"path": name, "old_text": "a", "new_text": "b"});
        rig.fails(EditFile, arguments, problem);
        rig.fails(Grep, json!({"pattern": "a", "path": name}), problem);
        rig.fails(
            ReadFile,
            json!({"path": format!("{name}/f")}),
            "not a directory",
        );
    }
    assert_eq!(
        rig.works(Grep, json!({"pattern": "a"})),
        "[no line matches]\n"
    );
    let listed = rig.works(ListDirectory, json!({}));
    assert_eq!(listed.matches("(not a regular file)").count(), names.len());
}

#[test]
fn a_directory_that_becomes_a_link_between_calls_is_not_followed() {
    let rig = Rig::new();
    rig.file("d/secret", "own");
    assert_eq!(rig.works(ReadFile, json!({"path": "d/secret"})), "own");
    fs::rename(rig.path("d"), rig.path("gone")).unwrap();
    rig.link("d", "../outside");
    for tool in [ReadFile, ListDirectory] {
        rig.fails(tool, json!({"path": "d/secret"}), OUTSIDE);
    }
    rig.fails(
        WriteFile,
        json!({"path": "d/secret", "content": "x"}),
        OUTSIDE,
    );
    assert_eq!(rig.text("../outside/secret"), "secret");
}

#[test]
fn a_directory_that_becomes_a_link_during_calls_is_not_followed() {
    let rig = Rig::new();
    rig.file("d/secret", "own");
    rig.link("swap", "../outside");
    let done = AtomicBool::new(false);
    let exchange = || {
        while !done.load(Ordering::Relaxed) {
            let (one, other) = (rig.path("d"), rig.path("swap"));
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(CWD, &one, CWD, &other, flags).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(exchange);
        for _ in 0..300 {
            let reply = rig.call(ReadFile, json!({"path": "d/secret"}));
            assert!(reply.is_error || reply.content == "own", "{reply:?}");
            let reply = rig.call(Grep, json!({"pattern": "secret"}));
            assert!(!reply.content.contains(":secret"), "{reply:?}");
            rig.call(WriteFile, json!({"path": "d/secret", "content": "own"}));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(rig.text("../outside/secret"), "secret");
    assert_eq!(rig.names("../outside"), ["secret"]);
}

/// The kernel's own resolution inside a directory, where it may be called.
#[test]
fn paths_lead_where_openat2_leads() {
    let rig = with_links();
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let root = rustix::fs::open(rig.path(""), flags, Mode::empty()).unwrap();
    let call = FileCall {
        tool: ReadFile,
        arguments: json!({}),
        root: rig.path(""),
        cwd: rig.path(""),
        hidden: Vec::new(),
        bounds: Bounds::default(),
    };
    let ours = super::super::root::FileRoot::open(&call).unwrap();
    for path in [
        "a",
        "a/b/file",
        "a/up",
        "a/up/w",
        "a/b/back",
        "a/b/back/back/file",
        "out",
        "twice",
        "loop",
        "to-state",
        "to-secret",
        "nowhere",
        "absolute",
        "proc",
        "to-file",
        "to-file/x",
        "none",
        "none/x",
    ] {
        let theirs = match rustix::fs::openat2(&root, path, flags, Mode::empty(), inside) {
            Err(Errno::NOSYS | Errno::PERM) => {
                xtest::skip("openat2 cannot be called here, so there is nothing to compare with");
                return;
            }
            found => found
                .map(|found| rustix::fs::fstat(found).unwrap().st_ino)
                .ok(),
        };
        let found = ours.open_any(path).map(|found| match found {
            crate::tools::resolve::Opened::Directory(directory) => directory.file,
            crate::tools::resolve::Opened::File(file) => file,
        });
        let found = found.map(|file| file.metadata().unwrap().ino()).ok();
        assert_eq!(found, theirs, "{path}");
    }
}

#[test]
fn a_path_that_is_too_long_or_too_deep_is_refused_before_anything_is_made() {
    let rig = Rig::new();
    for path in ["a/".repeat(100_000), "a/".repeat(256), "n".repeat(5_000)] {
        let path = path + "f";
        rig.fails(ReadFile, json!({"path": path}), "File name too long");
        let write = json!({"path": path, "content": "x"});
        rig.fails(WriteFile, write, "File name too long");
    }
    assert_eq!(rig.names(""), [".git", "state"]);
    let deep = "a/".repeat(255) + "f";
    rig.works(WriteFile, json!({"path": deep, "content": "x"}));
    assert_eq!(rig.works(ReadFile, json!({"path": deep})), "x");
}
