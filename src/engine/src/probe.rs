//! What skills need, tried in the engine's own process and in a command of its: under a service manager both may be
//! forbidden what a person's shell may do.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::outputs::{OutputError, SandboxedDir};
use super::run_factory::RunFactory;
use crate::git::{self, GitError};
use crate::model::diagnostic::chain;
use crate::process;
use crate::protocol::Probe;
use crate::store::lock::WORKSPACE_FOLDER;

/// How long the command may take that is tried.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Prints the line of the kernel's limits that holds the mark; by the shell alone.
const COMMAND: &str = r#"while read -r line; do case "$line" in "Max file locks"*) echo "$line" ;; esac; done < /proc/self/limits"#;

/// Set by systemd for every service.
const OF_SERVICE: &str = "INVOCATION_ID";

/// Directories that `ProtectHome=` hides.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// The places of an engine.
pub(super) struct SkillProbe<'a> {
    workspace: &'a Path,
    state_dir: &'a Path,
    environment: &'a BTreeMap<String, String>,
}

type Failure = Box<dyn Error>;

impl<'a> SkillProbe<'a> {
    /// Those that the engine works with.
    pub(super) fn of(factory: &'a RunFactory) -> SkillProbe<'a> {
        SkillProbe {
            workspace: &factory.workspace,
            state_dir: &factory.state_dir,
            environment: &factory.environment,
        }
    }

    /// Tries everything that skills need; nothing of it stays.
    pub(super) fn probe(&self) -> Vec<Probe> {
        let (scratch, temporary) = (self.state_dir.join("scratch"), std::env::temp_dir());
        let in_files = "temporary files can be written in";
        let tried = [
            (
                "output",
                "outputs can be written in",
                self.workspace,
                output(self.workspace),
            ),
            (
                "command",
                "commands can be started and marked in",
                self.workspace,
                self.command(),
            ),
            ("temporary", in_files, &scratch, file_in(&scratch)),
            ("temporary", in_files, &temporary, file_in(&temporary)),
            (
                "state",
                "the state can be written in",
                self.state_dir,
                file_in(self.state_dir),
            ),
        ];
        let told = tried.iter();
        let told = told.map(|(what, can, place, tried)| self.told(what, can, place, tried));
        told.chain(self.repository()).chain([walls()]).collect()
    }

    /// None where there is no repository: only mutating skills need one, and that does not depend on who looks.
    fn repository(&self) -> Option<Probe> {
        let what = "repository";
        match git::locate(self.workspace) {
            Ok(facts) => {
                let tried = file_in(&facts.common_dir).and_then(|()| file_in(&facts.git_dir));
                Some(self.told(what, "commits can be written to", &facts.common_dir, &tried))
            }
            Err(GitError::NotARepository(_)) => None,
            Err(error) => Some(Probe {
                subject: what.to_owned(),
                ok: false,
                message: format!(
                    "the repository of {} cannot be opened: {}",
                    self.workspace.display(),
                    chain(&error)
                ),
                hints: error.hint().into_iter().collect(),
            }),
        }
    }

    fn told(&self, what: &str, can: &str, place: &Path, tried: &Result<(), Failure>) -> Probe {
        let place_shown = place.display();
        let (message, hints) = match tried {
            Ok(()) => (format!("{can} {place_shown}"), Vec::new()),
            Err(error) => {
                let cannot = can.replacen(" can ", " cannot ", 1);
                let message = format!("{cannot} {place_shown}: {}", chain(error.as_ref()));
                let is_service = self.environment.contains_key(OF_SERVICE);
                (
                    message,
                    hint(error.as_ref(), place, is_service)
                        .into_iter()
                        .collect(),
                )
            }
        };
        Probe {
            subject: what.to_owned(),
            ok: tried.is_ok(),
            message,
            hints,
        }
    }

    /// A command starts in the workspace, and carries the mark by which what it leaves behind is found again.
    fn command(&self) -> Result<(), Failure> {
        let owner = process::Owner {
            run: "probe".to_owned(),
            attempt: number(),
        };
        let command = process::Command {
            program: process::Program::Shell {
                shell: PathBuf::from("sh"),
                text: COMMAND.to_owned(),
            },
            cwd: self.workspace.to_owned(),
            env: process::environment(self.environment, self.state_dir, [], &owner),
            stdin: process::Stdin::Null,
            stdout_file: None,
            scratch: None,
            limits: process::Limits {
                timeout: Some(TIMEOUT),
                ..process::Limits::default()
            },
            owner,
            may_control: false,
            wall: None,
        };
        let mut said = ProbeOutput(String::new());
        let finished = process::run(&command, &process::StopHandle::new(), &mut said)?;
        if finished.status != process::ExitStatus::Exited(0) {
            return Err(format!("`sh` ended with {:?}: {}", finished.status, said.0.trim()).into());
        }
        let mark = said.0.split_whitespace().nth(3);
        match mark.map(str::parse::<u64>) {
            Some(Ok(_)) => Ok(()),
            _ => Err(Box::new(OutputError::Io {
                step: "mark a process of",
                path: "sh".to_owned(),
                source: Errno::PERM.into(),
            })),
        }
    }
}

/// The highest level of the sandbox that commands can have here. That it is low is no failure: a skill that insists on
/// more says so.
fn walls() -> Probe {
    let abi = process::landlock_abi();
    let none = "commands run without a sandbox of the kernel (sandbox level 0)";
    let (message, hint) = if !process::walls_stand() {
        let hint = "use Linux 6.2 or later with Landlock enabled";
        (format!("{none}: Landlock ABI {abi}"), Some(hint.to_owned()))
    } else if let Err(error) = process::containers_stand() {
        let level = format!("commands run in a sandbox (level 1, Landlock ABI {abi})");
        (
            format!("{level}; `sandbox: private` cannot be had: {error}"),
            None,
        )
    } else {
        let levels = "commands run in a sandbox, also in containers (levels 1 and 2";
        (format!("{levels}, Landlock ABI {abi})"), None)
    };
    Probe {
        subject: "sandbox".to_owned(),
        ok: true,
        message,
        hints: hint.into_iter().collect(),
    }
}

/// Writes an output as runs do, in the directory of ours that no run takes for its own change.
fn output(workspace: &Path) -> Result<(), Failure> {
    let path = format!(
        "{WORKSPACE_FOLDER}/probe-{}-{}",
        std::process::id(),
        number()
    );
    let part = format!("{path}.part");
    let sandboxed_dir = SandboxedDir::open(workspace)?;
    sandboxed_dir.make_parents(&path)?;
    let written = File::create_new(workspace.join(&part))
        .and_then(|mut file| file.write_all(b"probe\n"))
        .map_err(Failure::from)
        .and_then(|()| Ok(sandboxed_dir.publish(&part, &path)?))
        .and_then(|()| match sandboxed_dir.stamp(&path)? {
            Some(_) => Ok(()),
            None => Err("what was written is not there".into()),
        });
    let removed = sandboxed_dir
        .discard(&part)
        .and_then(|()| sandboxed_dir.discard(&path));
    written.and_then(|()| Ok(removed?))
}

/// Writes a file, syncs it and removes it.
fn file_in(directory: &Path) -> Result<(), Failure> {
    let path = directory.join(format!(
        "workerctl-probe-{}-{}",
        std::process::id(),
        number()
    ));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(b"probe\n")?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written?;
    Ok(removed?)
}

/// Another one at each call, so that two that ask at once do not meet.
fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

struct ProbeOutput(String);

impl process::OutputSink for ProbeOutput {
    fn line(&mut self, _: process::Stream, bytes: &[u8], more: bool) {
        self.0.push_str(&String::from_utf8_lossy(bytes));
        if !more {
            self.0.push('\n');
        }
    }
}

/// The answer of the kernel that an error stems from.
fn errno_of(error: &(dyn Error + 'static)) -> Option<Errno> {
    match error.downcast_ref::<io::Error>() {
        Some(cause) => Errno::from_io_error(cause),
        None => errno_of(error.source()?),
    }
}

/// What forbids it, as far as the kernel's answer tells.
fn hint(error: &(dyn Error + 'static), place: &Path, is_service: bool) -> Option<String> {
    let errno = errno_of(error)?;
    let shown = place.display();
    let is_hidden = HOMES.iter().any(|home| place.starts_with(home));
    let of_unit = match errno {
        Errno::ROFS => format!(
            "`ProtectSystem=` of the unit makes it read-only: add `ReadWritePaths={shown}`, or look at how it is mounted"
        ),
        Errno::NOENT | Errno::ACCESS if is_hidden => format!(
            "`ProtectHome=` of the unit hides it: move what is in {shown}, or set `ProtectHome=no`"
        ),
        Errno::ACCESS => format!(
            "the account of `User=` in the unit may not do that: give it {shown}, or name another account"
        ),
        Errno::NOSYS | Errno::PERM => "`SystemCallFilter=`, `RestrictSUIDSGID=` or another `Restrict…=` of the unit refuses the system call: \
            take out the lines that you added to the unit that `workerctl daemon unit` shows"
            .to_owned(),
        Errno::AGAIN => "`TasksMax=` or `LimitNPROC=` of the unit is reached: raise it".to_owned(),
        Errno::NOMEM => "`MemoryMax=` of the unit is reached: raise it".to_owned(),
        Errno::MFILE => "`LimitNOFILE=` of the unit is reached: raise it".to_owned(),
        Errno::NOSPC | Errno::DQUOT => return Some("free some space".to_owned()),
        _ => return None,
    };
    if is_service {
        return Some(of_unit);
    }
    matches!(errno, Errno::ROFS | Errno::ACCESS)
        .then(|| format!("make {shown} writable for the account that the engine runs as"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(workspace: &Path, state_dir: &Path) -> Vec<Probe> {
        let environment = BTreeMap::from([(OF_SERVICE.to_owned(), "x".to_owned())]);
        let places = SkillProbe {
            workspace,
            state_dir,
            environment: &environment,
        };
        places.probe()
    }

    #[test]
    fn everything_works_here_and_nothing_is_left() {
        let workspace = xtest::tempdir();
        let state = xtest::tempdir();
        fs::create_dir(state.path().join("scratch")).unwrap();
        let probes = probe(workspace.path(), state.path());
        let names: Vec<_> = probes.iter().map(|probe| probe.subject.as_str()).collect();
        assert_eq!(
            names,
            [
                "output",
                "command",
                "temporary",
                "temporary",
                "state",
                "sandbox"
            ]
        );
        assert!(probes.iter().all(|probe| probe.ok), "{probes:?}");
        let left = |path: PathBuf| fs::read_dir(path).unwrap().count();
        assert_eq!(left(workspace.path().join(WORKSPACE_FOLDER)), 0);
        assert_eq!(left(state.path().join("scratch")), 0);
        assert_eq!(left(state.path().to_owned()), 1);
    }

    #[test]
    fn what_fails_is_told_with_its_place() {
        let workspace = xtest::tempdir();
        fs::write(workspace.path().join(WORKSPACE_FOLDER), "in the way").unwrap();
        let state = workspace.path().join("none");
        let probes = probe(workspace.path(), &state);
        let failed: Vec<_> = probes.iter().filter(|probe| !probe.ok).collect();
        let names: Vec<_> = failed.iter().map(|probe| probe.subject.as_str()).collect();
        assert_eq!(names, ["output", "temporary", "state"]);
        assert!(
            failed[0]
                .message
                .starts_with("outputs cannot be written in /")
        );
        assert!(failed[2].message.contains("No such file"), "{failed:?}");
    }

    #[test]
    fn the_line_of_the_unit_is_named_where_the_answer_tells_it() {
        let asked = |errno: Errno, place: &str, is_service| {
            let error = OutputError::Io {
                step: "open",
                path: "x".to_owned(),
                source: errno.into(),
            };
            hint(&error, Path::new(place), is_service).unwrap_or_default()
        };
        for (errno, place, line) in [
            (Errno::ROFS, "/srv/x", "`ReadWritePaths=/srv/x`"),
            (Errno::ACCESS, "/home/ada", "`ProtectHome=`"),
            (Errno::ACCESS, "/srv/x", "`User=`"),
            (Errno::NOSYS, "/srv/x", "`SystemCallFilter=`"),
            (Errno::PERM, "/srv/x", "`RestrictSUIDSGID=`"),
            (Errno::AGAIN, "/srv/x", "`TasksMax=`"),
        ] {
            let told = asked(errno, place, true);
            assert!(told.contains(line), "{errno:?}: {told}");
            // Without a service manager there is no unit to change.
            assert!(!asked(errno, place, false).contains("unit"), "{errno:?}");
        }
    }
}
