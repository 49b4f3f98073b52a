//! `mcp install` writes what each client reads, and leaves alone everything else.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::{Value, json};

use super::*;

/// Each client, its file, where its servers stand in it, and our entry.
fn json_clients() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let plain = json!({"command": "workerctl", "args": ["mcp"]});
    let of_cursor = json!({"command": "workerctl", "args": ["-C", "${workspaceFolder}", "mcp"]});
    let local = json!({"type": "local", "command": ["workerctl", "mcp"], "enabled": true});
    let stdio = json!({"type": "stdio", "command": "workerctl", "args": ["mcp"]});
    vec![
        ("claude", ".mcp.json", "mcpServers", plain.clone()),
        ("opencode", "opencode.json", "mcp", local),
        ("gemini", ".gemini/settings.json", "mcpServers", plain),
        ("cursor", ".cursor/mcp.json", "mcpServers", of_cursor),
        ("vscode", ".vscode/mcp.json", "servers", stdio),
    ]
}

const TABLE: &str = "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"mcp\"]\n";

impl Place {
    /// Installs for a client; what the command left must end with this code.
    fn install(&self, client: &str, more: &[&str], code: i32) -> Output {
        let left = self.output(&[&["mcp", "install", "--client", client], more].concat());
        assert_eq!(left.status.code(), Some(code), "{client}: {left:?}");
        left
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.workspace().join(file)).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.workspace().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn codex(&self) -> PathBuf {
        self.directory.path().join("home/.codex/config.toml")
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_client_gets_its_file_once() {
    for (client, file, section, entry) in json_clients() {
        let place = Place::new();
        let expected = json!({section: {"workerctl": entry}});
        let printed = place.install(client, &["--print"], 0);
        assert!(!place.workspace().join(file).exists(), "{client}");
        let left = place.install(client, &[], 0);
        assert!(left.stdout.is_empty(), "{left:?}");
        assert!(
            text(&left.stderr).contains(&format!("written  {file}\n")),
            "{left:?}"
        );
        assert_eq!(parsed(&place.read(file)), expected, "{client}");
        assert_eq!(place.read(file), text(&printed.stdout), "{client}");
        // It is committed: nothing in it is of this machine.
        assert!(
            !place
                .read(file)
                .contains(place.directory.path().to_str().unwrap())
        );
        let again = place.install(client, &[], 0);
        assert!(
            text(&again.stderr).contains("has the entry already"),
            "{again:?}"
        );
        assert_eq!(place.read(file), text(&printed.stdout), "{client}");
        let told = place.install(client, &["--json"], 0);
        let told = parsed(text(&told.stdout));
        assert_eq!(
            (&told["client"], &told["state"]),
            (&json!(client), &json!("kept"))
        );
    }
    let place = Place::new();
    assert_eq!(text(&place.install("codex", &["--print"], 0).stdout), TABLE);
    assert!(!place.codex().exists());
    place.install("codex", &[], 0);
    place.install("codex", &[], 0);
    assert_eq!(fs::read_to_string(place.codex()).unwrap(), TABLE);
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 1);
}

#[test]
fn what_a_file_holds_besides_stays_with_its_mode() {
    for (client, file, section, entry) in json_clients() {
        let place = Place::new();
        let other = format!(
            "{{\n   \"z\": 1.50,\n   \"{section}\": {{\n      \"other\": {{\"command\": \"x\"}}\n   }},\n   \"a\": [1,2]\n}}\n"
        );
        place.write(file, &other);
        let path = place.workspace().join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        place.install(client, &[], 0);
        let written = place.read(file);
        let mut expected = parsed(&other);
        expected[section]["workerctl"] = entry;
        assert_eq!(parsed(&written), expected, "{client}");
        let (before, after) = other.split_at(other.find("\n   },").unwrap());
        assert!(
            written.starts_with(before) && written.ends_with(after),
            "{written}"
        );
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{client}");
        let beside = fs::read_dir(path.parent().unwrap()).unwrap();
        assert!(beside.flatten().all(|one| !one.path().ends_with(".part")));
    }
    let place = Place::new();
    fs::create_dir_all(place.codex().parent().unwrap()).unwrap();
    let other = "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"y\"\n";
    fs::write(place.codex(), other).unwrap();
    place.install("codex", &[], 0);
    assert_eq!(
        fs::read_to_string(place.codex()).unwrap(),
        format!("{other}\n{TABLE}")
    );
}

#[test]
fn another_entry_of_ours_is_replaced_on_request_alone() {
    for (client, file, section, entry) in json_clients() {
        let place = Place::new();
        let other = json!({section: {"workerctl": {"command": "elsewhere"}, "b": {}}}).to_string();
        place.write(file, &other);
        let refused = place.install(client, &[], 8);
        let told = text(&refused.stderr);
        assert!(
            told.contains("elsewhere") && told.contains("\"workerctl\""),
            "{told}"
        );
        assert!(told.contains("--force"), "{told}");
        assert_eq!(place.read(file), other);
        let replaced = place.install(client, &["--force"], 0);
        let told = text(&replaced.stderr);
        assert!(
            told.contains("in place of {\"command\":\"elsewhere\"}"),
            "{told}"
        );
        let expected = json!({section: {"workerctl": entry, "b": {}}});
        assert_eq!(parsed(&place.read(file)), expected, "{client}");
    }
    let place = Place::new();
    fs::create_dir_all(place.codex().parent().unwrap()).unwrap();
    let other = "[mcp_servers.workerctl]\ncommand = \"elsewhere\"\n";
    fs::write(place.codex(), other).unwrap();
    let refused = place.install("codex", &[], 8);
    let told = text(&refused.stderr);
    assert!(
        told.contains("there is {\"command\":\"elsewhere\"}") && told.contains("--force"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(place.codex()).unwrap(), other);
    place.install("codex", &["--force"], 0);
    assert_eq!(fs::read_to_string(place.codex()).unwrap(), TABLE);
    // In whatever form it is written.
    let dotted = "mcp_servers.workerctl.command = \"elsewhere\"\n";
    fs::write(place.codex(), dotted).unwrap();
    place.install("codex", &[], 8);
    assert_eq!(fs::read_to_string(place.codex()).unwrap(), dotted);
    place.install("codex", &["--force"], 0);
    let kept = place.install("codex", &[], 0);
    assert!(text(&kept.stderr).contains("kept"), "{kept:?}");
}

#[test]
fn a_file_that_is_broken_is_told_with_its_line_and_stays() {
    let place = Place::new();
    fs::create_dir_all(place.codex().parent().unwrap()).unwrap();
    for (broken, why, hint) in [
        ("a = 1\nbad = \n", "line 2 is no TOML", "repair line 2"),
        (
            "[[mcp_servers]]\n",
            "`mcp_servers` in it is no table",
            "make it a table",
        ),
    ] {
        fs::write(place.codex(), broken).unwrap();
        for more in [&[][..], &["--force"]] {
            let refused = place.install("codex", more, 6);
            let told = text(&refused.stderr);
            assert!(told.contains(why) && told.contains(hint), "{told}");
            assert!(refused.stdout.is_empty(), "{refused:?}");
            assert_eq!(fs::read_to_string(place.codex()).unwrap(), broken);
        }
    }
    for (broken, why) in [
        ("[]", "what it holds is a list, and no object"),
        ("\u{feff}{}", "byte order mark"),
    ] {
        place.write(".mcp.json", broken);
        let refused = place.install("claude", &[], 6);
        assert!(text(&refused.stderr).contains(why), "{refused:?}");
        assert_eq!(place.read(".mcp.json"), broken);
    }
}

#[test]
fn a_file_that_is_write_protected_stays_and_any_other_keeps_its_owner() {
    let place = Place::new();
    place.write(".mcp.json", "{}");
    let path = place.workspace().join(".mcp.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let refused = place.install("claude", &[], 6);
    let told = text(&refused.stderr);
    assert!(
        told.contains("chmod u+w") && told.contains("--print"),
        "{told}"
    );
    assert_eq!(place.read(".mcp.json"), "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    // Only root may give files away.
    if std::os::unix::fs::chown(&path, Some(1234), Some(1235)).is_ok() {
        place.install("claude", &[], 0);
        let found = path.metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 1235));
        assert_eq!(found.permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn outside_of_a_workspace_it_is_said_that_tools_of_their_own_are_for_workspaces() {
    let place = Place::new();
    let bare = place.directory.path().join("bare");
    fs::create_dir(&bare).unwrap();
    let told = |more: &[&str]| {
        let line = [
            "-C",
            bare.to_str().unwrap(),
            "mcp",
            "install",
            "--client",
            "claude",
        ];
        let left = place.output(&[&line, more].concat());
        assert_eq!(left.status.code(), Some(0), "{left:?}");
        text(&left.stderr).to_owned()
    };
    let warned = told(&["--typed", "3"]);
    assert!(warned.contains("`--typed 3` needs a workspace"), "{warned}");
    assert!(!told(&[]).contains("typed"));
}

#[test]
fn a_file_with_comments_is_left_to_its_author() {
    let place = Place::new();
    for (client, file) in [
        ("vscode", ".vscode/mcp.json"),
        ("opencode", "opencode.jsonc"),
    ] {
        let commented = "{\n  // mine\n  \"servers\": {},\n}\n";
        place.write(file, commented);
        let refused = place.install(client, &[], 6);
        let printed = place.install(client, &["--print"], 0);
        assert_eq!(refused.stdout, printed.stdout);
        assert!(
            text(&refused.stderr).contains("it holds comments, or is no JSON"),
            "{refused:?}"
        );
        assert_eq!(place.read(file), commented);
    }
    assert!(!place.workspace().join("opencode.json").exists());
    place.write("opencode.jsonc", "{\"mcp\": {}}");
    place.install("opencode", &[], 0);
    assert!(parsed(&place.read("opencode.jsonc"))["mcp"]["workerctl"].is_object());
}

#[test]
fn what_cannot_be_written_is_told_and_stays() {
    let place = Place::new();
    place.write(".gemini", "a file");
    let refused = place.install("gemini", &[], 6);
    let told = text(&refused.stderr);
    assert!(
        told.contains(".gemini") && told.contains("--print"),
        "{told}"
    );
    assert_eq!(place.read(".gemini"), "a file");
    fs::create_dir_all(place.workspace().join(".mcp.json")).unwrap();
    place.install("claude", &[], 6);
    // A directory in which nothing can be made, whoever asks: `/proc`.
    let refused = place
        .command(&["mcp", "install", "--client", "codex"])
        .env("CODEX_HOME", "/proc/none")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
    let refused = place
        .command(&["mcp", "install", "--client", "codex"])
        .env_remove("HOME")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("CODEX_HOME"), "{refused:?}");
}

#[test]
fn links_are_followed_within_the_project_and_at_home_alone() {
    let place = Place::new();
    let outside = place.directory.path().join("outside.json");
    fs::write(&outside, "{}").unwrap();
    let link = place.workspace().join(".mcp.json");
    symlink(&outside, &link).unwrap();
    let refused = place.install("claude", &["--json"], 6);
    assert_eq!(parsed(text(&refused.stderr))["error"]["code"], "linked");
    symlink(place.directory.path(), place.workspace().join(".cursor")).unwrap();
    place.install("cursor", &[], 6);
    assert!(!place.directory.path().join("mcp.json").exists());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "{}");

    fs::remove_file(&link).unwrap();
    place.write("config/mcp.json", "{}");
    symlink("config/mcp.json", &link).unwrap();
    place.install("claude", &[], 0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(place.read("config/mcp.json").contains("workerctl"));

    fs::create_dir_all(place.codex().parent().unwrap()).unwrap();
    let dotfiles = place.directory.path().join("config.toml");
    fs::write(&dotfiles, "").unwrap();
    symlink(&dotfiles, place.codex()).unwrap();
    place.install("codex", &[], 0);
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), TABLE);
}

#[test]
fn without_a_terminal_the_client_has_to_be_named() {
    let place = Place::new();
    let programs = place.directory.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let asked = || {
        let mut command = place.command(&["mcp", "install"]);
        let left = command.env("PATH", &programs).output().unwrap();
        assert_eq!(left.status.code(), Some(2), "{left:?}");
        text(&left.stderr).to_owned()
    };
    let told = asked();
    assert!(
        told.contains("`--client`") && told.contains("none is found here"),
        "{told}"
    );
    place.write(".vscode/settings.json", "{}");
    let codex = programs.join("codex");
    fs::write(&codex, "").unwrap();
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(programs.join("claude"), "not to be run").unwrap();
    let told = asked();
    assert!(told.contains("found here: codex, vscode"), "{told}");
    let missing = place.output(&["mcp", "install", "--client", "other"]);
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
}

#[test]
fn an_entry_that_was_written_starts_a_server_below_the_project() {
    let place = Place::new();
    place.worker("  - {id: hello, description: d, run: date}\n");
    place.install("claude", &[], 0);
    let entry = parsed(&place.read(".mcp.json"))["mcpServers"]["workerctl"].clone();
    let arguments: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    assert_eq!(entry["command"], "workerctl");
    let mut command = place.command(&arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let info = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{request}\n").as_bytes()).unwrap();
    let mut line = String::new();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    assert_eq!(
        parsed(&line)["result"]["serverInfo"]["name"],
        "workerctl",
        "{line}"
    );
    drop(input);
    assert!(child.wait().unwrap().success());
}
