//! Ignore and attribute files of a run's tree, as far as the git library may read them.
//!
//! The library opens these files by their path: it follows links, waits for the writer of a FIFO, and takes exponential
//! time for some patterns. A command can write these files. So rules are evaluated in a shadow of the work tree, which
//! holds only copies of regular files that were checked before.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::ObjectType;
use rustix::fs::{FileType, Mode, openat};
use rustix::io::Errno;

use crate::error::{TreeError, io_at};
use crate::known::{FileStamp, Item, MODE_LINK, Manifest, hash};
use crate::model::ResultProblem;
use crate::place::{DIRECTORY, Names, kind_of, look, open_file};
use crate::problems;

/// The directory of the shadow, below the one of the rules.
const SHADOW: &str = "shadow";

/// Names of files that the library reads rules from.
const NAMES: [&[u8]; 2] = [b".gitignore", b".gitattributes"];

/// Largest file that a run may leave, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Largest file that is compared with the base, in bytes.
const BASE_BYTES_MAX: u64 = 100 << 20;

/// Most groups of `*` in a pattern that a run leaves.
const WILDCARDS_MAX: u32 = 4;

/// Most groups of `*` in a pattern of the base. A user wrote it, so the bound is only what a pattern never needs.
const BASE_WILDCARDS_MAX: u32 = 8;

/// Longest line, in bytes: as long as a path can be.
const LINE_MAX: usize = 4096;

/// Longest line that makes an exception, in bytes. The library matches it against every line before it.
const EXCEPTION_MAX: usize = 512;

/// Most steps of the matcher for one path, and most for reading one file, over all files that the run changed.
const STEPS_MAX: u64 = 2_000_000_000;
const READING_STEPS_MAX: u64 = 40_000_000_000;

/// Returns true if the library reads rules from a file of this name.
pub(crate) fn is_rule_file(name: &[u8]) -> bool {
    NAMES.contains(&name)
}

/// The shadow, and how much of the bounds is left.
#[derive(Debug)]
pub(crate) struct RuleFiles {
    place: PathBuf,
    bounds: RuleBounds,
}

/// How much of the bounds is left for the files that a run changed.
#[derive(Debug)]
pub(crate) struct RuleBounds {
    steps_left: u64,
}

impl Default for RuleBounds {
    fn default() -> Self {
        Self {
            steps_left: STEPS_MAX,
        }
    }
}

impl RuleFiles {
    /// Makes an empty shadow in the directory of the rules.
    pub(crate) fn new(rules: &Path) -> Result<Self, TreeError> {
        let place = rules.join(SHADOW);
        match fs::remove_dir_all(&place) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(io_at("remove", &place)(e));
            }
            _ => {}
        }
        fs::create_dir(&place).map_err(io_at("make the directory", &place))?;
        Ok(Self {
            place,
            bounds: RuleBounds::default(),
        })
    }

    /// The work tree in which rules are evaluated.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Copies the rule file at `path` into the shadow; `name` is its last part, in `dir`.
    ///
    /// Returns why the result must be refused, if it must be. The library sees no file then, nor for a link of the base,
    /// which git does not follow either.
    pub(crate) fn copy(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        manifest: &Manifest,
    ) -> Result<Option<ResultProblem>, TreeError> {
        let at = manifest.find(path).ok();
        let base = at.and_then(|at| manifest.known.get(at)?.wanted());
        let fail = io_at("read", Path::new(OsStr::from_bytes(path)));
        let refused = |why: &str| Ok(Some(problems::rule_file(path, None, why)));
        let stat = match look(dir, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(None),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(dir, name, Vec::new()).map_err(&fail)?;
                let oid = hash(ObjectType::Blob, target.as_bytes());
                let mode = MODE_LINK;
                let is_same = base.is_some_and(|base| base.is_same(Item { oid, mode }));
                return if is_same {
                    Ok(None)
                } else {
                    refused("is a symbolic link, which git does not follow")
                };
            }
            FileType::RegularFile => {}
            _ => return refused("is no regular file"),
        }
        let file = match open_file(dir, name) {
            Ok(file) => File::from(file),
            Err(Errno::ACCESS) => return refused("cannot be read"),
            Err(e) => return Err(fail(e)),
        };
        let is_known = at.is_some_and(|at| manifest.believes(at, &FileStamp::of(&stat)));
        let wanted = base.filter(|base| base.mode != MODE_LINK);
        // What the base has may be longer than what a run may leave.
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        if length > BASE_BYTES_MAX || !is_known && wanted.is_none() && length > BYTES_MAX {
            return refused("is larger than 1 MiB");
        }
        let mut content = Vec::new();
        let read = file
            .take(length.saturating_add(1))
            .read_to_end(&mut content);
        read.map_err(io_at("read", Path::new(OsStr::from_bytes(path))))?;
        let is_base = || wanted.is_some_and(|base| base.oid == hash(ObjectType::Blob, &content));
        let problem = if is_known || is_base() {
            check_base(path, &content)
        } else {
            self.bounds.check(path, &content)
        };
        if problem.is_none() {
            let to = self.place.join(OsStr::from_bytes(path));
            if let Some(above) = to.parent() {
                fs::create_dir_all(above).map_err(io_at("make the directory", above))?;
            }
            fs::write(&to, &content).map_err(io_at("write", &to))?;
        }
        Ok(problem)
    }
}

impl RuleBounds {
    /// Returns why the library must not read the rules below a directory that is another repository's work tree.
    pub(crate) fn check_below(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &mut Vec<u8>,
    ) -> Option<String> {
        let Ok(names) = Names::read(dir) else {
            return Some(format!("`{}` cannot be read", problems::escape(path)));
        };
        let length = path.len();
        for (name, kind) in names.iter().filter(|(name, _)| *name != b".git") {
            path.truncate(length);
            path.extend_from_slice(name);
            if is_rule_file(name) || name == b".gitmodules" {
                if let Some(why) = self.check_at(dir, name, path) {
                    return Some(why);
                }
            } else if kind_of(dir, name, kind).is_ok_and(FileType::is_dir) {
                let Ok(inner) = openat(dir, name, DIRECTORY, Mode::empty()) else {
                    continue;
                };
                path.push(b'/');
                let is_too_deep = path.len() > LINE_MAX;
                if is_too_deep {
                    return Some("a path in it is too long".to_owned());
                }
                if let Some(why) = self.check_below(inner.as_fd(), path) {
                    return Some(why);
                }
            }
        }
        path.truncate(length);
        None
    }

    fn check_at(&mut self, dir: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Option<String> {
        let kind = look(dir, name).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind.is_ok_and(FileType::is_dir) {
            return None;
        }
        let shown = problems::escape(path);
        let is_regular = kind == Ok(FileType::RegularFile);
        let Some(file) = is_regular.then(|| open_file(dir, name).ok()).flatten() else {
            return Some(format!("`{shown}` is no regular file that can be read"));
        };
        let mut content = Vec::new();
        let read = File::from(file)
            .take(BYTES_MAX + 1)
            .read_to_end(&mut content);
        if read.is_err() {
            return Some(format!("`{shown}` cannot be read"));
        }
        self.check(path, &content).map(|problem| problem.message)
    }

    /// Returns why a file that a run wrote cannot be read by the library.
    pub(crate) fn check(&mut self, path: &[u8], content: &[u8]) -> Option<ResultProblem> {
        if content.len() as u64 > BYTES_MAX {
            return Some(problems::rule_file(path, None, "is larger than 1 MiB"));
        }
        let (mut steps, mut exceptions) = (0_u64, 1_u64);
        for (number, line) in (1..).zip(content.split(|byte| *byte == b'\n')) {
            let refused = |why: &str| Some(problems::rule_file(path, Some(number), why));
            let wildcards = wildcards_in(line);
            // A macro may name macros, so a few lines can stand for any number of attributes.
            if path.ends_with(b".gitattributes") && line.trim_ascii_start().starts_with(b"[attr]") {
                return refused("defines a macro (`[attr]`)");
            }
            let is_exception = line.starts_with(b"!");
            exceptions += u64::from(is_exception);
            if line.len() > LINE_MAX || is_exception && line.len() > EXCEPTION_MAX {
                return refused("has a line that is too long");
            }
            if wildcards > WILDCARDS_MAX {
                return refused("has a pattern with more than 4 wildcards");
            }
            steps = steps.saturating_add(steps_of(wildcards));
        }
        self.steps_left = match self.steps_left.checked_sub(steps) {
            Some(left) if steps.saturating_mul(exceptions) <= READING_STEPS_MAX => left,
            _ => {
                let why = "has too many patterns with several wildcards";
                return Some(problems::rule_file(path, None, why));
            }
        };
        None
    }
}

fn check_base(path: &[u8], content: &[u8]) -> Option<ResultProblem> {
    let mut lines = (1..).zip(content.split(|byte| *byte == b'\n'));
    let (number, _) = lines.find(|(_, line)| wildcards_in(line) > BASE_WILDCARDS_MAX)?;
    let why = "has a pattern with more than 8 wildcards";
    Some(problems::rule_file(path, Some(number), why))
}

/// The groups of `*` in the pattern of a line.
fn wildcards_in(line: &[u8]) -> u32 {
    let (mut count, mut is_escaped, mut is_in_group) = (0, false, false);
    if line.starts_with(b"#") {
        return 0;
    }
    for byte in line {
        let is_star = *byte == b'*' && !is_escaped;
        count += u32::from(is_star && !is_in_group);
        is_in_group = is_star;
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    count
}

/// About the most steps that the library's matcher takes for a pattern: it tries every place in a name of 255 bytes for
/// each group, and the places of the later groups come after those of the former.
fn steps_of(wildcards: u32) -> u64 {
    (1..=u64::from(wildcards)).fold(1, |steps, group| steps * (256 - group) / group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_wildcards_are_counted_and_escaped_ones_are_not() {
        for (line, count) in [
            ("", 0),
            ("# *a*b*c*d*e", 0),
            ("*.o", 1),
            ("**/a/**/b*", 3),
            (r"\*a\\*b", 1),
            ("*?*?*", 3),
            ("!*a***b", 2),
        ] {
            assert_eq!(wildcards_in(line.as_bytes()), count, "{line}");
        }
    }

    #[test]
    fn only_patterns_that_take_long_are_refused() {
        let check = |text: &str| {
            let found = RuleBounds::default().check(b"d/.gitignore", text.as_bytes());
            found.map(|problem| problem.message)
        };
        let usual = "target/\n*.py[cod]\n.*crunch*.local.xml\n**/[Pp]ackages/**/*.dll\n!keep\n";
        assert_eq!(check(&usual.repeat(20)), None);
        let refused = check("ok\n*a*a*a*a*ab\n").unwrap();
        assert!(refused.contains("`d/.gitignore` line 2"), "{refused}");
        let attributes = RuleBounds::default().check(b".gitattributes", b"[attr]a b b\n");
        assert!(attributes.unwrap().message.contains("defines a macro"));
        for long in [
            "*a*a*a*ab\n".repeat(100),
            "a\n".repeat(1 << 20),
            format!("!{}", "a".repeat(600)),
            "*a*ab\n!x\n".repeat(50_000),
        ] {
            assert!(check(&long).is_some());
        }
    }
}
