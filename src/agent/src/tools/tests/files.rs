//! `read_file`, `write_file` and `edit_file`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::Rig;
use crate::tools::BuiltIn::{EditFile, ReadFile, WriteFile};

#[test]
fn a_file_is_read_in_parts() {
    let mut rig = Rig::new();
    rig.bounds.reply_bytes_max = 10;
    rig.file("f", "one\ntwo\nthree\nfour");
    rig.file("empty", "");
    rig.file("long", "äääääääää\nb\n");
    rig.file("latin", b"caf\xe9\n");
    for (path, more, expected) in [
        (
            "f",
            json!({}),
            "one\ntwo\n[lines 1 to 2 of 4: go on with offset 3]\n",
        ),
        ("f", json!({"offset": 3}), "three\nfour"),
        (
            "f",
            json!({"offset": 2, "limit": 1}),
            "two\n[lines 2 to 2 of 4: go on with offset 3]\n",
        ),
        ("f", json!({"offset": 4, "limit": 9}), "four"),
        ("empty", json!({}), "[the file is empty]\n"),
        (
            "long",
            json!({}),
            "äääää\n[line 1 has 19 bytes and is cut: grep or a command shows other parts of it]\n\
             [lines 1 to 1 of 2: go on with offset 2]\n",
        ),
        ("long", json!({"offset": 2}), "b\n"),
        (
            "latin",
            json!({}),
            "caf\u{fffd}\n[the file is not UTF-8: what could not be read is shown as \u{fffd}]\n",
        ),
    ] {
        let mut arguments = more;
        arguments["path"] = path.into();
        assert_eq!(rig.works(ReadFile, arguments), expected);
    }
    rig.fails(
        ReadFile,
        json!({"path": "f", "offset": 5}),
        "`f` has 4 lines",
    );
    rig.fails(
        ReadFile,
        json!({"path": "empty", "offset": 2}),
        "`empty` has 0 lines",
    );
}

#[test]
fn what_is_no_text_is_refused_with_its_size() {
    let mut rig = Rig::new();
    rig.bounds.file_bytes_max = 8;
    rig.file("binary", b"ab\0cd");
    rig.file("exact", "12345678");
    rig.file("large", "123456789");
    rig.fails(
        ReadFile,
        json!({"path": "binary"}),
        "`binary` is binary (5 bytes",
    );
    assert_eq!(rig.works(ReadFile, json!({"path": "exact"})), "12345678");
    rig.fails(
        ReadFile,
        json!({"path": "large"}),
        "`large` has more than 8 bytes",
    );
    rig.fails(
        ReadFile,
        json!({"path": "state/../.."}),
        "outside the working area",
    );
    rig.fails(ReadFile, json!({"path": ""}), "a directory, not a file");
    rig.fails(ReadFile, json!({"path": "none"}), "`none` does not exist");
    rig.fails(ReadFile, json!({"path": "exact/none"}), "not a directory");
    rig.fails(ReadFile, json!({"path": "a\0b"}), "cannot be used");
}

#[test]
fn paths_start_from_the_working_directory() {
    let mut rig = Rig::new();
    rig.file("a", "at the root");
    rig.file("sub/a", "below");
    rig.cwd = rig.path("sub");
    for (path, expected) in [
        ("a", "below"),
        ("./a", "below"),
        ("../a", "at the root"),
        ("none/../a", "below"),
    ] {
        assert_eq!(rig.works(ReadFile, json!({"path": path})), expected);
    }
    let absolute = rig.path("./sub/../a");
    assert_eq!(
        rig.works(ReadFile, json!({"path": absolute})),
        "at the root"
    );
}

#[test]
fn a_file_is_written_with_its_parents_and_keeps_its_mode() {
    let rig = Rig::new();
    let write =
        |path: &str, content: &str| rig.works(WriteFile, json!({"path": path, "content": content}));
    assert_eq!(write("new/deep/f", "abc"), "created `new/deep/f`: 3 bytes");
    assert_eq!(rig.text("new/deep/f"), "abc");
    fs::set_permissions(rig.path("new/deep/f"), fs::Permissions::from_mode(0o4751)).unwrap();
    assert_eq!(write("new/deep/f", ""), "replaced `new/deep/f`: 0 bytes");
    assert_eq!(rig.text("new/deep/f"), "");
    let mode = fs::metadata(rig.path("new/deep/f"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o751);
    assert_eq!(rig.names("new/deep"), ["f"]);

    // Replaced, not written through: another name of the old file keeps its content.
    rig.file("one", "shared");
    fs::hard_link(rig.path("one"), rig.path("two")).unwrap();
    write("one", "own");
    assert_eq!(rig.text("two"), "shared");
}

#[test]
fn a_write_is_refused_before_anything_is_made() {
    let mut rig = Rig::new();
    rig.bounds.file_bytes_max = 4;
    rig.file("file", "x");
    fs::create_dir(rig.path("directory")).unwrap();
    for (path, content, problem) in [
        ("new/f", "12345", "more than 4 bytes"),
        ("directory", "", "a directory, not a file"),
        ("", "", "a directory, not a file"),
        ("file/f", "", "not a directory"),
        ("new/.git/f", "", "git's own data"),
        ("not-yet/f", "", "off limits"),
        ("not-yet", "", "off limits"),
    ] {
        rig.fails(
            WriteFile,
            json!({"path": path, "content": content}),
            problem,
        );
    }
    assert_eq!(rig.names(""), [".git", "directory", "file", "state"]);
    let long = "n".repeat(300);
    rig.fails(
        WriteFile,
        json!({"path": long, "content": ""}),
        "cannot be used",
    );
    assert_eq!(rig.names(""), [".git", "directory", "file", "state"]);
}

#[test]
fn an_edit_replaces_what_it_names_exactly_once() {
    let rig = Rig::new();
    let edit = |old: &str, new: &str, all: bool| -> Value {
        json!({"path": "f", "old_text": old, "new_text": new, "replace_all": all})
    };
    rig.file("f", "a b a\nß\n");
    fs::set_permissions(rig.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
    rig.fails(EditFile, edit("a", "x", false), "occurs 2 times in `f`");
    rig.fails(
        EditFile,
        edit("c", "x", false),
        "does not occur in `f`: read the file",
    );
    rig.fails(EditFile, edit("", "x", false), "`old_text` is empty");
    rig.fails(EditFile, edit("a", "a", false), "are the same");
    assert_eq!(rig.text("f"), "a b a\nß\n");
    let once = "replaced `old_text` 1 time in `f`";
    assert_eq!(rig.works(EditFile, edit("b a\nß", "$1", false)), once);
    assert_eq!(rig.text("f"), "a $1\n");
    // A second time there is nothing left to replace.
    rig.fails(EditFile, edit("b a\nß", "$1", false), "does not occur");
    rig.file("f", "aaa");
    rig.fails(EditFile, edit("aa", "x", false), "occurs 2 times");
    assert_eq!(
        rig.works(EditFile, edit("a", "bb", true)),
        "replaced `old_text` 3 times in `f`"
    );
    assert_eq!(rig.text("f"), "bbbbbb");
    let mode = fs::metadata(rig.path("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    rig.file("f", "a\r\nb\r\n");
    rig.fails(EditFile, edit("a\nb", "x", false), "CR LF");
}

#[test]
fn an_edit_is_bounded_and_of_text() {
    let mut rig = Rig::new();
    rig.bounds.file_bytes_max = 100;
    rig.file("f", "a".repeat(60));
    rig.file("latin", b"caf\xe9");
    rig.file("large", "a".repeat(101));
    let edit =
        |path: &str| json!({"path": path, "old_text": "a", "new_text": "bb", "replace_all": true});
    rig.fails(EditFile, edit("f"), "more than 100 bytes");
    rig.fails(EditFile, edit("large"), "more than 100 bytes");
    rig.fails(EditFile, edit("latin"), "is not UTF-8");
    rig.fails(EditFile, edit("none"), "does not exist");
    rig.fails(EditFile, edit("none/f"), "does not exist");
    rig.fails(EditFile, edit(""), "a directory, not a file");
    assert!(!rig.path("none").exists());
}
