//! Between git's normal form of a file and the form it has in the work tree.

use std::fs;
use std::io::{Cursor, Read};

use git2::build::CheckoutBuilder;
use git2::{AttrCheckFlags, AttrValue};

use super::durable::Written;
use super::error::{GitError, git, io_at};
use super::ids::{Oid, RepoPath};
use super::open::Handle;
use super::tree::{MODE_EXECUTABLE, MODE_FILE};

/// The settings that decide how files are written.
pub(super) struct Forms {
    follows_modes: bool,
    converts: bool,
    umask: u32,
}

impl Forms {
    pub(super) fn new(handle: &Handle) -> Self {
        let config = handle.repo.config().and_then(|mut c| c.snapshot());
        let text = |name| config.as_ref().ok().and_then(|c| c.get_string(name).ok());
        let crlf = text("core.autocrlf").is_some_and(|v| !v.eq_ignore_ascii_case("false"));
        let eol = text("core.eol").is_some_and(|v| v.eq_ignore_ascii_case("crlf"));
        Self {
            follows_modes: handle.setting("core.filemode", true),
            converts: crlf || eol,
            umask: umask(),
        }
    }

    /// The git mode of a regular file with these permission bits.
    pub(super) fn mode(&self, unix_mode: u32) -> u32 {
        if self.follows_modes && unix_mode & 0o100 != 0 {
            MODE_EXECUTABLE
        } else {
            MODE_FILE
        }
    }

    /// Whether two modes are the same as far as this repository can tell.
    pub(super) fn same_mode(&self, a: u32, b: u32) -> bool {
        let plain = |mode| matches!(mode, MODE_FILE | MODE_EXECUTABLE);
        a == b || (!self.follows_modes && plain(a) && plain(b))
    }

    /// The permission bits for a file that is written: those of the file in its place with the
    /// executable bit set right, else those that the umask leaves.
    pub(super) fn permissions(&self, present: Option<u32>, executable: bool) -> u32 {
        match (present, executable) {
            (Some(bits), true) => bits | ((bits & 0o444) >> 2),
            (Some(bits), false) => bits & !0o111,
            (None, true) => 0o777 & !self.umask,
            (None, false) => 0o666 & !self.umask,
        }
    }

    /// Whether the form of a path in the work tree may differ from the normal form.
    pub(super) fn may_convert(&self, handle: &Handle, path: &RepoPath) -> Result<bool, GitError> {
        Ok(self.converts || has_attributes(handle, path)?)
    }

    /// The bytes that git would write to the work tree for the blob at a path of a tree.
    pub(super) fn written(
        &self,
        handle: &Handle,
        tree: &Oid,
        path: &RepoPath,
        oid: &Oid,
    ) -> Result<Box<dyn Read>, GitError> {
        if !self.may_convert(handle, path)? {
            return exact_bytes(handle, oid);
        }
        // Conversion is part of checking out, so the file is checked out to a place of its own.
        let staging = Written::reserve(handle.repo.path());
        let dir = staging.path();
        fs::create_dir(dir).map_err(io_at("make the directory", dir))?;
        let mut options = CheckoutBuilder::new();
        options
            .target_dir(dir)
            .path(path.as_bytes())
            .disable_pathspec_match(true)
            .force()
            .update_index(false);
        let tree = handle.tree(tree)?;
        let done = handle
            .repo
            .checkout_tree(tree.as_object(), Some(&mut options));
        let bytes = done
            .map_err(git("convert a file"))
            .and_then(|()| fs::read(dir.join(path.as_path())).map_err(io_at("read", dir)));
        // What cannot be removed now is swept with the next lease.
        let _ = fs::remove_dir_all(dir);
        Ok(Box::new(Cursor::new(bytes?)))
    }
}

/// The bytes of a blob as they are.
pub(super) fn exact_bytes(handle: &Handle, oid: &Oid) -> Result<Box<dyn Read>, GitError> {
    let blob = handle
        .repo
        .find_blob(oid.raw())
        .map_err(git("read a blob"))?;
    Ok(Box::new(Cursor::new(blob.content().to_vec())))
}

fn has_attributes(handle: &Handle, path: &RepoPath) -> Result<bool, GitError> {
    for name in ["text", "eol", "crlf", "ident"] {
        let value = handle
            .repo
            .get_attr_bytes(path.as_path(), name, AttrCheckFlags::FILE_THEN_INDEX)
            .map_err(git("read the attributes"))?;
        let value = AttrValue::from_bytes(value);
        if !matches!(value, AttrValue::Unspecified | AttrValue::False) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The umask of this process, which can only be read without changing it from `/proc`.
fn umask() -> u32 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("Umask:"));
    let value = line.and_then(|v| u32::from_str_radix(v.trim(), 8).ok());
    value.unwrap_or(0o022)
}
