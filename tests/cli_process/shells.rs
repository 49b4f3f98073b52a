//! What a shell and `man` are given: completions that know the workspace, manual pages.

use std::process::Child;

use super::*;

/// Calls the function that bash was given, as bash calls it, and prints what it offers.
const ASKED: &str = r#"
eval "$(workerctl completions bash)"
COMP_WORDS=(workerctl "$@"); COMP_CWORD=$#; COMP_TYPE=9
COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
_clap_complete_workerctl workerctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// What bash offers after these words, in a directory.
fn offered(place: &Place, directory: &Path, words: &[&str]) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_workerctl"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASKED, "bash"]).args(words);
    bash.current_dir(directory).env_clear().env("PATH", path);
    bash.env("HOME", place.directory.path().join("home"));
    let left = bash.stdin(Stdio::null()).output().unwrap();
    assert!(left.status.success() && left.stderr.is_empty(), "{left:?}");
    let lines = text(&left.stdout).lines();
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_know_commands_skills_workers_and_schedules_of_the_workspace_that_is_meant() {
    let place = Place::new();
    place.worker(
        "  - {id: greet, name: N, run: 'true', schedule: {id: hourly, cron: '0 * * * *'}}\n  - {id: grow, name: N, run: 'true'}\n",
    );
    let (inside, outside) = (place.workspace(), place.directory.path().to_owned());
    let ask = |words: &[&str]| offered(&place, &inside, words);
    assert_eq!(ask(&["ru"]), ["run", "runs"]);
    assert_eq!(ask(&["run", "w/gr"]), ["w/greet", "w/grow"]);
    assert_eq!(ask(&["run", "w/gre"]), ["w/greet"]);
    assert_eq!(ask(&["runs", "--skill", ""]), ["w/greet", "w/grow"]);
    assert_eq!(ask(&["runs", "--worker", ""]), ["w"]);
    assert_eq!(ask(&["schedule", "pause", "w/"]), ["w/greet#hourly"]);
    assert_eq!(ask(&["show", "la"]), ["latest"]);
    let elsewhere = offered(&place, &outside, &["-C", "ws", "run", "w/gre"]);
    assert_eq!(elsewhere, ["w/greet"]);
    assert_eq!(
        offered(&place, &outside, &["run", "w/gre"]),
        [] as [String; 0]
    );
    assert!(
        !inside.join("state").exists(),
        "asking leaves nothing behind"
    );
}

/// A daemon that does not outlive a test that fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn completions_offer_the_runs_of_the_daemon_with_what_they_were() {
    let place = Place::new();
    place.worker("  - {id: greet, name: N, run: 'true'}\n");
    let mut daemon = place.command(&["daemon"]);
    let mut daemon = Ended(daemon.stderr(Stdio::null()).spawn().unwrap());
    while !place.output(&["reload"]).status.success() {
        assert!(daemon.0.try_wait().unwrap().is_none(), "the daemon ended");
    }
    let run = place.output(&["run", "greet", "--quiet"]);
    assert!(run.status.success(), "{run:?}");
    let run = text(&place.output(&["runs", "--json"]).stdout).to_owned();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let id = run["runs"][0]["run"].as_str().unwrap().to_owned();
    assert!(offered(&place, &place.workspace(), &["show", ""]).contains(&id));
    assert!(place.output(&["drain"]).status.success());
    assert!(daemon.0.wait().unwrap().success());
}

#[test]
fn manual_pages_are_printed_and_written_for_every_command() {
    let place = Place::new();
    let page = place.output(&["man", "schedule", "next"]);
    let page = text(&page.stdout);
    assert!(page.contains(".TH workerctl-schedule-next 1"), "{page}");
    assert!(
        page.contains(".SH EXAMPLES\n  workerctl schedule next"),
        "{page}"
    );
    let unknown = place.output(&["man", "nope"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(
        text(&unknown.stderr),
        "error: there is no command `nope`\nhint: `workerctl --help` lists them\n"
    );
    assert!(place.output(&["man", "--to", "pages"]).status.success());
    let written = fs::read_dir(place.workspace().join("pages")).unwrap();
    let names: Vec<String> = written
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for expected in [
        "workerctl.1",
        "workerctl-run.1",
        "workerctl-schedule-next.1",
    ] {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
    let barred = place.output(&["man", "--to", "/proc/nothing"]);
    assert_eq!(barred.status.code(), Some(2), "{barred:?}");
}
