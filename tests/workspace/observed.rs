//! What can be seen from outside: files, processes, runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Workspace, eventually};

/// All files below a directory, sorted; `enter` says which paths are looked at.
pub(crate) fn files_below(directory: &Path, enter: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        // What goes while it is looked at was not there.
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if !enter(&path) {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                // The reserve of a store is 16 MiB of nothing.
                Ok(kind) if kind.is_file() && !path.ends_with("store/reserve") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Processes whose environment holds these bytes: id and command line.
pub(crate) fn processes_with(needle: &[u8]) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        if xtest::contains(&environment, needle) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

impl Workspace {
    /// Processes that this test has left, the daemon included.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let home = [b"HOME=", self.home.as_os_str().as_bytes(), b"\0"].concat();
        processes_with(&home)
    }

    /// Ends every process of this test.
    pub(crate) fn end_processes(&self) {
        eventually("the processes of this test end", || {
            let left = self.processes();
            for (pid, _) in &left {
                let pid = Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = kill_process(pid, Signal::KILL);
            }
            left.is_empty().then_some(())
        });
    }

    /// Asserts that none of its processes is left.
    pub(crate) fn expect_no_process(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "processes are left: {left:?}");
    }

    /// Locks of git's below its directory; what lies in the engine's own folder there locks nothing.
    pub(crate) fn locks(&self) -> Vec<PathBuf> {
        let own = self.root.join(".git/workerctl");
        let mut found = files_below(&self.root.join(".git"), &|path| path != own);
        found.retain(|path| path.extension().is_some_and(|ending| ending == "lock"));
        found.retain(|path| !path.ends_with("workerctl.lock"));
        found
    }

    /// All runs by id, as `runs` lists them.
    pub(crate) fn runs(&self) -> BTreeMap<String, Value> {
        let listed = self.json(&["runs", "-n", "10000"]);
        let runs = listed["runs"].as_array().unwrap().iter();
        runs.map(|run| (run["run"].as_str().unwrap().to_owned(), run.clone()))
            .collect()
    }

    /// One run in full.
    pub(crate) fn show(&self, run: &str) -> Value {
        self.json(&["show", run])
    }

    /// A run once it is in that phase, which it does not leave by itself.
    pub(crate) fn until_phase(&self, run: &str, phase: &str) -> Value {
        eventually("the run is there", || {
            let detail = self.show(run);
            let outcome = &detail["summary"]["outcome"];
            assert!(outcome.is_null(), "{detail}");
            (detail["summary"]["phase"] == phase).then_some(detail)
        })
    }

    /// Submits a run to the daemon and answers its id.
    pub(crate) fn submit(&self, arguments: &[&str]) -> String {
        let done = self.run(&[&["run", "--no-wait"], arguments].concat());
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
        done.stdout.trim().to_owned()
    }

    /// Waits for the end of a run; answers the exit code of `wait` and the run.
    pub(crate) fn wait(&self, run: &str) -> (i32, Value) {
        let done = self.run(&["wait", run, "--json"]);
        (done.code, done.value())
    }

    /// Waits until a run is in this phase.
    pub(crate) fn wait_for_phase(&self, run: &str, phase: &str) {
        eventually(&format!("{run} is {phase}"), || {
            (self.show(run)["summary"]["phase"] == phase).then_some(())
        });
    }

    /// Waits until a run has recorded this event.
    pub(crate) fn wait_for_event(&self, run: &str, event: &str) {
        eventually(&format!("{run} has recorded `{event}`"), || {
            let detail = self.show(run);
            let timeline = detail["timeline"].as_array().unwrap();
            timeline.iter().any(|one| one[1] == event).then_some(())
        });
    }

    /// Waits until nothing runs and nothing waits.
    pub(crate) fn wait_until_idle(&self) {
        let mut open = u64::MAX;
        let mut end = std::time::Instant::now() + super::PATIENCE;
        loop {
            let done = self.run(&["status", "--json"]);
            if done.code == 0 {
                let status = done.value();
                let count = |name: &str| status[name].as_u64().unwrap();
                let left = count("running") + count("queued") + count("backing_off_count");
                if left == 0 {
                    return;
                }
                // As long as runs end, it goes on.
                if left < open {
                    open = left;
                    end = std::time::Instant::now() + super::PATIENCE;
                }
            }
            assert!(
                std::time::Instant::now() < end,
                "{open} runs do not end: {}",
                self.run(&["status"]).stdout
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
