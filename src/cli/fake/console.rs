//! A command line without a process around it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;

use super::{Fake, NOW};
use crate::cli::Cli;
use crate::cli::entry::concluded;
use crate::cli::exit::Exit;
use crate::cli::globals::Site;
use crate::cli::interrupts::{Interrupts, Listening, SignalCallback};
use crate::cli::io::{Io, Stream};
use crate::cli::session::{Accept, Engines, Session};
use crate::clock::FakeClock;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{Control, WebControl};

struct FakeEngines(Arc<Fake>);

impl Engines for FakeEngines {
    fn connect(&self, _: &Site, accept: Accept) -> Result<Arc<dyn Control>, Diagnostic> {
        if accept == Accept::RunningOnly && !self.0.daemon {
            return Err(Diagnostic::new(
                Kind::Unreachable,
                "no_engine",
                "no engine runs",
            ));
        }
        Ok(Arc::clone(&self.0) as Arc<dyn Control>)
    }

    fn serve(&self, _: &Site) -> Result<(), Diagnostic> {
        self.0.note("serve");
        Ok(())
    }

    fn init_store(&self, _: &Site) -> Result<(), Diagnostic> {
        unreachable!("no command of these tests makes a store")
    }

    fn web(&self, _: &Site) -> Result<Arc<dyn WebControl>, Diagnostic> {
        if !self.0.daemon {
            return Err(Diagnostic::new(
                Kind::Unreachable,
                "no_engine",
                "no engine runs",
            ));
        }
        Ok(Arc::clone(&self.0) as Arc<dyn WebControl>)
    }

    fn speak_mcp(&self, _: &Site) -> Result<(), Diagnostic> {
        self.0.note("speak_mcp");
        Ok(())
    }
}

impl Interrupts for FakeEngines {
    fn listen(&self, told: SignalCallback) -> std::io::Result<Listening> {
        *self.0.told.lock().unwrap() = Some(told);
        Ok(Listening::to_nothing())
    }
}

/// A command line in a workspace of its own.
pub(crate) struct Console {
    /// The engine.
    pub(crate) fake: Arc<Fake>,
    /// Whether both streams are terminals.
    pub(crate) terminal: bool,
    /// How wide it is.
    pub(crate) width: usize,
    /// What stands on standard input.
    pub(crate) input: Vec<u8>,
    /// Variables, beside who asks.
    pub(crate) environment: BTreeMap<String, String>,
    directory: xtest::TempDir,
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Left {
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
    /// The exit code.
    pub(crate) code: u8,
}

impl Console {
    /// In an empty workspace.
    pub(crate) fn new(fake: Fake) -> Console {
        let directory = xtest::tempdir();
        std::fs::create_dir(directory.path().join("workers")).unwrap();
        Console {
            fake: Arc::new(fake),
            terminal: false,
            width: 100,
            input: Vec::new(),
            environment: BTreeMap::new(),
            directory,
        }
    }

    /// The workspace.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// Performs a command line without its first word.
    pub(crate) fn perform(&self, line: &[&str]) -> Left {
        let args = ["workerctl"].iter().chain(line).map(OsString::from);
        let cli = Cli::try_parse_from(args).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let engines = FakeEngines(Arc::clone(&self.fake));
        let mut environment = self.environment.clone();
        environment.insert("USER".to_owned(), "ada".to_owned());
        let path = self.path();
        let mut session = Session {
            io: Io {
                out: Stream::new(&mut out, self.terminal, false).of_width(self.width),
                err: Stream::new(&mut err, self.terminal, false).of_width(self.width),
                input: &mut self.input.as_slice(),
                can_ask: self.terminal,
                width: self.width,
            },
            globals: &cli.globals,
            environment: &environment,
            cwd: &path,
            engines: &engines,
            interrupts: &engines,
            clock: &FakeClock::at(NOW),
        };
        let exit: Exit = concluded(&mut session, &cli.command);
        // What was told must not outlive the wait.
        *self.fake.told.lock().unwrap() = None;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Left {
            out: text(out),
            err: text(err),
            code: exit.code(),
        }
    }

    /// What the engine was asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.fake.asked.lock().unwrap().clone()
    }
}
