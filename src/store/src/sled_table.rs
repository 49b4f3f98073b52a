//! sled as a table, under a discipline that makes it keep its word.
//!
//! - sled's `flush` hands the log to the kernel and does not sync the file. Each sync is therefore
//!   `flush` and then `fdatasync` on a handle of our own, which also sees every write error since
//!   it was opened.
//! - One `apply_batch` on one tree is recovered whole or not at all: sled pins the log with a record
//!   that names the batch's last position, and recovery stops before a batch whose end is missing.
//! - What recovery reads back after a crash may lie in the page cache only; it is synced before
//!   anybody acts on it.
//! - sled panics where it finds damage; every call of it goes through [`guard::catch_panics`].

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustix::fs::FallocateFlags;

use super::files::{SAFELY, is_full, must_be_regular, remove_if_there};
use super::flushing::FlushGuard;
use super::guard;
use super::keys::KeyRange;
use super::payload::{PayloadError, PayloadFiles, Spill};
use super::record::FileRef;
use super::sled_error::{broken, corrupt, from_file, from_sled};
use super::sled_open::{DATABASE, DATABASE_FILE, Open, OpenOptions, open_database, open_raw};
use super::stored::after;
use super::table::{Row, Rows, Table};
use super::witness::Witness;
use super::{Shortage, StoreError, sled_compact};
use crate::model::file_size::exceeds_file_size;

/// Space that is given back when the disk is full.
pub(super) const RESERVE: &str = "reserve";

/// Space that must be there before the store is closed to be opened again: sled writes a snapshot
/// and at least one segment of 512 KiB.
const REOPEN_BYTES: u64 = 4 * 1024 * 1024;

/// sled as a table.
pub(super) struct SledTable {
    directory: PathBuf,
    shown: String,
    options: OpenOptions,
    /// `None` between closing and a reopening that failed.
    open: RwLock<Option<Open>>,
    payloads: PayloadFiles,
    /// Absent while the store is not yet, or only looked at.
    witness: Option<Witness>,
    syncs: AtomicU64,
    flushes: FlushGuard,
    /// Locked for as long as the store is open; whoever has it detached holds the lock.
    locked: Option<File>,
}

impl std::fmt::Debug for SledTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SledTable")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl SledTable {
    /// Opens the store in `directory`, which is there and stays locked for as long as the table is open.
    pub(super) fn open(
        directory: &Path,
        options: OpenOptions,
        locked: File,
    ) -> Result<SledTable, StoreError> {
        let shown = directory.display().to_string();
        let opened = open_database(&directory.join(DATABASE), &shown, options)?;
        let mut table = SledTable::detached(directory, opened, options);
        table.witness = Some(Witness::open(directory).map_err(|e| from_file(&shown, e))?);
        table.locked = Some(locked);
        table.allocate_reserve();
        Ok(table)
    }

    /// An opened database of the store in `directory`, which the caller has locked; no witness.
    pub(super) fn detached(directory: &Path, opened: Open, options: OpenOptions) -> SledTable {
        SledTable {
            directory: directory.to_owned(),
            shown: directory.display().to_string(),
            options,
            open: RwLock::new(Some(opened)),
            payloads: PayloadFiles::of(directory),
            witness: None,
            syncs: AtomicU64::new(0),
            flushes: FlushGuard::start(),
            locked: None,
        }
    }

    /// The store's directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn reading(&self) -> RwLockReadGuard<'_, Option<Open>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, call: impl FnOnce(&Open) -> Result<R, sled::Error>) -> Result<R, StoreError> {
        let open = self.reading();
        let Some(open) = open.as_ref() else {
            return Err(StoreError::Full {
                path: self.shown.clone(),
                shortage: Shortage::on(&self.directory),
            });
        };
        match guard::catch_panics(|| call(open)) {
            Ok(result) => result.map_err(|e| from_sled(&self.shown, e)),
            Err(panic) => Err(corrupt(&self.shown, format!("sled: {panic}"))),
        }
    }

    fn close(&self) {
        self.end(self.writing().take());
    }

    fn writing(&self) -> RwLockWriteGuard<'_, Option<Open>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, closed: Option<Open>) {
        // sled flushes what is left when it goes; nobody could look after that.
        let flushed = closed
            .as_ref()
            .map(|open| guard::catch_panics(|| self.flushes.flush(&open.database)));
        if let Some(Ok(Err(error))) = flushed {
            tracing::warn!(%error, "what may be lost was not written when the store was closed");
        }
        if let Err(panic) = guard::catch_panics(|| drop(closed)) {
            tracing::warn!(%panic, "sled failed while it was closed");
        }
    }

    /// Refuses where the database's name leads to another file than the one that is open, or to none.
    fn look_for_it(&self) -> Result<(), StoreError> {
        // Without a witness it is not yet under its name.
        if self.witness.is_none() {
            return Ok(());
        }
        let held = self.with(|open| open.data.metadata().map_err(sled::Error::Io))?;
        let named = fs::metadata(self.directory.join(DATABASE).join(DATABASE_FILE));
        match named {
            Ok(named) if named.dev() == held.dev() && named.ino() == held.ino() => Ok(()),
            Err(error) if !leads_nowhere(&error) => Err(broken(&self.shown, error)),
            Ok(_) | Err(_) => Err(StoreError::Gone {
                path: self.shown.clone(),
            }),
        }
    }

    /// What a failure means: where the store's files went away, that.
    fn gone_or(&self, error: StoreError) -> StoreError {
        match self.look_for_it() {
            Err(gone @ StoreError::Gone { .. }) => gone,
            _ => error,
        }
    }

    /// Sets space aside; without it the store works, and a full disk is only harder to leave.
    fn allocate_reserve(&self) {
        let path = self.directory.join(RESERVE);
        let wanted = self.options.reserve_bytes;
        if wanted == 0 || fs::metadata(&path).is_ok_and(|found| found.len() >= wanted) {
            return;
        }
        if let Err(error) = allocate(&path, wanted) {
            tracing::warn!(%error, "no space is set aside for a full disk");
            // Half a reserve would only take away what is left.
            let _ = remove_if_there(&path);
        }
    }

    /// Closes it and opens it again, with something done in between; whoever reads waits meanwhile.
    fn open_again<R>(&self, between: impl FnOnce() -> R) -> Result<R, StoreError> {
        let mut open = self.writing();
        self.end(open.take());
        let done = between();
        let path = self.directory.join(DATABASE);
        *open = Some(open_database(&path, &self.shown, self.options)?);
        Ok(done)
    }

    /// Writes all records into a new database beside this one, durable on return.
    fn copied(&self) -> Result<(), StoreError> {
        let (directory, shown, options) = (&self.directory, &self.shown, self.options);
        let place = sled_compact::place(directory, shown)?;
        let copy = SledTable::detached(directory, open_raw(&place, shown, options)?, options);
        sled_compact::copy(self, &copy)?;
        drop(copy);
        sled_compact::sync(&place, shown)
    }

    /// Whether so much space can be had now.
    fn has_space(&self, bytes: u64) -> Result<bool, StoreError> {
        let probe = self.directory.join("reserve.probe");
        let allocated = allocate(&probe, bytes);
        remove_if_there(&probe).map_err(|e| from_file(&self.shown, e))?;
        match allocated {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            // The file that asks is much larger than what it asks for.
            Err(error) if exceeds_file_size(&error) => Ok(true),
            Err(error) => Err(broken(&self.shown, error)),
        }
    }
}

impl Drop for SledTable {
    fn drop(&mut self) {
        self.close();
        // Only now may another process open it.
        drop(self.locked.take());
    }
}

impl Table for SledTable {
    fn path(&self) -> &str {
        &self.shown
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|open| Ok(open.database.get(key)?.map(|value| value.to_vec())))
    }

    fn scan(
        &self,
        range: &KeyRange,
        backwards: bool,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        self.with(|open| {
            let rows = open
                .database
                .range(range.from.as_slice()..range.to.as_slice());
            let owned = |row: sled::Result<(sled::IVec, sled::IVec)>| {
                row.map(|(key, value)| (key.to_vec(), value.to_vec()))
            };
            if backwards {
                rows.rev().take(limit).map(owned).collect()
            } else {
                rows.take(limit).map(owned).collect()
            }
        })
    }

    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.with(|open| {
            let rows = open
                .database
                .range(range.from.as_slice()..range.to.as_slice());
            rows.keys()
                .take(limit)
                .map(|key| key.map(|key| key.to_vec()))
                .collect()
        })
    }

    fn write_payloads(&self, spills: &[Spill]) -> Result<(), StoreError> {
        let syncs = self
            .payloads
            .write(spills)
            .map_err(|e| self.gone_or(from_file(&self.shown, e)))?;
        self.syncs.fetch_add(syncs, Ordering::Relaxed);
        Ok(())
    }

    fn read_payload(&self, file: &FileRef) -> Result<Vec<u8>, StoreError> {
        self.payloads.read(file).map_err(|error| match error {
            PayloadError::Damaged(reason) => corrupt(&self.shown, reason),
            PayloadError::File(error) => from_file(&self.shown, error),
        })
    }

    fn remove_payloads(&self, run: &str) -> Result<(), StoreError> {
        self.payloads
            .remove(run)
            .map_err(|e| from_file(&self.shown, e))
    }

    fn runs_with_payloads(&self) -> Result<Vec<String>, StoreError> {
        self.payloads.runs().map_err(|e| from_file(&self.shown, e))
    }

    fn apply(&self, rows: &Rows) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in rows {
            match value {
                Some(value) => batch.insert(key.as_slice(), value.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        self.with(|open| open.database.apply_batch(batch))
            .map_err(|error| self.gone_or(error))
    }

    fn sync(&self, commits: u64) -> Result<(), StoreError> {
        self.with(|open| self.flushes.flush(&open.database))
            .and_then(|_| self.with(|open| open.data.sync_data().map_err(sled::Error::Io)))
            .map_err(|error| self.gone_or(error))?;
        // What lies in files without a name is lost with this process, however often it is synced.
        self.look_for_it()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        // Nothing depends on the witness now; it only finds out about damage later.
        let told = self.witness.as_ref().map(|witness| witness.tell(commits));
        if let Some(Err(error)) = told {
            tracing::warn!(%error, "the witness of the store could not be written");
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), StoreError> {
        if let Err(gone @ StoreError::Gone { .. }) = self.look_for_it() {
            return Err(gone);
        }
        let full = || StoreError::Full {
            path: self.shown.clone(),
            shortage: Shortage::Disk,
        };
        remove_if_there(&self.directory.join(RESERVE)).map_err(|e| from_file(&self.shown, e))?;
        // While there is no space the old handle is kept: it still answers reads.
        if !self.has_space(REOPEN_BYTES)? {
            return Err(full());
        }
        self.close();
        let opened = open_database(&self.directory.join(DATABASE), &self.shown, self.options)?;
        *self.writing() = Some(opened);
        if self.has_space(self.options.reserve_bytes.saturating_mul(2))? {
            self.allocate_reserve();
        }
        Ok(())
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        let found = self.with(|open| open.data.metadata().map_err(sled::Error::Io))?;
        Ok(found.len())
    }

    fn held_bytes(&self) -> Result<u64, StoreError> {
        let (mut range, mut held) = (sled_compact::everything(), 0);
        loop {
            let rows = self.scan(&range, false, 1_000)?;
            let Some((last, _)) = rows.last() else {
                return Ok(held);
            };
            range.from = after(last);
            let bytes = rows.iter().map(|(key, value)| key.len() + value.len());
            held += bytes.sum::<usize>() as u64;
        }
    }

    fn let_go(&self) -> Result<(), StoreError> {
        self.look_for_it()?;
        // The handle that is open still answers reads on a full disk, where no other could be had.
        if self.has_space(REOPEN_BYTES)? {
            self.open_again(|| ())?;
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), StoreError> {
        let (directory, shown) = (&self.directory, &self.shown);
        self.look_for_it()?;
        // The new one takes twice what it holds at most, and a segment.
        let wanted = self.held_bytes()?.saturating_mul(2);
        if !self.has_space(wanted.saturating_add(REOPEN_BYTES))? {
            return Err(StoreError::Full {
                path: shown.clone(),
                shortage: Shortage::Disk,
            });
        }
        if let Err(error) = self.copied() {
            sled_compact::clear(directory, shown)?;
            return Err(error);
        }
        // Where the names could not be exchanged, the former one is opened again.
        let exchanged = self.open_again(|| sled_compact::exchange(directory, shown))?;
        sled_compact::clear(directory, shown)?;
        exchanged
    }

    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

fn leads_nowhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(SAFELY.bits().cast_signed())
        .open(path)
        .and_then(must_be_regular)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => io::copy(
            &mut io::Read::take(io::repeat(0), bytes),
            &mut io::BufWriter::with_capacity(1 << 20, &file),
        )
        .map(drop),
        Err(error) => Err(error.into()),
    }
}
