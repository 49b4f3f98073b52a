//! Landing.
mod attempt;
mod branch;
#[path = "../../git/error.rs"]
pub mod error;
mod files;
mod forms;
#[path = "../../git/ids.rs"]
pub mod ids;
mod import;
mod index;
mod journal;
mod landing;
mod locks;
mod outcome;
mod plan;
mod repository;
mod stage;
mod stand;
mod worktree;

pub use import::{Import, import, kept_reference};
pub use journal::{FileJournal, Journal, Observer, Record, Unobserved};
pub use landing::{Request, clear, land, late_edits, recover};
pub use outcome::{Kept, LandError, Obstacle, Outcome, Recovered};
pub use plan::{Change, Checkout, Entry, LogLine, Plan};
