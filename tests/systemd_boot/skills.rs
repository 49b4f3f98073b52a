//! What a service is for: every example skill, and outputs of every type.

use std::fs;
use std::path::Path;

use workerctl::process::{containers_stand, walls_stand};

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::models;
use crate::workspace::{Done, Workspace, skip};

/// A skill for each type of output, and for each way to write one.
const OUTPUTS: &str = r##"
  - {id: markdown, description: d, run: 'echo "# told"', interface: {outputs: [{type: markdown, destination: made/told.md}]}}
  - {id: json, description: d, run: 'echo "{}" > {json}', interface: {outputs: [{type: json, destination: made/deep/er/data.json}]}}
  - {id: file, description: d, run: 'echo x > {file}.new; mv {file}.new {file}', interface: {outputs: [{type: file, destination: made/file}]}}
  - {id: folder, description: d, run: 'echo "# {date}"', interface: {outputs: [{type: markdown, destination: made/folder/}]}}
  - {id: commit, description: d, mutating: true, run: 'echo x >> tracked.txt', interface: {outputs: [{type: git_commit}]}}
  - id: kept
    description: d
    mutating: true
    run: 'echo "# $WORKERCTL_RUN"'
    interface: {outputs: [{type: markdown, destination: made/kept.md}, {type: git_commit}]}
  - {id: agent, description: d, instructions: Say it., agent: {cli: claude}, interface: {outputs: [{type: markdown, destination: made/agent.md}]}}
  - {id: console, description: d, run: 'echo said', interface: {outputs: [{type: console}]}}
  - {id: contained, description: d, sandbox: private, mutating: true, run: 'test -z "$(ls -A /var/tmp)" && test ! -e "$HOME/store" && echo x > "$HOME/x" && echo x > /tmp/x && echo x >> tracked.txt'}
  - {id: path, description: d, run: 'printf "PATH=%s\n" "$PATH"'}
"##;

/// An agent program that says what it was told last, from a home that it may write to.
const AGENT: &str = r##"#!/bin/sh
cat > "$HOME/prompt" && test "$PWD" = "$(pwd)" && test -w "$TMPDIR" || exit 1
echo '{"type":"assistant","message":{"id":"m","model":"m","content":[{"type":"text","text":"# said"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"# said"}'
"##;

/// Puts the agent program on the path of all services.
pub(crate) fn install_agent(guest: &Guest<'_>) {
    let place = "/usr/local/bin/claude";
    guest.write(place, AGENT);
    guest.expect(&["chmod", "755", place]);
}

/// Example skills that cannot do without inputs here; the folder of backups is added.
const FULL_DISKS_ARE_FINE: &str = "limit=100";

/// Writes the example workers and those of this file to a workspace.
pub(crate) fn furnish(workspace: &Workspace) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers");
    copy(&examples, &workspace.root.join("workers"));
    workspace.worker("outputs", OUTPUTS);
    // The home directory of the service is its state, which no definition may grant; the tests look there for what the
    // skills of `w` did, so these have no sandbox.
    workspace.lift_sandbox("w");
    workspace.worker("minds", models::SKILLS);
    for worker in ["outputs", "minds"] {
        workspace.lift_sandbox(worker);
        let path = format!("workers/{worker}/worker.yaml");
        let text = workspace.read(&path).unwrap();
        workspace.write(&path, &text.replacen("sandbox: off\n", "", 1));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A service that runs, as those see it who ask it for runs.
pub(crate) struct Service<'a> {
    /// Runs the program against it.
    pub(crate) workerctl: &'a dyn Fn(&[&str]) -> Done,
    /// Its workspace, as the test sees it.
    pub(crate) workspace: &'a Path,
    /// A folder with files of today that skills may read.
    pub(crate) folder: &'a str,
}

impl Service<'_> {
    /// Runs every example and a skill for each type of output; all succeed.
    pub(crate) fn run_all(&self) {
        let folder = format!("folder={}", self.folder);
        let listed = (self.workerctl)(&["skills", "--json"])
            .expect_code(0)
            .value();
        // Nothing is configured that executes the one that is for a model.
        let names = listed["skills"].as_array().unwrap().iter();
        let of_model = |name: &str| name == "news-writer/weekly-news" || name.starts_with("minds/");
        let names = names.filter(|skill| !of_model(skill["skill"].as_str().unwrap()));
        let names = names.map(|skill| skill["skill"].as_str().unwrap().to_owned());
        let examples: Vec<String> = names
            .filter(|name| !name.starts_with("w/"))
            .filter(|name| name != "outputs/path" && name != "outputs/contained")
            .collect();
        assert_eq!(examples.len(), 9 + 8, "{examples:?}");
        for skill in examples {
            let mut command = vec!["run", "--json", skill.as_str()];
            match skill.as_str() {
                "host-watch/backup-freshness" => command.extend(["-i", &folder]),
                "host-watch/disk-report" => command.extend(["-i", FULL_DISKS_ARE_FINE]),
                _ => {}
            }
            let done = (self.workerctl)(&command);
            assert_eq!(done.code, 0, "{skill}: {done:?}");
            let level = &done.value()["attempts"][0]["execution"]["sandbox_level"];
            assert_eq!(*level, u32::from(walls_stand()), "{skill}: {done:?}");
            let outputs = &done.value()["summary"]["results"]["outputs"];
            let whole = outputs.as_array().into_iter().flatten();
            for output in whole.filter(|output| output["path"].is_string()) {
                let path = self.workspace.join(output["path"].as_str().unwrap());
                let file = fs::metadata(&path).unwrap();
                assert!(file.is_file() && file.len() > 0, "{skill}: {output}");
            }
        }
        let made = |path: &str| fs::read_to_string(self.workspace.join("made").join(path)).unwrap();
        assert_eq!(made("told.md"), "# told\n");
        assert_eq!(made("deep/er/data.json"), "{}\n");
        assert_eq!(made("file"), "x\n");
        assert_eq!(made("agent.md"), "# said\n");
        let folder = fs::read_dir(self.workspace.join("made/folder")).unwrap();
        let names: Vec<_> = folder.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].to_str().unwrap().ends_with("-folder.md"));
    }

    /// A skill that asks for a container is told why it gets none; `allow` changes that.
    pub(crate) fn containers_come_with_the_drop_in(&self, allow: impl FnOnce(&str)) {
        if containers_stand().is_err() {
            skip("bubblewrap cannot start anything on this machine");
            return;
        }
        let contained = || (self.workerctl)(&["run", "--json", "outputs/contained"]);
        let refused = contained().value();
        let outcome = &refused["summary"]["outcome"]["failure"];
        assert_eq!(outcome["code"], "sandbox", "{refused}");
        let message = outcome["message"].as_str().unwrap();
        assert!(message.contains("docs/reference/sandbox.md"), "{message}");
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/private.conf");
        allow(&fs::read_to_string(shipped).unwrap());
        let done = contained().expect_code(0).value();
        let level = &done["attempts"][0]["execution"]["sandbox_level"];
        assert_eq!(*level, 2, "{done}");
    }

    /// What a skill sees as `PATH`.
    pub(crate) fn path(&self) -> String {
        let done = (self.workerctl)(&["run", "outputs/path"]).expect_code(0);
        let told = format!("{}{}", done.stdout, done.stderr);
        let (_, rest) = told.split_once("PATH=").unwrap();
        rest.lines().next().unwrap().trim().to_owned()
    }

    /// Asserts that skills see the `PATH` that the documentation tells of.
    pub(crate) fn expect_documented_path(&self) {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/installation.md");
        let page = fs::read_to_string(page).unwrap();
        let (path, documented) = (self.path(), "A skill sees");
        let lines = page.lines().filter(|line| line.starts_with(documented));
        assert!(
            lines
                .into_iter()
                .any(|line| line.contains(&format!("`{path}`"))),
            "no line that begins `{documented}` has `{path}`"
        );
    }

    /// What `doctor` shows of what the daemon says: what fails, each with its message and its hint.
    pub(crate) fn failing_in_engine(&self) -> Vec<(String, String)> {
        let findings = (self.workerctl)(&["doctor", "--json"]).value()["findings"].clone();
        let findings = findings.as_array().unwrap();
        let probes = findings.iter().filter(|one| one["name"] == "in engine");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (works, fails): (Vec<_>, Vec<_>) = probes.partition(|one| one["state"] == "ok");
        assert_eq!(works.len() + fails.len(), 7, "{findings:?}");
        fails
            .iter()
            .map(|one| (text(&one["message"]), text(&one["hints"][0])))
            .collect()
    }
}
