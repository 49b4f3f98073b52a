//! A place in a command at which it stands still until the test lets it pass.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::{PATIENCE, Workspace, wait_readable};

/// Two FIFOs in the home of the commands: `NAME.reached`, `NAME.pass`.
pub(crate) struct Gate {
    name: String,
    reached: File,
    pass: File,
    said: String,
}

impl Gate {
    /// Makes a gate in the home of a workspace.
    pub(crate) fn new(workspace: &Workspace, name: &str) -> Gate {
        let fifo = |ending: &str| {
            let path = workspace.home.join(format!("{name}.{ending}"));
            made(&path);
            // Open for both, so that no side ever waits for the other to come.
            OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(path)
                .unwrap()
        };
        Gate {
            name: name.to_owned(),
            reached: fifo("reached"),
            pass: fifo("pass"),
            said: String::new(),
        }
    }

    /// Shell text that says where it is and stands still.
    pub(crate) fn text(name: &str) -> String {
        format!(
            "echo \"$WORKERCTL_RUN $WORKERCTL_ATTEMPT\" > \"$HOME/{name}.reached\"; read -r _ < \"$HOME/{name}.pass\""
        )
    }

    /// Waits until a command stands here; answers its run and attempt.
    pub(crate) fn reached(&mut self) -> (String, u32) {
        let line = self
            .reached_within(PATIENCE)
            .unwrap_or_else(|| panic!("nothing came to the gate `{}`", self.name));
        let (run, attempt) = line.split_once(' ').unwrap();
        (run.to_owned(), attempt.parse().unwrap())
    }

    /// The line of a command that stands here; `None`: none came in time.
    pub(crate) fn reached_within(&mut self, patience: Duration) -> Option<String> {
        while !self.said.contains('\n') {
            if !wait_readable(&self.reached, patience) {
                return None;
            }
            let mut bytes = [0; 4_096];
            let count = self.reached.read(&mut bytes).unwrap();
            self.said
                .push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        let (line, rest) = self.said.split_once('\n').unwrap();
        let (line, rest) = (line.to_owned(), rest.to_owned());
        self.said = rest;
        Some(line)
    }

    /// Lets one command pass.
    pub(crate) fn pass(&mut self) {
        self.pass.write_all(b"\n").unwrap();
    }
}

/// A file that the engine itself reads or writes, where a FIFO takes its place: there it stands still.
pub(crate) struct Obstacle {
    path: PathBuf,
    aside: PathBuf,
}

impl Obstacle {
    /// At a file that git's configuration includes, so that the next use of the repository stands still.
    pub(crate) fn configuration(workspace: &Workspace) -> Obstacle {
        let config = workspace.home.join(".gitconfig");
        let mut config = OpenOptions::new().append(true).open(config).unwrap();
        config.write_all(b"[include]\n\tpath = included\n").unwrap();
        Obstacle::at(workspace, workspace.home.join("included"))
    }

    /// At this file, which exists or is made.
    pub(crate) fn at(workspace: &Workspace, path: PathBuf) -> Obstacle {
        let aside = workspace.home.join("aside");
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap();
        Obstacle { path, aside }
    }

    /// Shell text that puts the obstacle in its place.
    pub(crate) fn text(&self) -> String {
        let (path, aside) = (self.path.display(), self.aside.display());
        format!("mv {path} {aside} && mkfifo {path}")
    }

    /// Takes the obstacle away: what comes later finds the file.
    pub(crate) fn remove(&self) {
        let fifo = self.aside.with_extension("fifo");
        std::fs::hard_link(&self.path, &fifo).unwrap();
        std::fs::rename(&self.aside, &self.path).unwrap();
    }

    /// Lets whoever reads at the obstacle go on, with nothing read; false: nobody does.
    pub(crate) fn let_read(&self) -> bool {
        let fifo = self.aside.with_extension("fifo");
        let path = if fifo.exists() { &fifo } else { &self.path };
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(path);
        opened.is_ok()
    }
}

fn made(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
