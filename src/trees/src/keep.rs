//! Caches that stay from run to run.

use workerctl_landing::ids::RepoPath;

use crate::error::TreeError;
use crate::known::Manifest;

/// The entries of `keep:`, as paths from the root of the tree.
#[derive(Debug, Default)]
pub(crate) struct Keep(Vec<Vec<u8>>);

impl Keep {
    pub(crate) fn read(entries: &[String]) -> Result<Self, TreeError> {
        let read = |entry: &String| {
            let path = RepoPath::literal(entry.trim_matches('/'));
            path.map(|path| path.as_bytes().to_vec())
                .map_err(|_| TreeError::KeepPath(entry.clone()))
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Refuses an entry below which the base has something.
    pub(crate) fn refuse_tracked(&self, manifest: &Manifest) -> Result<(), TreeError> {
        for keep in &self.0 {
            let from = manifest.known.partition_point(|known| known.path < *keep);
            let mut below = keep.clone();
            below.push(b'/');
            let rest = manifest.known.iter().skip(from);
            let mut near = rest.take_while(|known| known.path.starts_with(keep));
            let tracked = near.find(|known| {
                known.base.is_some() && (known.path == *keep || known.path.starts_with(&below))
            });
            if let Some(known) = tracked
                && let Ok(path) = RepoPath::from_bytes(&known.path)
            {
                let keep = String::from_utf8_lossy(keep).into_owned();
                return Err(TreeError::KeptIsTracked { keep, path });
            }
        }
        Ok(())
    }

    /// Whether this path stays, with everything below it.
    pub(crate) fn stays(&self, path: &[u8]) -> bool {
        let within = |keep: &Vec<u8>| {
            let rest = path.strip_prefix(keep.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.0.iter().any(within)
    }

    /// Whether something below this directory stays.
    pub(crate) fn is_above(&self, path: &[u8]) -> bool {
        let above = |keep: &Vec<u8>| {
            let rest = keep.strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.0.iter().any(above)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}
