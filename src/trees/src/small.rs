//! The small repository of a tree, and the rules beside it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use sha1::{Digest, Sha1};
use workerctl_landing::ids::PATH_COMPONENTS_MAX;
use workerctl_landing::{is_whole_object, remove_derived, setting};

use crate::error::{TreeError, io_at};
use crate::index;
use crate::keep::Keep;
use crate::known::Manifest;
use crate::model::Base;
use crate::place::{Names, kind_of, look, open_child, open_file, open_root};
use crate::real::{Real, read_optional};

/// Begins the names of copies of scripts that the engine lays into a tree while they run; git ignores them there.
pub const SCRIPT_COPY: &str = ".workerctl-script-";

/// The files of ours that decide how git sees a tree.
pub(crate) struct Settings {
    /// Of the small repository.
    config: String,
    /// Of the rules.
    rules: String,
    exclude: Vec<u8>,
    attributes: Vec<u8>,
    alternates: Vec<u8>,
    /// Commits whose parents the real repository lacks.
    shallow: Vec<u8>,
}

/// The name of the small repository's settings beside those of the rules.
const RUN_CONFIG: &str = "run-config";

/// The name of the small repository's `shallow` beside the rules.
const RUN_SHALLOW: &str = "run-shallow";

impl Settings {
    pub(crate) fn read(
        real: &Real,
        base: &Base<'_>,
        workdir: &Path,
        keep: &Keep,
    ) -> Result<Self, TreeError> {
        let plain = real.settings(base.target)?;
        let mut config = plain.clone();
        setting(&mut config, "core.hooksPath", Some("/dev/null"));
        for (role, (name, email)) in [
            ("user", base.author),
            ("author", base.author),
            ("committer", base.committer),
        ] {
            setting(&mut config, &format!("{role}.name"), Some(name));
            setting(&mut config, &format!("{role}.email"), Some(email));
        }
        let mut rules = plain;
        setting(
            &mut rules,
            "core.worktree",
            Some(&workdir.to_string_lossy()),
        );
        let mut exclude = read_optional(&real.common.join("info/exclude"))?;
        exclude.extend_from_slice(format!("\n{SCRIPT_COPY}*\n").as_bytes());
        keep.paths()
            .for_each(|path| exclude_line(path, &mut exclude));
        let mut alternates = Vec::new();
        for dir in real.object_directories() {
            alternates.extend_from_slice(dir.as_os_str().as_bytes());
            alternates.push(b'\n');
        }
        Ok(Self {
            config,
            rules,
            exclude,
            attributes: read_optional(&real.common.join("info/attributes"))?,
            alternates,
            shallow: read_optional(&real.common.join("shallow"))?,
        })
    }

    /// Writes the rules anew. They see the base's attribute files through an index of their own.
    pub(crate) fn write_rules(&self, dir: &Path, manifest: &Manifest) -> Result<(), TreeError> {
        match fs::remove_dir_all(dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_at("remove", dir)(e)),
            _ => {}
        }
        make_skeleton(dir)?;
        put(&dir.join("HEAD"), b"ref: refs/heads/none\n")?;
        put(&dir.join("config"), self.rules.as_bytes())?;
        put(&dir.join(RUN_CONFIG), self.config.as_bytes())?;
        put(&dir.join(RUN_SHALLOW), &self.shallow)?;
        put(&dir.join("info/exclude"), &self.exclude)?;
        put(&dir.join("info/attributes"), &self.attributes)?;
        put(&dir.join("objects/info/alternates"), &self.alternates)?;
        let mut attributes = Manifest::empty(manifest.tree);
        let is_rule = |path: &[u8]| {
            path.strip_suffix(b".gitattributes")
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/"))
        };
        for known in manifest.known.iter().filter(|known| is_rule(&known.path)) {
            attributes.known.push(known.clone());
            attributes.stamps.push(None);
        }
        let stat = rustix::fs::stat(dir).map_err(io_at("look at", dir))?;
        put(&dir.join("index"), &index::encode(&attributes, &stat))
    }

    /// Hides what was laid over and is not of the base, in the rules too.
    pub(crate) fn hide_laid(&mut self, manifest: &Manifest, rules: &Path) -> Result<(), TreeError> {
        let laid = manifest.known.iter().filter(|known| known.base.is_none());
        laid.for_each(|known| exclude_line(&known.path, &mut self.exclude));
        let path = rules.join("info/exclude");
        fs::write(&path, &self.exclude).map_err(io_at("write", &path))
    }

    /// Builds the small repository at a place of its own.
    pub(crate) fn build(
        &self,
        dir: &Path,
        real: &Real,
        base: &Base<'_>,
        index: &[u8],
    ) -> Result<(), TreeError> {
        make_skeleton(dir)?;
        put(
            &dir.join("HEAD"),
            format!("ref: {}\n", base.target).as_bytes(),
        )?;
        put(&dir.join("config"), self.config.as_bytes())?;
        put(&dir.join("info/exclude"), &self.exclude)?;
        if !self.attributes.is_empty() {
            put(&dir.join("info/attributes"), &self.attributes)?;
        }
        put(&dir.join("objects/info/alternates"), &self.alternates)?;
        if !self.shallow.is_empty() {
            put(&dir.join("shallow"), &self.shallow)?;
        }
        let references = real.references(base)?;
        let mut packed = b"# pack-refs with: sorted \n".to_vec();
        for (name, oid) in &references.direct {
            packed.extend_from_slice(oid.as_bytes());
            packed.push(b' ');
            packed.extend_from_slice(name);
            packed.push(b'\n');
        }
        put(&dir.join("packed-refs"), &packed)?;
        for (name, target) in &references.symbolic {
            let path = dir.join(OsStr::from_bytes(name));
            if let Some(above) = path.parent() {
                fs::create_dir_all(above).map_err(io_at("make the directory", above))?;
            }
            put(&path, &[b"ref: ", target.as_slice(), b"\n"].concat())?;
        }
        put(&dir.join("index"), index)
    }
}

fn make_skeleton(dir: &Path) -> Result<(), TreeError> {
    for name in [
        "",
        "info",
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "refs/heads",
    ] {
        let path: PathBuf = if name.is_empty() {
            dir.to_owned()
        } else {
            dir.join(name)
        };
        fs::create_dir(&path).map_err(io_at("make the directory", &path))?;
    }
    Ok(())
}

/// Puts settings of ours back into a small repository in which a run may have written.
pub(crate) fn put_back(git_dir: &Path, rules: &Path) -> Result<(), TreeError> {
    // Grafts, commit graphs and `shallow` state parents of commits, and could so hide that history was rewritten.
    for name in [
        "config.worktree",
        "commondir",
        "gitdir",
        "info/grafts",
        "shallow",
    ] {
        remove(&git_dir.join(name))?;
    }
    remove_derived(git_dir)?;
    for dir in ["info", "objects", "objects/info", "refs"] {
        let path = git_dir.join(dir);
        match fs::create_dir(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at("make the directory", &path)(e));
            }
            _ => {}
        }
    }
    let copies = [
        (RUN_CONFIG, "config"),
        ("info/exclude", "info/exclude"),
        ("info/attributes", "info/attributes"),
        ("objects/info/alternates", "objects/info/alternates"),
    ];
    for (from, to) in copies {
        let from = rules.join(from);
        let bytes = fs::read(&from).map_err(io_at("read", &from))?;
        let to = git_dir.join(to);
        remove(&to)?;
        put(&to, &bytes)?;
    }
    let shallow = read_optional(&rules.join(RUN_SHALLOW))?;
    if shallow.is_empty() {
        return Ok(());
    }
    put(&git_dir.join("shallow"), &shallow)
}

/// Why the git library must not open this git directory: a link could lead it elsewhere, and a fifo
/// would stop it.
pub(crate) fn damage(workdir: &Path) -> Result<Option<String>, TreeError> {
    let root = open_root(workdir)?;
    let Ok(git_dir) = open_child(root.as_fd(), b".git") else {
        return Ok(Some("`.git` is no directory any more".into()));
    };
    let mut path = b".git".to_vec();
    let found = search(git_dir.as_fd(), &mut path, 0);
    Ok(found.map(|what| format!("`{}` {what}", String::from_utf8_lossy(&path))))
}

fn search(dir: BorrowedFd<'_>, path: &mut Vec<u8>, depth: usize) -> Option<&'static str> {
    if depth > 64 {
        return Some("has too many directories inside each other");
    }
    let Ok(names) = Names::read(dir) else {
        return Some("cannot be read");
    };
    let length = path.len();
    for (name, kind) in names.iter() {
        path.truncate(length);
        path.push(b'/');
        path.extend_from_slice(name);
        match kind_of(dir, name, kind) {
            Ok(FileType::RegularFile) if is_too_large(dir, name, path) => {
                return Some("is too large");
            }
            Ok(FileType::RegularFile) if name == b"index" && !is_sound_index(dir, name) => {
                return Some("cannot be read, or lists directories that are nested too deep");
            }
            Ok(FileType::RegularFile) => {}
            Ok(FileType::Directory) => {
                let Ok(inner) = open_child(dir, name) else {
                    return Some("cannot be read");
                };
                if let Some(found) = search(inner.as_fd(), path, depth + 1) {
                    return Some(found);
                }
            }
            Ok(FileType::Symlink) => return Some("is a symbolic link"),
            Ok(_) => return Some("is no plain file"),
            Err(_) => return Some("cannot be read"),
        }
    }
    path.truncate(length);
    None
}

/// Returns true for a file that git reads whole, such as `packed-refs`, beyond a size that none has. A file without
/// content can be as long as its author likes, and would be read for hours. Objects are not read whole.
fn is_too_large(dir: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> bool {
    /// In bytes.
    const SIZE_MAX: i64 = 64 << 20;
    const INDEX_SIZE_MAX: i64 = 512 << 20;
    if path.starts_with(b".git/objects/") && !path.starts_with(b".git/objects/info/") {
        return false;
    }
    let most = if name == b"index" {
        INDEX_SIZE_MAX
    } else {
        SIZE_MAX
    };
    look(dir, name).is_ok_and(|found| found.st_size > most)
}

/// Returns false unless an index is a regular file that the library can read: a list of trees (the extension `TREE` of
/// gitformat-index(5)) that is nested deeper than a path can be would overflow its stack.
pub(crate) fn is_sound_index(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let found = look(dir, name);
    let is_file = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    if !found.is_ok_and(is_file) || is_too_large(dir, name, name) {
        return false;
    }
    let mut bytes = Vec::new();
    let read = open_file(dir, name).map(|file| File::from(file).read_to_end(&mut bytes));
    // Any four bytes may be the name of the extension, since only a reader of all entries knows where they end.
    let mut places = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, four)| *four == b"TREE");
    let is_deep = |(at, _): (usize, _)| depth_beyond(bytes.get(at + 8..).unwrap_or_default());
    read.is_ok_and(|read| read.is_ok()) && !places.any(is_deep)
}

/// Each tree is `NAME NUL ENTRIES SPACE SUBTREES NEWLINE`, then 20 bytes of id unless `ENTRIES` is negative, then its subtrees.
fn depth_beyond(mut rest: &[u8]) -> bool {
    let mut open: Vec<u64> = Vec::new();
    loop {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else {
            return false;
        };
        let after = rest.get(end + 1..).unwrap_or_default();
        let Some(line_end) = after.iter().take(64).position(|byte| *byte == b'\n') else {
            return false;
        };
        let line = String::from_utf8_lossy(after.get(..line_end).unwrap_or_default()).into_owned();
        let Some((entries, subtrees)) = line.split_once(' ') else {
            return false;
        };
        let Ok(subtrees) = subtrees.parse::<u64>() else {
            return false;
        };
        let id = if entries.starts_with('-') { 0 } else { 20 };
        rest = after.get(line_end + 1 + id..).unwrap_or_default();
        open.push(subtrees);
        if open.len() > PATH_COMPONENTS_MAX + 1 {
            return true;
        }
        while let Some(left) = open.last_mut() {
            match left.checked_sub(1) {
                Some(fewer) => {
                    *left = fewer;
                    break;
                }
                None => _ = open.pop(),
            }
        }
        if open.is_empty() {
            return false;
        }
    }
}

/// Removes objects and packs whose content is not what was written, as after a power cut: git would take them for there
/// and not write them again. Answers the first of them.
pub(crate) fn drop_torn(git_dir: &Path) -> Result<Option<PathBuf>, TreeError> {
    let objects = git_dir.join("objects");
    let mut torn = Vec::new();
    for fan in files_in(&objects) {
        let first = fan.file_name().unwrap_or_default().to_string_lossy();
        if first.len() != 2 {
            continue;
        }
        for file in files_in(&fan) {
            let rest = file.file_name().unwrap_or_default().to_string_lossy();
            let oid = git2::Oid::from_str(&format!("{first}{rest}"));
            if oid.is_ok_and(|oid| !is_whole_object(&file, oid)) {
                torn.push(file);
            }
        }
    }
    for file in files_in(&objects.join("pack")) {
        let is_pack = file.extension().is_some_and(|end| end == "pack");
        let parts = [file.clone(), file.with_extension("idx")];
        if is_pack && !parts.iter().all(|part| has_its_checksum(part)) {
            torn.extend(parts);
        }
    }
    for file in &torn {
        remove(file)?;
    }
    Ok(torn.into_iter().next())
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir).into_iter().flatten().flatten();
    listed.map(|entry| entry.path()).collect()
}

/// From this size on a pack is torn if most of it is not on the disk, in bytes: a file without content can have any
/// size, and would be read for hours.
const SPARSE_BYTES_MIN: u64 = 1 << 30;

/// Packs and their indexes end with the checksum of what is before.
fn has_its_checksum(file: &Path) -> bool {
    let read = || {
        let mut open = File::open(file)?;
        let stat = open.metadata()?;
        let is_sparse = stat.blocks().saturating_mul(512) < stat.len() / 2;
        if stat.len() > SPARSE_BYTES_MIN && is_sparse {
            return Ok(false);
        }
        let mut sum = Sha1::new();
        let body = stat
            .len()
            .checked_sub(20)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut content = BufReader::with_capacity(64 * 1024, Read::by_ref(&mut open).take(body));
        loop {
            let part = content.fill_buf()?;
            if part.is_empty() {
                break;
            }
            sum.update(part);
            let read = part.len();
            content.consume(read);
        }
        let mut end = [0; 20];
        open.read_exact(&mut end)?;
        Ok::<_, io::Error>(sum.finalize()[..] == end)
    };
    read().unwrap_or(false)
}

fn remove(path: &Path) -> Result<(), TreeError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
            fs::remove_dir_all(path).map_err(io_at("remove", path))
        }
        Err(e) => Err(io_at("remove", path)(e)),
    }
}

/// Writes a file that is not there yet.
fn put(path: &Path, bytes: &[u8]) -> Result<(), TreeError> {
    let fail = io_at("write", path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(&fail)?;
    file.write_all(bytes).map_err(fail)
}

/// A path as a line of an ignore file.
fn exclude_line(path: &[u8], out: &mut Vec<u8>) {
    if path.contains(&b'\n') {
        return;
    }
    out.push(b'/');
    for byte in path {
        if b"\\*?[]!# \t".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'\n');
}
