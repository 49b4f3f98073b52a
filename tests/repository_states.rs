//! States that a repository can be in when a mutating run begins, works or ends: each run either ends with
//! exactly one commit on the right branch and the checkout clean, or is refused or fails by name with nothing
//! changed: no file, index entry, reference, `HEAD` or setting.
//!
//! The states are built by the real git, and what became of them is looked at with it.

mod branches;
mod contents;
mod formats;
mod row;
mod under_way;
