//! Which walls the commands of a run have: what is theirs, what is granted, and all but secrets to read.

pub(super) mod links;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::hidden::{self, Mounts};
use crate::catalog::Catalog;
use crate::catalog::definition_paths::{grant_path, real_paths, without_links};
use crate::git;
use crate::model::sandbox::{Level, NetworkChoice, Sandbox};
use crate::process::{Container, Link, Network, Wall};

/// Below the home directory: what may be granted with the secrets that lie in it, for builds write there.
const GRANTED_WHOLE: [&str; 4] = [".cargo", ".gradle", ".m2", ".cache/huggingface"];

/// What git reads before it does anything, below the home directory and of the machine: it ends where one of them is
/// there and may not be read.
const SETTINGS_OF_GIT: [&str; 3] = ["~/.gitconfig", "~/.config/git", "/etc/gitconfig"];

/// What no skill writes, in the workspace, beside the directories of workers: what is run, what models are told, what has happened.
const NEVER_WRITTEN: [&str; 9] = [
    "workerctl.yaml",
    ".workerctl",
    ".git",
    ".agents",
    ".agent",
    ".claude",
    ".wave",
    "workspace/skills",
    "workspace/threads",
];

/// The Landlock ABI that has walls for files, and the first Linux with it.
const FOR_FILES: (u32, &str) = (3, "6.2");

/// The same of walls for networks.
const FOR_NETWORKS: (u32, &str) = (4, "6.7");

/// What a sandbox insists on and the kernel cannot do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lacking {
    /// The part of `sandbox` that asks for it.
    pub key: &'static str,
    /// The Landlock ABI that has it.
    pub abi: u32,
    /// The first Linux with that.
    pub linux: &'static str,
}

/// What surrounds a run.
pub(super) struct Grounds<'a> {
    /// Absolute path of the workspace.
    pub workspace: &'a Path,
    /// Absolute path of the state directory.
    pub state_dir: &'a Path,
    /// Where trees of runs lie.
    pub trees: Option<&'a Path>,
    /// What a run's own tree borrows from its repository, where it has one.
    pub repository: &'a [PathBuf],
    /// Files that hold keys of models and of servers, as the configuration names them.
    pub keys: &'a [PathBuf],
    /// The engine's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// The definitions, of which no file is granted.
    pub catalog: &'a Catalog,
}

impl Grounds<'_> {
    /// What of it a kernel with this Landlock ABI cannot do although it has to: nothing may start then. `auto` does
    /// without walls where there are none, but not without a restriction that somebody wrote down.
    pub(super) fn lacking(&self, sandbox: &Sandbox, abi: u32) -> Option<Lacking> {
        let network = match sandbox.network {
            NetworkChoice::Any => None,
            NetworkChoice::None => Some("{network: none}"),
            NetworkChoice::Tcp(_) => Some("{network: {tcp: …}}"),
        };
        let level = (sandbox.level >= Level::Required).then_some(sandbox.level.name());
        let reads = self.narrows_reads(sandbox).then_some("{reads: …}");
        let of_files = level.or(reads).filter(|_| abi < FOR_FILES.0);
        let of_networks = network.filter(|_| abi < FOR_NETWORKS.0);
        let (abi, linux) = of_networks.map_or(FOR_FILES, |_| FOR_NETWORKS);
        let key = of_files.or(of_networks)?;
        Some(Lacking { key, abi, linux })
    }

    /// Whether less may be read than without walls. `reads: [/, ~/.config/gh]` only adds to what the walls let
    /// through.
    fn narrows_reads(&self, sandbox: &Sandbox) -> bool {
        let is_everything = |path: &String| real(&self.expanded(path)) == Path::new("/");
        let reads = sandbox.reads.as_ref();
        reads.is_some_and(|paths| !paths.iter().any(is_everything))
    }

    /// Whether all of it may be granted.
    ///
    /// # Errors
    /// A grant leads to what is never granted: says why.
    pub(super) fn check(&self, sandbox: &Sandbox) -> Result<(), String> {
        for grant in &sandbox.write {
            self.grant("write", grant)?;
        }
        self.read_grants(
            sandbox.reads.as_deref().unwrap_or_default(),
            &Mounts::read(),
        )
        .map(drop)
    }

    /// The paths of grants to read.
    ///
    /// # Errors
    /// One of them is never granted: says why.
    fn read_grants(&self, texts: &[String], mounts: &Mounts) -> Result<Vec<PathBuf>, String> {
        let engine = self.engine_names(mounts);
        let grant = |text: &String| {
            let (path, links) = without_links(&self.expanded(text));
            refuse_read(&path, &engine)?;
            self.refuse_links("reads", text, &links, mounts)?;
            self.refuse_other_name("reads", text, &path, mounts)?;
            Ok(path)
        };
        texts.iter().map(grant).collect()
    }

    /// The walls around what is a run's own: it may change and read that.
    ///
    /// # Errors
    /// A grant leads to what is never granted.
    pub(super) fn wall(
        &self,
        sandbox: &Sandbox,
        readable: &Readable,
        own: Vec<PathBuf>,
    ) -> Result<Wall, String> {
        let mut write = own;
        for grant in &sandbox.write {
            write.extend(self.without_programs(self.grant("write", grant)?));
        }
        let granted = sandbox.reads.as_deref().unwrap_or_default();
        let granted = self.read_grants(granted, &Mounts::read())?;
        // A state directory in the workspace would else keep it from being listed: its names are no secret.
        let workspace = real(self.workspace);
        let holds_ours = self
            .engine_places()
            .iter()
            .any(|own| own.starts_with(&workspace));
        let mut read = readable.paths.clone();
        if sandbox.reads.is_some() {
            read.extend(self.repository.iter().map(|path| real(path)));
        }
        let is_private = sandbox.level == Level::Private;
        let container = is_private.then(|| self.container(granted, &read, &readable.links));
        Ok(Wall {
            list: holds_ours.then_some(workspace).into_iter().collect(),
            write,
            read,
            network: match &sandbox.network {
                NetworkChoice::Any => Network::Any,
                NetworkChoice::None => Network::None,
                NetworkChoice::Tcp(ports) => Network::Tcp(ports.clone()),
            },
            unix_sockets: sandbox.unix_sockets,
            ipc: sandbox.unix_sockets,
            container,
        })
    }

    /// A container without the home directory and temporary files of others. Of the workspace, the repository and what
    /// `reads` grants it shows the parts that may be read at level 1: what is hidden does not exist in there.
    fn container(&self, granted: Vec<PathBuf>, read: &[PathBuf], links: &[Link]) -> Container {
        let home = self.environment.get("HOME");
        let mut roots = vec![real(self.workspace)];
        roots.extend(self.repository.iter().map(|path| real(path)));
        // `/` means what is the default: it shows nothing of the home directory and of `/tmp`.
        roots.extend(granted.into_iter().filter(|path| path.parent().is_some()));
        let in_roots = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let is_whole = |root: &&PathBuf| read.iter().any(|path| root.starts_with(path));
        let parts = read.iter().filter(|path| in_roots(path));
        let mut shown: Vec<PathBuf> = parts
            .chain(roots.iter().filter(is_whole))
            .cloned()
            .collect();
        shown.sort();
        shown.dedup();
        let mut sealed = self.engine_places();
        sealed.extend(roots.iter().filter(|root| !is_whole(root)).cloned());
        let home = home.map(|path| real(Path::new(path))).unwrap_or_default();
        // The home directory of a service may be its state directory. In the container it is an empty one.
        sealed.retain(|path| *path != home);
        Container {
            home,
            shown,
            links: links
                .iter()
                .filter(|link| in_roots(&link.path))
                .cloned()
                .collect(),
            sealed,
            sockets: Vec::new(),
        }
    }

    /// All that may be read but what is a run's own.
    ///
    /// # Errors
    /// A grant leads to what is never granted.
    pub(super) fn readable(&self, sandbox: &Sandbox) -> Result<Readable, String> {
        let mut readable = Readable::default();
        let everything = ["/".to_owned()];
        let mounts = Mounts::read();
        let denied = self.denied(&mounts);
        let granted = sandbox.reads.as_deref().unwrap_or(&everything);
        for path in self.read_grants(granted, &mounts)? {
            readable.add_all_but(path, &denied);
        }
        if sandbox.reads.is_some() {
            let settings = SETTINGS_OF_GIT.iter().filter_map(|name| {
                let (path, links) = without_links(&self.expanded(name));
                let refused = self.refuse_links("reads", name, &links, &mounts);
                refused.ok().map(|()| path)
            });
            let is_free = |path: &PathBuf| !denied.iter().any(|one| path.starts_with(one));
            for path in settings.filter(is_free) {
                readable.add_all_but(path, &denied);
            }
        }
        Ok(readable)
    }

    /// The path of a grant to write.
    ///
    /// # Errors
    /// It is never granted: says why.
    pub(super) fn grant(&self, key: &str, text: &str) -> Result<PathBuf, String> {
        let mounts = Mounts::read();
        let (path, links) = without_links(&self.expanded(text));
        for name in mounts.names_of(path.clone()) {
            self.refuse_write(key, text, &name)?;
        }
        self.refuse_links(key, text, &links, &mounts)?;
        self.refuse_other_name(key, text, &path, &mounts)?;
        Ok(path)
    }

    /// Returns the parts of a granted directory that hold no directory of `PATH`, such as `~/.cargo` without
    /// `~/.cargo/bin`: the engine and other skills would execute what a run puts there.
    fn without_programs(&self, granted: PathBuf) -> Vec<PathBuf> {
        let path = self.environment.get("PATH").map_or("", String::as_str);
        let directories = path.split(':').filter(|one| one.starts_with('/'));
        let directories = directories.map(|one| real(Path::new(one)));
        let below = directories.filter(|one| *one != granted && one.starts_with(&granted));
        let below: Vec<PathBuf> = below.collect();
        if below.is_empty() {
            return vec![granted];
        }
        let mut parts = Readable::default();
        parts.add_all_but(granted, &below);
        parts.paths
    }

    fn refuse_write(&self, key: &str, text: &str, path: &Path) -> Result<(), String> {
        let refused = |why: &str| Err(format!("`{key}: {text}` {why}, which is never granted"));
        if self.engine_places().iter().any(|own| meets(path, own)) {
            return refused("covers files of the engine");
        }
        if path.components().any(|part| part.as_os_str() == ".git") {
            return refused("is in a repository's own files");
        }
        let workspace = real(self.workspace);
        let holds_definitions = path.strip_prefix(&workspace).is_ok_and(|within| {
            let definitions = self.catalog.definition_paths(&workspace);
            definitions.meet(within)
        });
        if holds_definitions
            || NEVER_WRITTEN
                .iter()
                .any(|name| meets(path, &workspace.join(name)))
        {
            return refused("covers definitions, logs or a repository's own files");
        }
        if [".git", ".workerctl"]
            .iter()
            .any(|name| path.join(name).exists())
        {
            return refused("holds a repository's or another workspace's own files");
        }
        // A grant has no exceptions: what is below it can be read and changed.
        if let Some(secret) = self.secret_within(path) {
            let shown = match secret.strip_prefix(self.in_home("").unwrap_or_default()) {
                Ok(rest) => format!("~/{}", rest.display()),
                Err(_) => secret.display().to_string(),
            };
            return Err(format!(
                "`{key}: {text}` contains `{shown}`, a secret, which is granted only by its own path"
            ));
        }
        Ok(())
    }

    /// A secret that is there and lies below this path, as itself or as the link that leads to it. A path that
    /// is one is meant.
    fn secret_within(&self, path: &Path) -> Option<PathBuf> {
        let mut whole = GRANTED_WHOLE.iter().filter_map(|name| self.in_home(name));
        let is_whole = whole.any(|whole| real(&whole) == path);
        let lies_below = |place: &Path| place != path && place.starts_with(path);
        let is_within = |secret: &PathBuf| {
            secret.symlink_metadata().is_ok()
                && (lies_below(&real(secret)) || lies_below(&real_place(secret)))
        };
        self.secrets_by_name().find(is_within).filter(|_| !is_whole)
    }

    /// The engine's own directories.
    fn engine_places(&self) -> Vec<PathBuf> {
        let credentials = self.environment.get("CREDENTIALS_DIRECTORY");
        let places = [Some(self.state_dir), self.trees, credentials.map(Path::new)];
        places.into_iter().flatten().map(real).collect()
    }

    /// The same by all their names.
    fn engine_names(&self, mounts: &Mounts) -> Vec<PathBuf> {
        let places = self.engine_places().into_iter();
        places.flat_map(|path| mounts.names_of(path)).collect()
    }

    /// All that is hidden at every level, by all its names.
    fn denied(&self, mounts: &Mounts) -> Vec<PathBuf> {
        let engine = self.engine_names(mounts).into_iter();
        let hidden = self.hidden_files(mounts).into_iter();
        engine.chain(hidden.flat_map(|(_, names)| names)).collect()
    }

    /// Hidden files that a grant can name: each as it is listed, and all its names without links.
    fn hidden_files(&self, mounts: &Mounts) -> Vec<(PathBuf, Vec<PathBuf>)> {
        let facts = git::locate(self.workspace).ok();
        let git_dirs = facts.map(|facts| [facts.common_dir, facts.git_dir]);
        let settings = git_dirs
            .iter()
            .flatten()
            .flat_map(|path| hidden::git_settings(path));
        let paths = self.secrets_by_name().chain(settings);
        let paths: Vec<PathBuf> = paths
            .map(|path| std::path::absolute(&path).unwrap_or(path))
            .collect();
        let names = real_paths(&paths).into_iter();
        let names = names.map(|real| mounts.names_of(real));
        paths.iter().cloned().zip(names).collect()
    }

    /// Returns true if a path leads to something hidden; for a directory that is taken whole, also if it contains that.
    pub(super) fn hides(&self, path: &Path, is_whole: bool) -> bool {
        let path = real(path);
        let hidden = self.denied(&Mounts::read());
        let mut hidden = hidden.iter();
        hidden.any(|hidden| path.starts_with(hidden) || is_whole && hidden.starts_with(&path))
    }

    /// Refuses a grant that leads through a link to a hidden file which its own path does not name.
    fn refuse_other_name(
        &self,
        key: &str,
        text: &str,
        path: &Path,
        mounts: &Mounts,
    ) -> Result<(), String> {
        let written = self.expanded(text);
        if written == path {
            return Ok(());
        }
        let mut files = self.hidden_files(mounts);
        files.retain(|(_, names)| names.iter().any(|name| path.starts_with(name)));
        let is_named = files.iter().any(|(listed, names)| {
            let mut names = names.iter().chain([listed]);
            names.any(|name| written.starts_with(name))
        });
        if files.is_empty() || is_named {
            return Ok(());
        }
        let shown = path.display();
        Err(format!(
            "`{key}: {text}` leads to `{shown}`, which is hidden and granted only by its own path"
        ))
    }

    /// Secrets under the names that lead to them.
    fn secrets_by_name(&self) -> impl Iterator<Item = PathBuf> {
        let is_root = rustix::process::geteuid().is_root();
        let of_tables = hidden::paths(self.environment, is_root);
        of_tables.into_iter().chain(self.keys.iter().cloned())
    }

    fn in_home(&self, name: &str) -> Option<PathBuf> {
        let home = self.environment.get("HOME")?;
        Some(Path::new(home).join(name))
    }

    fn expanded(&self, text: &str) -> PathBuf {
        let home = self.environment.get("HOME").map(Path::new);
        grant_path(self.workspace, home, text)
    }
}

/// Whether one lies in the other.
fn meets(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| real_place(path))
}

/// Where it lies without links, whatever it is itself.
fn real_place(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

fn refuse_read(path: &Path, engine: &[PathBuf]) -> Result<(), String> {
    if engine.iter().any(|own| path.starts_with(own)) {
        let shown = path.display();
        return Err(format!(
            "`reads: {shown}` is in a directory of the engine, which is never granted"
        ));
    }
    Ok(())
}

/// What may be read, as paths with all that lies below them.
#[derive(Debug, Default)]
pub(super) struct Readable {
    paths: Vec<PathBuf>,
    /// Symbolic links in directories that may be read in part.
    links: Vec<Link>,
    /// The directories whose entries decided that.
    pub(super) looked_through: Vec<PathBuf>,
}

impl Readable {
    /// A path without what is denied of all that lies below it. One that is denied itself is meant.
    fn add_all_but(&mut self, path: PathBuf, denied: &[PathBuf]) {
        let below = denied
            .iter()
            .filter(|one| one.starts_with(&path) && **one != path);
        let below: Vec<&Path> = below.map(PathBuf::as_path).collect();
        self.looked_through
            .extend(path.parent().map(Path::to_owned));
        self.add(path, &below);
    }

    /// The largest parts of a directory that hold nothing of what is denied. What links lead to has its own place.
    fn add(&mut self, path: PathBuf, denied: &[&Path]) {
        if denied.is_empty() {
            self.paths.push(path);
            return;
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => {}
                Ok(_) => {
                    let target = std::fs::read_link(&path).ok();
                    self.links
                        .extend(target.map(|target| Link { path, target }));
                    continue;
                }
                Err(_) => continue,
            }
            let below = denied.iter().copied().filter(|one| one.starts_with(&path));
            let below: Vec<&Path> = below.collect();
            if !below.contains(&path.as_path()) {
                self.add(path, &below);
            }
        }
        self.looked_through.push(path);
    }
}

#[cfg(test)]
mod tests;
