//! Files that mean harm, or are merely broken: a typed error with a place, soon, and never a panic.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::process::Command;

use proptest::prelude::*;

use super::contract::EVERY_KEY;
use super::{ERROR, NOTE, WARNING, Workspace, check_worker, codes, expect, show};
use crate::{Options, load};

const WORKER: &str = "workers/w/worker.yaml";

#[test]
fn yaml_bombs_are_refused_with_a_place() {
    let mut aliases = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        let list = vec![format!("*{before}"); 9].join(",");
        writeln!(aliases, "{name}: &{name} [{list}]").expect("a string");
    }
    let catalog = Workspace::of_worker(&aliases).load();
    assert_eq!(codes(&catalog), ["yaml-aliases"]);
    assert!(catalog.problems[0].place.line > 0);

    let braces = "{".repeat(200_000);
    check_worker(&braces, ("yaml-nesting", ERROR, 1, 501, "nest less"));
    let lists = format!("a: {}", "[".repeat(10_000));
    check_worker(&lists, ("yaml-nesting", ERROR, 1, 504, "nest less"));
    let catalog =
        Workspace::of_worker(&format!("a: {}x{}", "[".repeat(200), "]".repeat(200))).load();
    assert_eq!(
        codes(&catalog),
        ["yaml-nesting"],
        "{}",
        show(&catalog.problems)
    );
    let itself = Workspace::of_worker("worker: &w {id: w, again: *w}\n").load();
    assert_eq!(
        codes(&itself),
        ["yaml-aliases"],
        "{}",
        show(&itself.problems)
    );
    let dashes = "- ".repeat(10_000);
    let catalog = Workspace::of_worker(&dashes).load();
    assert!(catalog.has_errors());
    let many = format!("worker: {{id: w}}\nx: [{}]\n", "1,".repeat(200_000));
    let catalog = Workspace::of_worker(&many).load();
    assert_eq!(codes(&catalog), ["yaml-aliases"]);
}

#[test]
fn yaml_features_have_a_stated_meaning() {
    check_worker(
        "worker: {id: w}\npersona: !!python/object:os.system x\n",
        ("yaml-tag", ERROR, 2, 10, "remove the tag"),
    );
    check_worker(
        "worker:\n  id: !secret w\n",
        ("yaml-tag", ERROR, 2, 7, "remove the tag"),
    );
    check_worker(
        "worker: {id: w}\nworker: {id: v}\n",
        ("duplicate-key", ERROR, 2, 1, "keep one"),
    );
    let catalog = Workspace::of_worker(
        "worker: {id: w}\nx-base: &base {description: d, run: date}\nskills:\n  - {<<: *base, id: a}\n  - {<<: [*base], id: b, description: own}\n",
    )
    .load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let descriptions: Vec<_> = catalog
        .skills()
        .map(|(_, s)| s.description.as_str())
        .collect();
    assert_eq!(descriptions, ["d", "own"]);
    check_worker(
        "worker: {id: w, <<: 1}\n",
        ("merge-key", ERROR, 1, 17, "*anchor"),
    );
    check_worker(
        "worker:\n  id: *nobody\n",
        ("yaml-syntax", ERROR, 2, 7, "in double quotes"),
    );
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let workspace = Workspace::new(&[]);
    workspace.write(WORKER, b"worker:\n  id: w\xff\n");
    expect(
        &workspace.load(),
        WORKER,
        &("not-utf8", ERROR, 2, 8, "UTF-8"),
    );
    workspace.write(WORKER, b"worker:\n  id: w\0\n");
    expect(
        &workspace.load(),
        WORKER,
        &("nul-byte", ERROR, 2, 8, "plain text"),
    );
    workspace.write(
        WORKER,
        b"\xef\xbb\xbfworker: {id: w}\r\nskills:\r\n  - {id: a, run: date, description: d}\r\n",
    );
    let catalog = workspace.load();
    expect(
        &catalog,
        WORKER,
        &("byte-order-mark", NOTE, 1, 1, "without"),
    );
    assert_eq!(catalog.skills().count(), 1);
    workspace.write(WORKER, b"worker: {id: w, name: a\x07b}\n");
    expect(
        &workspace.load(),
        WORKER,
        &("yaml-syntax", ERROR, 1, 24, "control character"),
    );
    workspace.write(WORKER, b"");
    expect(
        &workspace.load(),
        WORKER,
        &("definition-shape", ERROR, 1, 1, "worker:"),
    );
}

#[test]
fn only_regular_files_of_bounded_size_are_read() {
    let workspace = Workspace::new(&[("workers/good/worker.yaml", "worker: {id: good}\n")]);
    let root = workspace.path().to_path_buf();
    let at = |name: &str| {
        let directory = root.join("workers").join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        directory.join("worker.yaml")
    };
    let made = Command::new("mkfifo")
        .arg(at("fifo"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
    symlink("/dev/zero", at("device")).expect("a link");
    std::fs::create_dir_all(at("directory")).expect("a directory");
    symlink("nowhere", at("dangling")).expect("a link");
    symlink("worker.yaml", at("loop")).expect("a link");
    symlink("/etc/passwd", at("outside")).expect("a link");
    symlink("../good/worker.yaml", at("inside")).expect("a link");
    symlink(
        root.canonicalize()
            .expect("a path")
            .join("workers/good/worker.yaml"),
        at("absolute"),
    )
    .expect("a link");
    let sparse = std::fs::File::create(at("sparse")).expect("a file");
    sparse.set_len(1 << 30).expect("a length");
    workspace.write(
        "workers/edge/worker.yaml",
        format!("worker: {{id: edge}}\n#{}", "x".repeat(1_048_576 - 20)).as_bytes(),
    );
    workspace.write(
        "workers/over/worker.yaml",
        format!("worker: {{id: over}}\n#{}", "x".repeat(1_048_576 - 19)).as_bytes(),
    );

    let catalog = workspace.load();
    for (name, code) in [
        ("fifo", "not-a-file"),
        ("socket", "not-a-file"),
        ("directory", "not-a-file"),
        ("device", "link-outside"),
        ("dangling", "file-missing"),
        ("outside", "link-outside"),
        ("loop", "file-unreadable"),
        ("sparse", "file-too-large"),
        ("over", "file-too-large"),
    ] {
        let path = format!("workers/{name}/worker.yaml");
        let found: Vec<_> = catalog
            .problems
            .iter()
            .filter(|problem| *problem.place.path == *path)
            .map(|problem| problem.code.as_str())
            .collect();
        assert_eq!(found, [code], "{name}");
    }
    let twice = codes(&catalog)
        .iter()
        .filter(|c| **c == "worker-duplicate")
        .count();
    assert_eq!(
        twice,
        3,
        "links inside are followed: {}",
        show(&catalog.problems)
    );
    assert!(catalog.worker("edge").is_some());
}

#[test]
fn unreadable_files_are_told() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        xtest::skip("root reads every file");
        return;
    }
    let workspace = Workspace::of_worker("worker: {id: w}\n");
    let path = workspace.path().join(WORKER);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("a mode");
    expect(
        &workspace.load(),
        WORKER,
        &("file-unreadable", ERROR, 0, 0, "owner and mode"),
    );
}

#[test]
fn directories_are_searched_once_and_not_too_deep() {
    let workspace = Workspace::new(&[
        ("workers/a/worker.yaml", "worker: {id: a}\n"),
        ("workers/a/b/worker.yaml", "worker: {id: b}\n"),
        ("workers/a/node_modules/c/worker.yaml", "worker: {id: c}\n"),
        ("workers/.git/worker.yaml", "worker: {id: d}\n"),
        ("workers/1/2/3/4/5/6/worker.yaml", "worker: {id: six}\n"),
        ("workers/1/2/3/4/5/6/7/worker.yaml", "worker: {id: seven}\n"),
        ("workers/y/worker.yml", "worker: {id: y}\n"),
        ("workers/z/worker.yml", "worker: {id: no}\n"),
        ("workers/z/worker.yaml", "worker: {id: z}\n"),
        ("other/x/worker.yaml", "worker: {id: x}\n"),
    ]);
    symlink("../a", workspace.path().join("workers/a/loop")).expect("a link");
    symlink("..", workspace.path().join("workers/up")).expect("a link");
    symlink("/usr", workspace.path().join("workers/usr")).expect("a link");
    symlink("nowhere", workspace.path().join("workers/none")).expect("a link");
    let catalog = workspace.load();
    let mut ids: Vec<_> = catalog
        .workers
        .iter()
        .map(|worker| worker.id.as_str())
        .collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        ["a", "b", "six", "x", "y", "z"],
        "{}",
        show(&catalog.problems)
    );
    for (path, expected) in [
        (
            "workers/1/2/3/4/5/6/7/worker.yaml",
            ("too-deep", WARNING, 0, 0, "move the worker up"),
        ),
        (
            "workers/y/worker.yml",
            ("definition-name", WARNING, 0, 0, "rename"),
        ),
        (
            "workers/z/worker.yml",
            ("definition-ignored", WARNING, 0, 0, "remove one"),
        ),
        ("workers/a/loop", ("link-repeats", NOTE, 0, 0, "")),
        ("workers/usr", ("link-outside", ERROR, 0, 0, "copy")),
        ("workers/none", ("link-dangling", WARNING, 0, 0, "correct")),
    ] {
        expect(&catalog, path, &expected);
    }
}

#[test]
fn a_workspace_that_is_not_there_is_a_problem() {
    let catalog = load(std::path::Path::new("/nowhere/at/all"), Options::default());
    assert_eq!(codes(&catalog), ["workspace-unreadable"]);
    assert!(Workspace::new(&[]).load().problems.is_empty());
}

const SKILL: &str = "---\nskill:\n  id: s\n  name: 'it''s'\n  description: >-\n    folded\n    text\n  run: |\n    echo \"$HOME\" {a: b}\n  metadata: {x: [1, 2.5, ~, null, &a yes], y: *a}\n---\n# Body\n\n---\ntext\n";

/// No panic, and every place lies within its file.
fn survives(name: &str, bytes: &[u8]) {
    let workspace = Workspace::new(&[("workers/w/worker.yaml", "worker: {id: w}\n")]);
    workspace.write(name, bytes);
    let catalog = load(
        workspace.path(),
        Options {
            threads: 1,
            ..Options::default()
        },
    );
    let lines = u32::try_from(bytes.split(|byte| *byte == b'\n').count()).expect("few");
    for problem in catalog.problems.iter().filter(|p| *p.place.path == *name) {
        assert!(problem.place.line <= lines, "{problem:?}");
    }
}

#[test]
fn no_prefix_of_a_definition_panics() {
    for (name, text) in [(WORKER, EVERY_KEY), ("workers/w/skills/s.md", SKILL)] {
        for end in (0..text.len()).step_by(3) {
            survives(name, &text.as_bytes()[..end]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_a_byte_panics(
        skill in any::<bool>(),
        at in 0_usize..3_000,
        byte in prop_oneof![any::<u8>(), prop::sample::select(b"{}[]:-#&*!|>'\"%@`,?~ \n\t\r".to_vec())],
        insert in any::<bool>(),
    ) {
        let (name, text) = if skill { ("workers/w/skills/s.md", SKILL) } else { (WORKER, EVERY_KEY) };
        let mut bytes = text.as_bytes().to_vec();
        let at = at % bytes.len();
        if insert { bytes.insert(at, byte) } else { bytes[at] = byte }
        survives(name, &bytes);
    }

    #[test]
    fn no_text_panics(text in "[ a-c{}\\[\\]:\\-#&*!|>'\",?~\n\t\u{e4}%@`0-2.]{0,120}") {
        survives(WORKER, text.as_bytes());
        survives("workers/w/skills/s.md", format!("---\n{text}\n---\nb").as_bytes());
    }
}
