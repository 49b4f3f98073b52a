//! The real binary as a shell sees it: exit codes, streams, signals. Every test has a directory and a
//! home of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[path = "cli_process/mcp_install.rs"]
mod mcp_install;
#[path = "cli_process/pages.rs"]
mod pages;
#[path = "cli_process/shells.rs"]
mod shells;

struct Place {
    directory: xtest::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = xtest::tempdir();
        fs::create_dir(directory.path().join("home")).unwrap();
        fs::create_dir_all(directory.path().join("ws/workers/w")).unwrap();
        Place { directory }
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    fn worker(&self, skills: &str) {
        let yaml = format!(
            "worker: {{id: w, name: W, description: d}}\nexecution: {{mode: on_demand}}\nskills:\n{skills}"
        );
        fs::write(self.workspace().join("workers/w/worker.yaml"), yaml).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_workerctl"));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.directory.path().join("home"))
            .stdin(Stdio::null());
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn usage_errors_are_2_and_json_where_it_is_asked_for() {
    let place = Place::new();
    let left = place.output(&["rnu"]);
    assert_eq!(left.status.code(), Some(2));
    assert!(
        left.stdout.is_empty() && text(&left.stderr).contains("'runs'"),
        "{left:?}"
    );
    assert!(!left.stderr.contains(&0x1b));
    let left = place.output(&["rnu", "--json"]);
    assert_eq!(left.status.code(), Some(2));
    let error: serde_json::Value = serde_json::from_slice(&left.stderr).unwrap();
    assert_eq!(
        (&error["error"]["kind"], &error["error"]["exit_code"]),
        (&"usage".into(), &2.into())
    );
    let left = place.output(&["--help"]);
    assert!(
        left.status.success()
            && left.stderr.is_empty()
            && text(&left.stdout).contains("Exit codes")
    );
}

#[test]
fn options_are_variables_too() {
    let place = Place::new();
    let outside = place.directory.path();
    for (name, value) in [("WORKERCTL_JSON", "1"), ("WORKERCTL_VERBOSE", "0")] {
        let left = place
            .command(&["config"])
            .current_dir(outside)
            .env("WORKERCTL_WORKSPACE", place.workspace())
            .env(name, value)
            .output()
            .unwrap();
        assert!(left.status.success(), "{left:?}");
        assert_eq!(
            text(&left.stdout).starts_with('{'),
            name == "WORKERCTL_JSON"
        );
    }
    let left = place
        .command(&["config"])
        .current_dir(outside)
        .output()
        .unwrap();
    assert_eq!(left.status.code(), Some(3), "{left:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let left = place
        .command(&["completions", "bash"])
        .stdout(writer)
        .output()
        .unwrap();
    assert!(left.status.success() && left.stderr.is_empty(), "{left:?}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let left = place
        .command(&["completions", "bash"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(left.status.code(), Some(1), "{left:?}");
    assert!(
        text(&left.stderr).starts_with("error: standard output cannot be written"),
        "{left:?}"
    );
}

#[test]
fn colours_are_where_they_are_asked_for() {
    let place = Place::new();
    let always = place
        .command(&["config", "--color", "always"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(always.stdout.contains(&0x1b), "{always:?}");
    assert!(!place.output(&["config"]).stdout.contains(&0x1b));
}

#[test]
fn a_run_is_shown_and_its_outcome_is_the_exit_code() {
    let place = Place::new();
    place.worker(
        "  - {id: good, name: G, description: d, mutating: false, run: \"echo hello\", verification: [{command: \"true\", description: fine}]}\n\
         \x20 - {id: bad, name: B, description: d, mutating: false, run: \"true\", verification: [{command: \"echo evidence; false\", description: never}]}\n\
         \x20 - {id: ugly, name: U, description: d, mutating: false, run: \"exit 3\"}\n",
    );
    let left = place.output(&["run", "good"]);
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    assert!(text(&left.stdout).contains("✓ fine"), "{left:?}");
    assert!(text(&left.stderr).contains("│ hello"), "{left:?}");
    let left = place.output(&["run", "bad", "--quiet"]);
    assert_eq!(
        (left.status.code(), text(&left.stderr)),
        (
            Some(5),
            "  verify failed (check_failed): check `never` failed: exit code 1\n"
        ),
        "{left:?}"
    );
    let left = place.output(&["show"]);
    assert!(
        text(&left.stdout).contains("$ echo evidence; false"),
        "{left:?}"
    );
    assert!(text(&left.stdout).contains("│ evidence"), "{left:?}");
    let left = place.output(&["run", "ugly", "--json"]);
    assert_eq!(left.status.code(), Some(1), "{left:?}");
    let run: serde_json::Value = serde_json::from_slice(&left.stdout).unwrap();
    assert_eq!(run["summary"]["outcome"]["failure"]["step"], "execute");
    let left = place.output(&["run", "goood"]);
    assert_eq!(left.status.code(), Some(3), "{left:?}");
    assert!(text(&left.stderr).contains("did you mean"), "{left:?}");
    assert_eq!(
        place.output(&["run", "good", "--no-wait"]).status.code(),
        Some(7)
    );
    let runs: serde_json::Value =
        serde_json::from_slice(&place.output(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(3));
    let status: serde_json::Value =
        serde_json::from_slice(&place.output(&["status", "--json"]).stdout).unwrap();
    assert_eq!(
        (&status["running"], &status["queued"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn ctrl_c_ends_the_run_and_then_the_command() {
    let place = Place::new();
    place.worker(
        "  - {id: slow, name: S, description: d, mutating: false, run: \"echo $$; exec sleep 1000\"}\n",
    );
    let mut child = place
        .command(&["run", "slow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let pid = loop {
        line.clear();
        assert!(
            err.read_line(&mut line).unwrap() > 0,
            "it ended before it was interrupted"
        );
        if let Some(pid) = line.trim().strip_prefix("│ ") {
            break pid.to_owned();
        }
    };
    let own = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(own, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("cancelling"), "{rest}");
    assert!(
        !Path::new("/proc").join(pid).join("exe").exists(),
        "its process lives on"
    );
}

#[test]
fn init_makes_a_repository_and_commits_what_it_wrote() {
    let place = Place::new();
    let new = place.directory.path().join("new");
    let dir = new.to_str().unwrap();
    fs::create_dir(&new).unwrap();
    fs::write(new.join("mine.txt"), "mine\n").unwrap();
    fs::write(new.join(".gitignore"), "/state/\n").unwrap();
    let git = |args: &[&str]| {
        let left = Command::new("git")
            .args(args)
            .current_dir(&new)
            .env("HOME", place.directory.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(left.status.success(), "{left:?}");
        text(&left.stdout).trim_end().to_owned()
    };
    fs::write(
        place.directory.path().join("home/.gitconfig"),
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = trunk\n",
    )
    .unwrap();
    let left = place.output(&["init", "--json", dir]);
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    let told: serde_json::Value = serde_json::from_slice(&left.stdout).unwrap();
    assert_eq!(told["repository"]["branch"], "trunk");
    assert_eq!(told["repository"]["commit"], git(&["rev-parse", "trunk"]));
    assert_eq!(git(&["log", "--format=%an <%ae>"]), "Ada <ada@example.com>");
    let committed = git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    let written: Vec<&str> = told["written"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(written.contains(&"workerctl.yaml") && !written.contains(&".gitignore"));
    let mut sorted = written;
    sorted.sort_unstable();
    assert_eq!(committed.lines().collect::<Vec<_>>(), sorted);
    assert_eq!(
        git(&["status", "--porcelain"]),
        "?? .gitignore\n?? mine.txt"
    );

    // What is there already is left alone, its index above all.
    fs::remove_file(new.join("workerctl.yaml")).unwrap();
    git(&["add", "mine.txt"]);
    let index = fs::read(new.join(".git/index")).unwrap();
    let tip = git(&["rev-parse", "HEAD"]);
    let left = place.output(&["init", "--json", dir]);
    let told: serde_json::Value = serde_json::from_slice(&left.stdout).unwrap();
    assert_eq!(told["repository"], serde_json::Value::Null, "{left:?}");
    assert_eq!(fs::read(new.join(".git/index")).unwrap(), index);
    assert_eq!(git(&["rev-parse", "HEAD"]), tip);
}

/// Whether the machine's own configuration of git, which no test can switch off, says something.
fn system_config_says(name: &str) -> bool {
    let found = Command::new("git")
        .args(["config", "--system", "--get", name])
        .output()
        .unwrap();
    found.status.success()
}

#[test]
fn init_without_an_author_commits_nothing_and_says_how_to_name_one() {
    if ["user.name", "user.email", "init.defaultBranch"]
        .iter()
        .any(|name| system_config_says(name))
    {
        eprintln!("skipped: the machine's configuration of git names an author or a branch");
        return;
    }
    let place = Place::new();
    let new = place.directory.path().join("new");
    let left = place.output(&["init", new.to_str().unwrap()]);
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    let err = text(&left.stderr);
    assert!(err.contains("made     git repository on `main`"), "{err}");
    assert!(err.contains("hint: git config --global user.name"), "{err}");
    assert!(
        err.contains("hint: git config --global user.email"),
        "{err}"
    );
    assert!(!err.contains("  commit "), "{err}");
    assert_eq!(
        fs::read_to_string(new.join(".git/HEAD")).unwrap(),
        "ref: refs/heads/main\n"
    );
    assert!(!new.join(".git/index").exists());
    let other = place.directory.path().join("other");
    let left = place.output(&["init", "--no-git", other.to_str().unwrap()]);
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    assert!(text(&left.stderr).contains("`git init`"), "{left:?}");
    assert!(other.join("workers").exists() && !other.join(".git").exists());
}

#[test]
fn the_demonstration_ends_in_a_verified_commit_without_an_identity() {
    if system_config_says("user.name") {
        eprintln!("skipped: the machine's configuration of git names an author");
        return;
    }
    let place = Place::new();
    let temporary = place.directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let left = place
        .command(&["demo"])
        .env("TMPDIR", &temporary)
        .env("STATE_DIRECTORY", place.directory.path().join("foreign"))
        .env("TZ", "Asia/Tokyo")
        .output()
        .unwrap();
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    let (out, err) = (text(&left.stdout), text(&left.stderr));
    for part in [
        "✓ repo-steward/weekly-changes succeeded",
        "✓ the number of commits agrees with the history",
        "  - Commits: 1",
        "  ## Most changed files",
        "Run-Id: ",
        "-weekly-changes.md | +",
        "workerctl demo <demo@example.invalid>",
        "thread  /",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let made: Vec<PathBuf> = fs::read_dir(&temporary)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [root] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert!(
        err.contains(&format!("cd {}", root.canonicalize().unwrap().display())),
        "{err}"
    );
    assert!(!place.directory.path().join("foreign").exists());
    let log = Command::new("git")
        .args(["log", "--format=%an <%ae>"])
        .current_dir(root)
        .output()
        .unwrap();
    let author = "workerctl demo <demo@example.invalid>\n";
    assert_eq!(text(&log.stdout), author.repeat(2));
    // What it leaves is a workspace like any other.
    let left = place
        .command(&["check"])
        .current_dir(root)
        .output()
        .unwrap();
    assert_eq!(left.status.code(), Some(0), "{left:?}");
}

#[test]
fn the_demonstration_takes_only_a_directory_of_its_own() {
    let place = Place::new();
    let there = place.directory.path().join("there");
    let left = place.output(&["demo", there.to_str().unwrap(), "--json"]);
    assert_eq!(left.status.code(), Some(0), "{left:?}");
    let told: serde_json::Value = serde_json::from_slice(&left.stdout).unwrap();
    assert!(
        told["report"]
            .as_str()
            .unwrap()
            .starts_with("# Changes from"),
        "{told}"
    );
    assert!(told["run"]["summary"]["commit"].is_string(), "{told}");
    for args in [
        ["demo", there.to_str().unwrap()],
        ["demo", there.join("inner").to_str().unwrap()],
    ] {
        let left = place.output(&args);
        assert_eq!(left.status.code(), Some(8), "{left:?}");
    }
    assert!(!there.join("inner/workers").exists());
}

#[test]
fn a_text_that_its_shell_cannot_read_is_refused_and_nothing_is_stored() {
    let place = Place::new();
    place.worker(
        "  - {id: good, name: G, description: d, mutating: false, run: \"echo hello\"}\n\
         \x20 - id: bad\n\
         \x20   name: B\n\
         \x20   description: d\n\
         \x20   mutating: false\n\
         \x20   interface: {inputs: [{name: who, type: string, default: you}]}\n\
         \x20   run: |\n\
         \x20     echo one {who}\n\
         \x20     echo two )\n\
         \x20 - {id: check, name: C, description: d, mutating: false, run: \"true\", verification: [{command: \"if true\", description: never}]}\n\
         \x20 - {id: hook, name: H, description: d, mutating: true, run: \"true\", hooks: {post_commit: [\"for do\"]}}\n",
    );
    let left = place.output(&["check"]);
    assert_eq!(left.status.code(), Some(4), "{left:?}");
    let out = text(&left.stdout);
    assert_eq!(out.matches("error[shell-syntax]").count(), 3, "{out}");
    // The line within the block, and the line itself below it.
    assert!(out.contains("workers/w/worker.yaml:12:7"), "{out}");
    assert!(out.contains("echo two )"), "{out}");
    assert!(out.contains("hint: `/bin/sh -n` reports"), "{out}");
    for skill in ["bad", "check"] {
        for command in [["run", skill], ["render", skill]] {
            let left = place.output(&command);
            assert_eq!(left.status.code(), Some(4), "{left:?}");
            assert!(text(&left.stderr).contains("cannot read it"), "{left:?}");
        }
    }
    let left = place.output(&["run", "bad", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&left.stderr).unwrap();
    assert_eq!(told["error"]["code"], "shell_syntax", "{told}");
    assert_eq!(place.output(&["run", "good"]).status.code(), Some(0));
    let runs: serde_json::Value =
        serde_json::from_slice(&place.output(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
    assert!(
        fs::read_dir(place.workspace().join("state/secrets"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn hooks_of_the_configuration_and_missing_shells_are_told_by_check() {
    let place = Place::new();
    place.worker(
        "  - {id: a, name: A, description: d, mutating: false, shell: bash, run: \"echo a\", verification: [{command: \"echo b\", description: b}]}\n",
    );
    fs::write(
        place.workspace().join("workerctl.yaml"),
        "timezone: UTC\nhooks:\n  post_commit: [\"case x in\"]\n",
    )
    .unwrap();
    let left = place
        .command(&["check", "--json"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(left.status.code(), Some(4), "{left:?}");
    let told: serde_json::Value = serde_json::from_slice(&left.stdout).unwrap();
    let codes: Vec<(&str, &str)> = told["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["code"].as_str().unwrap(),
                one["place"]["path"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        codes,
        [
            ("shell-syntax", "workerctl.yaml"),
            ("shell-missing", "workers/w/worker.yaml")
        ],
        "{told}"
    );
}
