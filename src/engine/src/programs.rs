//! Agent programs that are installed where this process runs.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::agent::PROGRAMS;
use crate::process::{self, Owner, Stream};

/// Longest time in which a program has to tell its version; those in Node take a second or two.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// An agent program that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Its name in definitions.
    pub cli: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Its version, if it tells one in time.
    pub version: Option<String>,
    /// The version that was tried with this program.
    pub tried: Option<&'static str>,
}

/// Looks for all known programs on the path, and asks each for its version.
pub fn installed_programs(environment: &BTreeMap<String, String>) -> Vec<InstalledProgram> {
    let path = environment.get("PATH").map_or("", String::as_str);
    let found = PROGRAMS.into_iter().filter_map(|cli| {
        let path = path
            .split(':')
            .map(|directory| Path::new(directory).join(cli))
            .find(|path| is_program(path))?;
        Some(InstalledProgram {
            cli,
            version: version(&path, environment),
            path,
            tried: tried(cli),
        })
    });
    found.collect()
}

fn is_program(path: &Path) -> bool {
    let found = path.metadata();
    path.is_absolute()
        && found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(feature = "llm")]
fn tried(cli: &str) -> Option<&'static str> {
    workerctl_agent::cli::Known::named(cli)?.tried()
}

#[cfg(not(feature = "llm"))]
const fn tried(_cli: &str) -> Option<&'static str> {
    None
}

/// The first number with points in what `--version` prints.
fn version(program: &Path, environment: &BTreeMap<String, String>) -> Option<String> {
    let temporary = std::env::temp_dir();
    let owner = Owner {
        run: "probe".to_owned(),
        attempt: 0,
    };
    let command = process::Command {
        program: process::Program::Argv(vec![program.to_str()?.to_owned(), "--version".to_owned()]),
        cwd: PathBuf::from("/"),
        env: process::environment(environment, &temporary, [], &owner),
        stdin: process::Stdin::Null,
        stdout_file: None,
        scratch: None,
        limits: process::Limits {
            timeout: Some(VERSION_WAIT),
            grace: Duration::ZERO,
            output_bytes_max: 4 * 1024,
            ..process::Limits::default()
        },
        owner,
        may_control: false,
        wall: None,
    };
    let mut said = Said(String::new());
    process::run(&command, &process::StopHandle::new(), &mut said).ok()?;
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    said.0
        .split_whitespace()
        .find(is_version)
        .map(str::to_owned)
}

struct Said(String);

impl process::OutputSink for Said {
    fn line(&mut self, stream: Stream, bytes: &[u8], _more: bool) {
        if stream == Stream::Stdout {
            self.0.push_str(&String::from_utf8_lossy(bytes));
            self.0.push('\n');
        }
    }
}
