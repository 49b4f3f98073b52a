//! The machine's IANA data: what an update of its package changes here too.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use crate::model::Timestamp;
use crate::model::zone::{self, Zone};

/// Names the directory of the data for every program of the machine.
const DIRECTORY_VARIABLE: &str = "TZDIR";
/// Where distributions have the data.
const DIRECTORIES: [&str; 3] = ["/usr/share/zoneinfo", "/etc/zoneinfo", "/usr/lib/zoneinfo"];
/// Far more than the largest zone has.
const SIZE_MAX: u64 = 1 << 20;
/// Directories of the data whose files are no zones of their own: with leap seconds, or copies.
const NO_ZONES: [&str; 2] = ["right", "posix"];

/// A zone that has been named, and the file that its rules are from.
struct CachedZone {
    zone: Zone,
    file: Option<ZoneFileStamp>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ZoneFileStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

static KNOWN: RwLock<BTreeMap<String, CachedZone>> = RwLock::new(BTreeMap::new());

/// Which data hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Their directory; absent where the machine has none, and those that the program was built with hold.
    pub directory: Option<PathBuf>,
    /// Their version, such as `2026a`, where they say it.
    pub version: Option<String>,
    /// When the machine got them.
    pub since: Option<Timestamp>,
}

/// Has zones read from the machine's data from now on, and where it does not have one, from those that the program
/// was built with.
pub fn use_those_of_the_machine() {
    zone::look_up_by(named);
}

/// Which data hold.
pub fn data() -> Data {
    let Some(directory) = directory() else {
        return Data {
            directory: None,
            version: Some(zone::version_compiled_in().to_owned()),
            since: None,
        };
    };
    let written = fs::metadata(directory.join("UTC"))
        .and_then(|found| found.modified())
        .ok();
    let since = written.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Data {
        version: version(&directory),
        since: since.map(|since| {
            Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        }),
        directory: Some(directory),
    }
}

/// Reads the files anew that have changed; answers the zones whose rules are others now.
pub fn look_again() -> Vec<&'static str> {
    let mut changed = Vec::new();
    for (name, known) in known().iter_mut() {
        let file = directory().and_then(|directory| stamp(&directory.join(name)));
        if file == known.file {
            continue;
        }
        known.file = file;
        if let Some(read) = read(name).filter(|read| *read != known.zone) {
            known.zone = read;
            changed.push(read.name());
        }
    }
    if !changed.is_empty() {
        zone::rules_have_changed();
    }
    changed
}

fn known() -> RwLockWriteGuard<'static, BTreeMap<String, CachedZone>> {
    KNOWN.write().unwrap_or_else(PoisonError::into_inner)
}

fn named(name: &str) -> Option<Zone> {
    let all = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(name) {
        return Some(known.zone);
    }
    drop(all);
    // Of two that read it at once both find the first.
    let mut all = known();
    let zone = match all.get(name) {
        Some(known) => known.zone,
        None => read(name)?,
    };
    let file = directory().and_then(|directory| stamp(&directory.join(name)));
    all.entry(name.to_owned())
        .or_insert(CachedZone { zone, file });
    Some(zone)
}

fn read(name: &str) -> Option<Zone> {
    let of_machine = directory().filter(|_| may_be_zone(name));
    of_machine
        .and_then(|directory| content(&directory.join(name)))
        .and_then(|tzif| Zone::of(name, &tzif))
        .or_else(|| Zone::compiled_in(name))
}

/// Whether it is written as names of zones are, and so leads to no other file.
fn may_be_zone(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-_".contains(c))
    };
    name.split('/').all(is_part) && !NO_ZONES.contains(&name.split('/').next().unwrap_or(name))
}

fn content(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > SIZE_MAX {
        return None;
    }
    fs::read(path).ok()
}

fn stamp(path: &Path) -> Option<ZoneFileStamp> {
    let found = fs::metadata(path).ok()?;
    Some(ZoneFileStamp {
        device: found.dev(),
        inode: found.ino(),
        size: found.size(),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// The directory of the data; where one is named, as in the C library, no other.
fn directory() -> Option<PathBuf> {
    let has_data = |directory: &PathBuf| directory.join("UTC").is_file();
    match std::env::var_os(DIRECTORY_VARIABLE).filter(|named| !named.is_empty()) {
        Some(named) => Some(PathBuf::from(named)).filter(has_data),
        None => DIRECTORIES.map(PathBuf::from).into_iter().find(has_data),
    }
}

/// The first line of one file says `# version 2026a`; another, of other distributions, the version alone.
fn version(directory: &Path) -> Option<String> {
    let line = |name: &str| {
        let mut line = String::new();
        let file = fs::File::open(directory.join(name)).ok()?;
        BufReader::new(file).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    };
    let of_source = line("tzdata.zi");
    let of_source = of_source.and_then(|line| Some(line.strip_prefix("# version ")?.to_owned()));
    of_source.or_else(|| line("+VERSION"))
}
