//! Objects that have their names in the repository only once their content is on disk.
//!
//! A loose object gets its name by a rename, which a power cut can leave without the content: an
//! empty file that git takes for the object for ever after. A few objects are synced one by one
//! before that. Many are written aside first, synced together, and renamed then, as git does with
//! `core.fsyncMethod=batch`; what is never released leaves nothing behind.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use git2::Repository;

use super::durable::{OBJECTS_SYNCED_SINGLY_MAX, temporary_name};
use super::error::{GitError, git, io_at};
use super::open::Handle;

/// A handle for writing objects.
pub(super) enum Writing {
    /// Each object is synced before it gets its name.
    Singly(Handle),
    /// All objects get their names together.
    Aside(Quarantine),
}

impl Writing {
    /// A handle for writing about so many objects to the repository that `cwd` lies in.
    pub(super) fn about(cwd: &Path, objects: usize) -> Result<Self, GitError> {
        if objects > OBJECTS_SYNCED_SINGLY_MAX {
            let handle = Handle::open(cwd)?;
            // The git library takes the name of an alternate as text.
            if handle.repo.commondir().to_str().is_some() {
                return Ok(Self::Aside(Quarantine::around(handle)?));
            }
        }
        Ok(Self::Singly(Handle::open_durable(cwd)?))
    }

    /// What to write with, and to read what was written.
    pub(super) fn handle(&self) -> &Handle {
        match self {
            Self::Singly(handle) => handle,
            Self::Aside(quarantine) => &quarantine.handle,
        }
    }

    /// Gives everything that was written its name. The names themselves are durable only after
    /// [`Handle::sync_objects`].
    pub(super) fn release(&self) -> Result<(), GitError> {
        match self {
            Self::Singly(_) => Ok(()),
            Self::Aside(quarantine) => quarantine.release(),
        }
    }
}

/// A directory of objects aside of those of the repository.
pub(super) struct Quarantine {
    handle: Handle,
    /// Owns the object database that the handle writes to.
    _aside: Repository,
    place: Place,
}

impl Quarantine {
    fn around(handle: Handle) -> Result<Self, GitError> {
        let common = handle.repo.commondir();
        let fail = git("write objects aside in the repository");
        let place = Place::make(common)?;
        let aside = Repository::open_bare(&place.0).map_err(&fail)?;
        {
            let objects = aside.odb().map_err(&fail)?;
            let home = common.join("objects");
            objects
                .add_disk_alternate(home.to_str().unwrap_or_default())
                .map_err(&fail)?;
            handle.repo.set_odb(&objects).map_err(&fail)?;
        }
        Ok(Self {
            handle,
            _aside: aside,
            place,
        })
    }

    fn release(&self) -> Result<(), GitError> {
        let written = self.place.objects()?;
        if written.is_empty() {
            return Ok(());
        }
        let aside = self.place.0.join("objects");
        let opened = File::open(&aside).map_err(io_at("open", &aside))?;
        rustix::fs::syncfs(opened).map_err(io_at("sync", &aside))?;
        let home = self.handle.repo.commondir().join("objects");
        for (fan, name) in written {
            put(&aside.join(&fan).join(&name), &home.join(&fan), &name)?;
        }
        Ok(())
    }
}

/// How often a directory is made again that a prune removes while it is empty.
const DIRECTORY_TRIES: u32 = 100;

fn put(from: &Path, directory: &Path, name: &str) -> Result<(), GitError> {
    let to = directory.join(name);
    let mut tried = 0;
    loop {
        match fs::create_dir(directory) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at("make the directory", directory)(e));
            }
            _ => tried += 1,
        }
        match fs::rename(from, &to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && tried < DIRECTORY_TRIES => {}
            renamed => return renamed.map_err(io_at("write", &to)),
        }
    }
}

/// The least that is a repository; removed in the end.
struct Place(PathBuf);

impl Place {
    fn make(common: &Path) -> Result<Self, GitError> {
        let make = |path: PathBuf| match fs::create_dir(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(io_at("make the directory", &path)(error)),
        };
        let place = Self(make(temporary_name(common))?);
        for directory in ["objects", "refs"] {
            make(place.0.join(directory))?;
        }
        let head = place.0.join("HEAD");
        fs::write(&head, "ref: refs/heads/none\n").map_err(io_at("write", &head))?;
        Ok(place)
    }

    /// Every object in it, as the two parts of its name.
    fn objects(&self) -> Result<Vec<(String, String)>, GitError> {
        let mut found = Vec::new();
        for fan in names(&self.0.join("objects"), 2)? {
            for name in names(&self.0.join("objects").join(&fan), 38)? {
                found.push((fan.clone(), name));
            }
        }
        Ok(found)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now is swept with the next lease.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The names in a directory that are so many hexadecimal digits.
fn names(directory: &Path, digits: usize) -> Result<Vec<String>, GitError> {
    let fail = || io_at("list", directory);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(fail())? {
        let name = entry.map_err(fail())?.file_name();
        let text = name.to_str().unwrap_or_default();
        if text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            found.push(text.to_owned());
        }
    }
    Ok(found)
}
