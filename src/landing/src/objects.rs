//! Checks of objects that a run made, as `git fsck` makes them: a skill can write any object, and one that is malformed
//! would keep everybody from fetching the branch that it landed on.

use std::collections::HashSet;

use git2::{ObjectType, Odb, Repository};

use crate::ids::{PATH_BYTES_MAX, RunId};

/// Names in a tree that git reads itself. A symbolic link as `.gitmodules` is refused too.
const READ_BY_GIT: [&str; 4] = [".gitmodules", ".gitattributes", ".gitignore", ".mailmap"];

/// Returns what is wrong with the first malformed object; `None` if all are sound.
pub(crate) fn first_problem(
    source: &Repository,
    objects: &[git2::Oid],
) -> Result<Option<&'static str>, git2::Error> {
    let odb = source.odb()?;
    for oid in objects {
        let problem = match odb.read_header(*oid)?.1 {
            ObjectType::Tree => of_tree(&odb, odb.read(*oid)?.data()),
            ObjectType::Commit if odb.read(*oid)?.data().contains(&0) => Some("a NUL in its text"),
            _ => None,
        };
        if problem.is_some() {
            return Ok(problem);
        }
    }
    Ok(None)
}

/// Returns the id of another run that the message of a new commit names in a trailer `Run-Id`: triggers and landings
/// believe this trailer. Commits that the real repository has already are not new.
pub(crate) fn run_named_by_others(
    source: &Repository,
    real: &Repository,
    objects: &[git2::Oid],
    run: &RunId,
) -> Result<Option<String>, git2::Error> {
    let known = real.odb()?;
    for oid in objects.iter().filter(|oid| !known.exists(**oid)) {
        let Ok(commit) = source.find_commit(*oid) else {
            continue;
        };
        let message = String::from_utf8_lossy(commit.message_bytes());
        let mut named = message.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim().eq_ignore_ascii_case("Run-Id")).then(|| value.trim().to_owned())
        });
        let own = run.to_string();
        if let Some(other) = named.find(|named| *named != own) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Returns what is wrong with a name in a tree, as `git fsck` has it.
fn bad_name(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("a tree with an empty name"),
        _ if name.contains(&b'/') => Some("a tree with a slash in a name"),
        _ if name.len() > PATH_BYTES_MAX => Some("a tree with a name of more than 4096 bytes"),
        _ if is_git_directory(name) => {
            Some("a tree with a name that some file systems take for `.git`")
        }
        _ => None,
    }
}

/// Returns true if a file system could take the name for `.git`: some ignore case, some drop invisible characters (HFS+),
/// some drop final dots and blanks, cut at a colon, or know the short name `git~1` (NTFS).
pub fn is_git_directory(name: &[u8]) -> bool {
    let name = on_disk(name);
    name == ".git" || name == "git~1"
}

/// Returns the name, in lower case, under which some file systems store a name.
fn on_disk(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let is_invisible = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let visible: String = text.chars().filter(|c| !is_invisible(c)).collect();
    let stem = visible.split(':').next().unwrap_or_default();
    stem.trim_end_matches([' ', '.']).to_ascii_lowercase()
}

/// The content of a tree is a list of `MODE NAME NUL ID`, with 20 bytes of id.
fn of_tree(odb: &Odb<'_>, content: &[u8]) -> Option<&'static str> {
    const CUT: Option<&str> = Some("a tree that is cut off");
    let (mut rest, mut names) = (content, HashSet::new());
    let mut former: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let Some(space) = rest.iter().position(|byte| *byte == b' ') else {
            return CUT;
        };
        let (mode, after) = (&rest[..space], &rest[space + 1..]);
        let Some(end) = after.iter().position(|byte| *byte == 0) else {
            return CUT;
        };
        let name = &after[..end];
        let Some((id, behind)) = after[end + 1..].split_at_checked(20) else {
            return CUT;
        };
        rest = behind;
        let kind = match mode {
            b"40000" => Some(ObjectType::Tree),
            b"100644" | b"100664" | b"100755" | b"120000" => Some(ObjectType::Blob),
            b"160000" => None,
            _ => return Some("a tree with an unknown mode"),
        };
        if let Some(why) = bad_name(name) {
            return Some(why);
        }
        if id.iter().all(|byte| *byte == 0) {
            return Some("a tree with an empty id");
        }
        let oid = git2::Oid::from_bytes(id).ok();
        let found = oid.and_then(|oid| odb.read_header(oid).ok());
        if kind.is_some_and(|kind| found.is_none_or(|(_, found)| found != kind)) {
            return Some("a tree whose modes do not fit its objects");
        }
        let read = on_disk(name);
        let is_read = READ_BY_GIT.contains(&read.as_str());
        if is_read && kind != Some(ObjectType::Blob) {
            return Some(
                "a directory or submodule with the name of a file that git reads, such as `.gitmodules`",
            );
        }
        if mode == b"120000" && read == READ_BY_GIT[0] {
            return Some("a symbolic link as `.gitmodules`");
        }
        // Git sorts directories as if their names ended with a slash.
        let mut key = name.to_vec();
        key.extend((mode == b"40000").then_some(b'/'));
        if !names.insert(name) || former.is_some_and(|former| former >= key) {
            return Some("a tree with entries twice or out of order");
        }
        former = Some(key);
    }
    None
}
