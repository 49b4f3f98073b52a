//! Where a landing is recorded, and who watches its steps.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::outcome::MetFile;
use crate::plan::Plan;

/// The durable record of landings. Each call returns only once what it records survives a power cut.
pub trait Journal {
    /// The landing begins: from now on it wants recovery.
    fn started(&mut self, plan: &Plan) -> io::Result<()>;
    /// It is done; what was exchanged out stays in the staging folder until it is cleared.
    fn landed(&mut self, plan: &Plan) -> io::Result<()>;
    /// Everything was taken back, except for what is named.
    fn taken_back(&mut self, plan: &Plan, left: &[MetFile]) -> io::Result<()>;
}

/// Told of each effect before it happens.
pub trait Observer {
    /// The step that comes next.
    fn before(&self, step: &str);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn before(&self, _step: &str) {}
}

/// One line of a [`FileJournal`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    /// The landing began.
    LandingStarted {
        /// Its plan.
        plan: Box<Plan>,
    },
    /// It is done.
    Landed,
    /// It was taken back.
    TakenBack {
        /// What could not be.
        left: Vec<MetFile>,
    },
}

/// A journal of one run's landings in a file of its own.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
}

impl FileJournal {
    /// The journal in this file, which need not exist.
    pub fn new(path: &Path) -> Self {
        let path = path.to_owned();
        Self { path }
    }

    /// The plan that was started and neither landed nor was taken back.
    pub fn open_plan(&self) -> io::Result<Option<Plan>> {
        let mut open = None;
        for record in self.records()? {
            open = match record {
                Record::LandingStarted { plan } => Some(*plan),
                Record::Landed | Record::TakenBack { .. } => None,
            };
        }
        Ok(open)
    }

    /// Everything recorded. A last line without its end was never acknowledged and does not count.
    pub fn records(&self) -> io::Result<Vec<Record>> {
        let mut text = String::new();
        match opened(&self.path, OpenOptions::new().read(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            found => {
                found?.read_to_string(&mut text)?;
            }
        }
        let lines = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        let read = |line: &str| serde_json::from_str(line).map_err(io::Error::other);
        lines.map(read).collect()
    }

    fn append(&self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = opened(&self.path, OpenOptions::new().append(true).create(true))?;
        let is_new = file.metadata()?.len() == 0;
        file.write_all(&line)?;
        file.sync_all()?;
        // The name of a new file is durable with its directory only.
        match self.path.parent() {
            Some(dir) if is_new => File::open(dir)?.sync_all(),
            _ => Ok(()),
        }
    }
}

/// Opens a regular file. A symbolic link or a pipe in its place is an error, so that nothing else is read or written
/// and nobody waits for another program.
fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}

impl Journal for FileJournal {
    fn started(&mut self, plan: &Plan) -> io::Result<()> {
        let plan = Box::new(plan.clone());
        self.append(&Record::LandingStarted { plan })
    }

    fn landed(&mut self, _plan: &Plan) -> io::Result<()> {
        self.append(&Record::Landed)
    }

    fn taken_back(&mut self, _plan: &Plan, left: &[MetFile]) -> io::Result<()> {
        let left = left.to_vec();
        self.append(&Record::TakenBack { left })
    }
}
