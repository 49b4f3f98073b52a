//! Hints that files or branches have changed for which schedules wait. Only hints: the engine looks itself, and
//! looks at everything on the host's tick.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventMask, EventOwned, Inotify, WatchDescriptor, WatchMask, Watches};
use tokio::task::JoinHandle;

use crate::catalog::watch::{changes, is_no_directory};
use crate::engine::{Hints, Watched};

/// Bytes of notices that are taken at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// Most directories that are watched; beyond, changes are found by the tick.
const DIRECTORIES_MAX: usize = 65_536;

/// How long hints are gathered before they are handed on.
const GATHERED_FOR: Duration = Duration::from_millis(100);

/// Watches what schedules wait for.
#[derive(Default)]
pub(super) struct Sensors {
    watched: Vec<Watched>,
    task: Option<JoinHandle<()>>,
}

impl Sensors {
    /// Watches these places from now on.
    pub(super) fn set(&mut self, watched: Vec<Watched>, hints: Hints) {
        if watched == self.watched {
            return;
        }
        self.end();
        self.watched.clone_from(&watched);
        if watched.is_empty() {
            return;
        }
        self.task = Some(tokio::spawn(async move {
            if let Err(error) = listen(&watched, &hints).await {
                tracing::warn!(
                    %error,
                    "the triggers of schedules cannot be watched; changes are detected by polling every 30 s"
                );
            }
        }));
    }

    fn end(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Drop for Sensors {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands on hints until nothing more comes; when something watched comes to be, everything is watched anew.
async fn listen(watched: &[Watched], hints: &Hints) -> io::Result<()> {
    loop {
        let inotify = Inotify::init()?;
        let mut places = Places::watch(watched, inotify.watches())?;
        let mut notices = inotify.into_event_stream(vec![0; BUFFER_BYTES])?;
        let mut received = BTreeSet::new();
        loop {
            let Some(notice) = notices.next().await else {
                return Ok(());
            };
            let mut anew = places.receive(&notice?, &mut received);
            let gathering = tokio::time::sleep(GATHERED_FOR);
            tokio::pin!(gathering);
            loop {
                tokio::select! {
                    () = &mut gathering => break,
                    notice = notices.next() => match notice {
                        Some(notice) => anew |= places.receive(&notice?, &mut received),
                        None => break,
                    },
                }
            }
            hand_on(std::mem::take(&mut received), hints).await;
            if anew {
                break;
            }
        }
    }
}

async fn hand_on(received: BTreeSet<String>, hints: &Hints) {
    if received.is_empty() {
        return;
    }
    let hints = Arc::clone(hints);
    let told = tokio::task::spawn_blocking(move || received.iter().try_for_each(|id| hints(id)));
    if let Ok(Err(error)) = told.await {
        tracing::debug!(%error, "a hint was not taken");
    }
}

/// A directory that is watched.
struct Place {
    path: PathBuf,
    /// Which of the watched places it belongs to.
    of: Vec<usize>,
    /// Whether it only stands for one that is not there.
    stands_in: bool,
}

struct Places<'a> {
    watched: &'a [Watched],
    watches: Watches,
    known: HashMap<WatchDescriptor, Place>,
}

impl<'a> Places<'a> {
    fn watch(watched: &'a [Watched], inotify: Watches) -> io::Result<Places<'a>> {
        let mut places = Places {
            watched,
            watches: inotify,
            known: HashMap::new(),
        };
        for (index, one) in watched.iter().enumerate() {
            places.begin(index, one)?;
        }
        Ok(places)
    }

    /// Watches a place; a file by its directory, one that is not there by what is there above it.
    fn begin(&mut self, index: usize, one: &Watched) -> io::Result<()> {
        if one.place.is_dir() {
            return self.add(index, one.place.clone());
        }
        let above = one.place.ancestors().skip(1).find(|above| above.is_dir());
        match above {
            Some(above) => self.put(index, above, !one.place.exists()).map(drop),
            None => Ok(()),
        }
    }

    /// Watches a directory and, where all below belongs to it, that too.
    fn add(&mut self, index: usize, directory: PathBuf) -> io::Result<()> {
        let one = self.watched.get(index);
        let is_deep = one.is_some_and(|one| one.is_deep);
        let mut open = vec![directory];
        while let Some(directory) = open.pop() {
            let is_passed_over = |one: &Watched| one.passed_over.contains(&directory);
            let is_git = |one: &Watched| {
                directory != one.place && directory.file_name().is_some_and(|name| name == ".git")
            };
            if one.is_some_and(|one| is_passed_over(one) || is_git(one)) {
                continue;
            }
            if !self.put(index, &directory, false)? || !is_deep {
                continue;
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            let below = entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(below.map(|entry| entry.path()));
        }
        Ok(())
    }

    /// Watches one directory; false: it is gone.
    fn put(&mut self, index: usize, directory: &Path, stands_in: bool) -> io::Result<bool> {
        if self.known.len() >= DIRECTORIES_MAX {
            let why = format!("more than {DIRECTORIES_MAX} directories would be watched");
            return Err(io::Error::other(why));
        }
        let descriptor = match self.watches.add(
            directory,
            changes() | WatchMask::MOVE_SELF | WatchMask::DELETE_SELF,
        ) {
            Ok(descriptor) => descriptor,
            Err(error) if is_no_directory(&error) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(directory = %directory.display(), %error, "the directory is not watched; its changes are detected by polling every 30 s");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let place = self.known.entry(descriptor).or_insert_with(|| Place {
            path: directory.to_owned(),
            of: Vec::new(),
            stands_in: false,
        });
        place.stands_in |= stands_in;
        if !place.of.contains(&index) {
            place.of.push(index);
        }
        Ok(true)
    }

    /// Takes a notice in; whether everything is to be watched anew.
    fn receive(&mut self, notice: &EventOwned, received: &mut BTreeSet<String>) -> bool {
        if notice.mask.contains(EventMask::Q_OVERFLOW) {
            received.extend(self.watched.iter().map(|one| one.schedule.clone()));
            return true;
        }
        let Some(place) = self.known.get(&notice.wd) else {
            return false;
        };
        let (path, of, stands_in) = (place.path.clone(), place.of.clone(), place.stands_in);
        let is_gone = EventMask::IGNORED | EventMask::MOVE_SELF | EventMask::DELETE_SELF;
        if notice.mask.intersects(is_gone) {
            let schedules = of.iter().filter_map(|index| self.watched.get(*index));
            received.extend(schedules.map(|one| one.schedule.clone()));
            self.known.remove(&notice.wd);
            return true;
        }
        let schedules = of.iter().filter_map(|index| self.watched.get(*index));
        received.extend(schedules.map(|one| one.schedule.clone()));
        let came = EventMask::CREATE | EventMask::MOVED_TO;
        if !notice.mask.contains(EventMask::ISDIR) || !notice.mask.intersects(came) {
            return false;
        }
        let Some(name) = &notice.name else {
            return false;
        };
        for index in of {
            let is_deep = self.watched.get(index).is_some_and(|one| one.is_deep);
            if is_deep
                && !stands_in
                && let Err(error) = self.add(index, path.join(name))
            {
                tracing::warn!(%error, "a new directory is not watched; its changes are detected by polling every 30 s");
            }
        }
        stands_in
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn watched(place: PathBuf) -> Watched {
        Watched {
            schedule: "w/s".to_owned(),
            place,
            is_deep: true,
            passed_over: Arc::new([]),
        }
    }

    /// Changes hint until one is noticed; each is made anew, for watching may begin in a moment.
    async fn noticed(received: &mut tokio::sync::mpsc::Receiver<String>, change: impl Fn(u32)) {
        while received.try_recv().is_ok() {}
        let began = tokio::time::Instant::now();
        for number in 0.. {
            assert!(began.elapsed() < LONG, "nothing was noticed");
            change(number);
            let soon = tokio::time::timeout(Duration::from_millis(500), received.recv());
            if soon.await.is_ok() {
                return;
            }
        }
    }

    fn make_anew(directory: &Path) {
        let _ = fs::remove_dir(directory);
        fs::create_dir(directory).unwrap();
    }

    #[tokio::test]
    async fn what_comes_goes_and_is_replaced_is_noticed() {
        let root = xtest::tempdir();
        let docs = root.path().join("docs");
        let (sender, mut received) = tokio::sync::mpsc::channel(64);
        let hints: Hints = Arc::new(move |id: &str| {
            let _ = sender.try_send(id.to_owned());
            Ok(())
        });
        let mut sensors = Sensors::default();
        sensors.set(vec![watched(docs.clone())], hints);
        let write = |number: u32| fs::write(docs.join(format!("{number}.md")), "x").unwrap();
        // It is not there yet.
        noticed(&mut received, |_| make_anew(&docs)).await;
        noticed(&mut received, write).await;
        let deep = docs.join("deep");
        noticed(&mut received, |_| make_anew(&deep)).await;
        noticed(&mut received, |number| {
            fs::write(deep.join(number.to_string()), "x").unwrap();
        })
        .await;
        fs::rename(&docs, root.path().join("former")).unwrap();
        fs::create_dir(&docs).unwrap();
        noticed(&mut received, write).await;
        fs::remove_dir_all(&docs).unwrap();
        fs::create_dir(&docs).unwrap();
        noticed(&mut received, write).await;
    }
}
