//! Behaviour of the tools in temporary directories.

mod allowed;
mod arguments;
mod files;
mod searches;
mod ways_out;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xtest::TempDir;

use super::{Bounds, BuiltIn, FileCall, FileReply, perform};

/// `w` is the root, with the hidden directory `w/state`; `outside` lies beside it.
struct Rig {
    top: TempDir,
    bounds: Bounds,
    cwd: PathBuf,
}

impl Rig {
    fn new() -> Self {
        let top = TempDir::new().unwrap();
        let rig = Self {
            bounds: Bounds::default(),
            cwd: top.path().join("w"),
            top,
        };
        rig.file("state/secret", "secret");
        rig.file(".git/config", "secret");
        rig.file("../outside/secret", "secret");
        rig
    }

    fn path(&self, path: &str) -> PathBuf {
        self.top.path().join("w").join(path)
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(path)).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn call(&self, tool: BuiltIn, arguments: Value) -> FileReply {
        perform(&FileCall {
            tool,
            arguments,
            root: self.path(""),
            cwd: self.cwd.clone(),
            hidden: vec![self.path("state"), self.path("not-yet")],
            bounds: self.bounds,
        })
    }

    #[track_caller]
    fn works(&self, tool: BuiltIn, arguments: Value) -> String {
        let reply = self.call(tool, arguments);
        assert!(!reply.is_error, "{}", reply.content);
        reply.content
    }

    #[track_caller]
    fn fails(&self, tool: BuiltIn, arguments: Value, with: &str) {
        let shown = arguments.to_string();
        let reply = self.call(tool, arguments);
        let name = tool.name();
        assert!(reply.is_error, "{name} {shown} works: {}", reply.content);
        assert!(
            reply.content.contains(with),
            "{name} {shown} does not say {with:?}: {}",
            reply.content
        );
    }
}

#[test]
fn calls_and_replies_are_json() {
    let text = r#"{"tool": "list_directory", "arguments": {}, "root": "/r", "cwd": "/r/a"}"#;
    let call: FileCall = serde_json::from_str(text).unwrap();
    let expected = FileCall {
        tool: BuiltIn::ListDirectory,
        arguments: json!({}),
        root: "/r".into(),
        cwd: "/r/a".into(),
        hidden: Vec::new(),
        bounds: Bounds::default(),
    };
    assert_eq!(call, expected);
    let again = serde_json::to_string(&call).unwrap();
    assert_eq!(serde_json::from_str::<FileCall>(&again).unwrap(), expected);

    let reply = perform(&call);
    assert_eq!(
        serde_json::to_value(&reply).unwrap(),
        json!({"content": "`/r` does not exist: list_directory or glob show what does", "is_error": true})
    );
}
