//! `list_directory`, `glob` and `grep`.

use std::fs;

use serde_json::json;

use super::Rig;
use crate::tools::BuiltIn::{Glob, Grep, ListDirectory};

fn sources() -> Rig {
    let rig = Rig::new();
    rig.file("a.rs", "fn one() {}\n");
    rig.file("src/b.rs", "use x;\nfn two() {}\n// end");
    rig.file("src/deep/c.rs", "fn Three() {}\r\nlet x;\r\n");
    rig.file("src/deep/d.txt", "no code\n");
    rig.file("sub/.git/fn.rs", "fn hidden() {}\n");
    rig.file("state/fn.rs", "fn hidden() {}\n");
    rig.link("link", "src");
    rig.link("src/to.rs", "../state/fn.rs");
    rig
}

#[test]
fn a_directory_is_listed() {
    let mut rig = sources();
    let expected = "a.rs (12 bytes)\nlink (symbolic link)\nsrc/\nsub/\n";
    assert_eq!(rig.works(ListDirectory, json!({})), expected);
    let src = "b.rs (25 bytes)\ndeep/\nto.rs (symbolic link)\n";
    for path in ["src", "src/", "link", "./src/deep/.."] {
        assert_eq!(rig.works(ListDirectory, json!({"path": path})), src);
    }
    fs::create_dir(rig.path("empty")).unwrap();
    let empty = rig.works(ListDirectory, json!({"path": "empty"}));
    assert_eq!(empty, "[the directory is empty]\n");
    assert_eq!(
        rig.works(ListDirectory, json!({"path": "sub"})),
        "[the directory is empty]\n"
    );
    rig.fails(ListDirectory, json!({"path": "a.rs"}), "not a directory");

    rig.bounds.entries_max = 1;
    let notice =
        "b.rs (25 bytes)\n[1 of 3 entries are shown: use glob with a pattern to find others]\n";
    assert_eq!(rig.works(ListDirectory, json!({"path": "src"})), notice);
    rig.bounds.visited_max = 0;
    let read = rig.works(ListDirectory, json!({"path": "src"}));
    assert!(read.contains("more entries than were read"), "{read}");
}

#[test]
fn files_are_found_by_their_path() {
    let rig = sources();
    for (pattern, path, expected) in [
        ("*.rs", "", "a.rs\n"),
        ("**/*.rs", "", "a.rs\nsrc/b.rs\nsrc/deep/c.rs\nsrc/to.rs\n"),
        ("./src/*/*", ".", "src/deep/c.rs\nsrc/deep/d.txt\n"),
        ("*.{rs,txt}", "src/deep", "src/deep/c.rs\nsrc/deep/d.txt\n"),
        ("**/?.rs", "./link/", "link/b.rs\nlink/deep/c.rs\n"),
        ("**/fn.rs", "", "[no file matches]\n"),
        ("link/*", "", "[no file matches]\n"),
    ] {
        let arguments = json!({"pattern": pattern, "path": path});
        assert_eq!(rig.works(Glob, arguments), expected, "{pattern}");
    }
    let absolute = rig.path("src/deep");
    let found = rig.works(Glob, json!({"pattern": "*.txt", "path": &absolute}));
    assert_eq!(found, format!("{}\n", absolute.join("d.txt").display()));
    rig.fails(
        Glob,
        json!({"pattern": "*", "path": "a.rs"}),
        "not a directory",
    );
}

#[test]
fn lines_are_found_by_an_expression() {
    let rig = sources();
    for (arguments, expected) in [
        (
            json!({"pattern": "^fn"}),
            "a.rs:1:fn one() {}\nsrc/b.rs:2:fn two() {}\nsrc/deep/c.rs:1:fn Three() {}\n",
        ),
        (json!({"pattern": "three"}), "[no line matches]\n"),
        (
            json!({"pattern": "THREE", "ignore_case": true}),
            "src/deep/c.rs:1:fn Three() {}\n",
        ),
        (
            json!({"pattern": "x;$", "path": "src"}),
            "src/b.rs:1:use x;\nsrc/deep/c.rs:2:let x;\n",
        ),
        (
            json!({"pattern": "x;$", "path": "src/b.rs"}),
            "src/b.rs:1:use x;\n",
        ),
        (
            json!({"pattern": "o", "glob": "*.txt"}),
            "src/deep/d.txt:1:no code\n",
        ),
        (
            json!({"pattern": "fn", "glob": "src/*.rs"}),
            "src/b.rs:2:fn two() {}\n",
        ),
        (json!({"pattern": "hidden"}), "[no line matches]\n"),
        (
            json!({"pattern": "^use|Three", "context": 1}),
            "src/b.rs:1:use x;\nsrc/b.rs-2-fn two() {}\n--\n\
             src/deep/c.rs:1:fn Three() {}\nsrc/deep/c.rs-2-let x;\n",
        ),
    ] {
        assert_eq!(rig.works(Grep, arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn context_is_shown_once() {
    let rig = Rig::new();
    rig.file("f", "x\n1\n2\n3\nx\n4\nx\n5\n6\n");
    let found = rig.works(Grep, json!({"pattern": "x", "path": "f", "context": 1}));
    let expected = "f:1:x\nf-2-1\n--\nf-4-3\nf:5:x\nf-6-4\nf:7:x\nf-8-5\n";
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_text_is_not_searched_and_long_lines_are_cut() {
    let mut rig = Rig::new();
    rig.bounds.file_bytes_max = 10_000;
    rig.file("binary", b"x\0\n");
    rig.file("empty", "");
    rig.file("large", "x".repeat(10_001));
    rig.file("latin", b"x\xe9\n");
    rig.file("long", "ä".repeat(1_000) + "x\n");
    let expected = format!(
        "latin:1:x\u{fffd}\nlong:1:{} [cut: the line has 2001 bytes]\n\
         [1 files were skipped: too large or not readable]\n",
        "ä".repeat(250)
    );
    assert_eq!(rig.works(Grep, json!({"pattern": "x"})), expected);
    assert_eq!(
        rig.works(Grep, json!({"pattern": "^", "path": "empty"})),
        "[no line matches]\n"
    );
    rig.fails(
        Grep,
        json!({"pattern": "x", "path": "large"}),
        "more than 10000 bytes",
    );
}

#[test]
fn searches_are_bounded() {
    let mut rig = Rig::new();
    for index in 0..20 {
        rig.file(&format!("d/{index:02}"), "x\nx\n");
    }
    let (glob, grep) = (json!({"pattern": "d/*"}), json!({"pattern": "x"}));
    rig.bounds.entries_max = 3;
    let more = "[there are more: narrow `pattern` or `path`]\n";
    assert_eq!(
        rig.works(Glob, glob.clone()),
        format!("d/00\nd/01\nd/02\n{more}")
    );
    let more = "[there are more: narrow `pattern`, `path` or `glob`]\n";
    assert_eq!(
        rig.works(Grep, grep.clone()),
        format!("d/00:1:x\nd/00:2:x\nd/01:1:x\n{more}")
    );

    rig.bounds.entries_max = 1_000;
    rig.bounds.reply_bytes_max = 50;
    for (tool, arguments) in [(Glob, &glob), (Grep, &grep)] {
        let reply = rig.works(tool, arguments.clone());
        let (lines, notice) = reply.split_once('[').unwrap();
        assert!(lines.len() <= 50 && lines.ends_with('\n'), "{reply}");
        assert!(notice.starts_with("there are more"), "{reply}");
    }

    rig.bounds = crate::tools::Bounds::default();
    rig.bounds.visited_max = 12;
    for (tool, arguments) in [(Glob, glob), (Grep, grep)] {
        let reply = rig.works(tool, arguments);
        assert!(reply.contains("stopped after 12 entries"), "{reply}");
    }
}

#[test]
fn directories_that_are_too_deep_are_counted() {
    let rig = Rig::new();
    rig.file(&format!("{}f", "d/".repeat(64)), "");
    rig.file(&format!("{}f", "e/".repeat(65)), "");
    let found = rig.works(Glob, json!({"pattern": "**/f"}));
    let expected = format!(
        "{}f\n[1 directories are too deep and were skipped]\n",
        "d/".repeat(64)
    );
    assert_eq!(found, expected);
}
