//! Run trees: where a mutating run works, apart from every checkout.
//!
//! A tree is a work tree with a small repository of its own, whose objects are borrowed from the real one.
//! It is reused from run to run. [`Tree::make_equal`] makes it what its base says, from any state that a
//! skill or a kill left; [`Tree::result`] reads what the run changed.
//!
//! # What is believed
//!
//! - **The record**, one file beside the work tree: for each path the stat data and the content that had
//!   them. It is never believed for a file whose change time is not clearly before the record, nor after a
//!   start of the machine, nor when its checksum is wrong; then contents are hashed.
//! - **Nothing that a skill can write**: no index, no settings, no ignore or attribute files of the small
//!   repository. Rules are evaluated through a second git directory beside the work tree (`rules`), which
//!   runs never see, and on checked copies of the rule files (`rules/shadow`).
//!
//! # Where things lie
//!
//! `<root>/<n>/`: `lock` (held by `flock`; its modification time is the last use), `owner.json`, `record`,
//! `rules/`, `gone/` (what is being removed), and the work tree under the workspace's name.
//!
//! # One walk
//!
//! Making equal and reading a result each are one walk over directory handles, without a path longer than a
//! name and without following a link. What must go is moved to `gone/` and taken apart there one level at a
//! time, so that neither depth nor permissions stop it. Files are never written in place: a hard link of a
//! skill keeps the old content.

mod error;
mod forms;
mod index;
mod keep;
mod known;
mod look;
mod model;
mod overlay;
mod owner;
mod place;
mod pool;
mod preload;
mod problems;
mod put;
mod real;
mod record;
mod repair;
mod result;
mod rule_files;
mod small;
mod submodules;
mod tree;

pub use error::TreeError;
pub use model::{
    Base, HeadState, IgnoredSeen, Overlay, Owner, PathChange, ResultProblem, RunResult, Start,
    SweepLimits, TreeEntry, TreeInfo,
};
pub use overlay::measure;
pub use pool::Trees;
pub use small::SCRIPT_COPY;
pub use tree::Tree;
