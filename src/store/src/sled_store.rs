//! The store on disk: opening it, and creating it where none ever was.

use std::fs;
use std::path::Path;

use super::files::{create_private_directory, sync_directory};
use super::keyed::{Keyed, OverTable, first_rows};
use super::payload::PAYLOADS;
use super::sled_error::{corrupt, from_file, from_io};
use super::sled_open::{DATABASE, OpenOptions, lock_directory, moved_aside, open_raw, remove_tree};
use super::sled_table::SledTable;
use super::table::Table;
use super::witness::{Said, Witness};
use super::{StoreError, sled_compact};

/// The name of sled's directory until it is complete.
const UNFINISHED: &str = "db.new";

/// The store on disk: sled and the files beside it. While it is open its directory is locked.
#[derive(Debug)]
pub struct SledStore(pub(super) Keyed<SledTable>);

impl SledStore {
    /// Opens the store in `directory`, which is created (mode 0700) when it is missing.
    ///
    /// `Busy` when another process has it open, `Newer` (nothing touched) when a later version wrote
    /// it, `Corrupt` when it is damaged or commits are missing that were durable once.
    pub fn open(directory: &Path, options: OpenOptions) -> Result<SledStore, StoreError> {
        let shown = directory.display().to_string();
        let locked = lock_directory(directory, &shown, options.create)?;
        prepare(directory, &shown, options)?;
        let table = SledTable::open(directory, options, locked)?;
        let keyed = Keyed::over(table)?;
        keyed.count_where_needed()?;
        Ok(SledStore(keyed))
    }

    /// The store's directory.
    pub fn directory(&self) -> &Path {
        self.0.table().directory()
    }
}

impl OverTable for SledStore {
    type Table = SledTable;

    fn keyed(&self) -> &Keyed<SledTable> {
        &self.0
    }
}

/// Checks what lies in the directory before sled is asked, and creates a store where none ever was.
fn prepare(directory: &Path, shown: &str, options: OpenOptions) -> Result<(), StoreError> {
    let filed = |error| from_file(shown, error);
    let said = Witness::read(directory).map_err(filed)?;
    if let Said::Newer(found) = said {
        return Err(StoreError::Newer {
            path: shown.to_owned(),
            found,
        });
    }
    if directory.join(DATABASE).is_dir() {
        sled_compact::clear(directory, shown)?;
        create_private_directory(&directory.join(PAYLOADS)).map_err(filed)?;
        return Ok(());
    }
    // The witness is written after the database got its name and moved aside after it.
    if said != Said::Nothing {
        return Err(corrupt(shown, "its database is missing".to_owned()));
    }
    if let Some(aside) = moved_aside(directory).map_err(filed)?.pop() {
        let reason = format!(
            "it was moved aside to `{aside}` and has not been rebuilt; what is there can be moved back"
        );
        return Err(corrupt(shown, reason));
    }
    if !options.create {
        return Err(corrupt(shown, "there is no store".to_owned()));
    }
    create(directory, shown, options, &mut |_| Ok(()))
}

/// Creates a store and fills it: complete under another name first, so that what has the name of a
/// store always is one.
pub(super) fn create(
    directory: &Path,
    shown: &str,
    options: OpenOptions,
    fill: &mut dyn FnMut(&SledStore) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let filed = |error| from_file(shown, error);
    let unfinished = directory.join(UNFINISHED);
    // What lies there was left by a process that was killed here; nothing leads to it.
    remove_tree(&unfinished).map_err(filed)?;
    create_private_directory(&unfinished).map_err(filed)?;
    create_private_directory(&directory.join(PAYLOADS)).map_err(filed)?;
    let opened = open_raw(&unfinished, shown, options)?;
    let table = SledTable::detached(directory, opened, options);
    table.apply(&first_rows())?;
    let store = SledStore(Keyed::over(table)?);
    fill(&store)?;
    let commits = store.0.commits();
    store.0.table().sync(commits)?;
    drop(store);
    sled_compact::sync(&unfinished, shown)?;
    // Everything is durable under the other name now. The former witness goes before the database gets its name, and
    // the new one comes after it: a crash in between leaves no store at all, or a whole one whose witness is written
    // anew when it is opened. A store never meets the witness of another.
    Witness::remove(directory).map_err(filed)?;
    fs::rename(&unfinished, directory.join(DATABASE)).map_err(|e| from_io(shown, e))?;
    sync_directory(directory).map_err(filed)?;
    Witness::create(directory, commits).map_err(filed)
}
