//! Free space.

use std::path::Path;

use super::{Finding, State};
use crate::cli::globals::Site;
use crate::cli::render::times;

/// Free bytes below which runs and the store are in danger.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Free bytes below which somebody should look.
const FREE_BYTES_LOW: u64 = 1024 * 1024 * 1024;

/// The directory itself, or the nearest one above it that is there.
pub(super) fn nearest_existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|one| one.exists())
        .unwrap_or(Path::new("/"))
}

/// Free space where runs work and where they are kept.
pub(super) fn space(site: &Site) -> Vec<Finding> {
    let mut seen = Vec::new();
    let mut findings = Vec::new();
    for (name, path) in [
        ("disk", site.workspace.as_path()),
        ("state disk", nearest_existing(&site.state_dir)),
    ] {
        let found = match rustix::fs::statvfs(path) {
            Ok(found) => found,
            Err(error) => {
                let text = format!("free space of {} is not known: {error}", path.display());
                findings.push(Finding::new(name, State::Care, text));
                continue;
            }
        };
        if seen.contains(&found.f_fsid) {
            continue;
        }
        seen.push(found.f_fsid);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let text = format!("{} free for {}", times::bytes(free), path.display());
        findings.push(match free {
            0..FREE_BYTES_MIN => Finding::new(name, State::Bad, text)
                .hint("free some space: new runs are refused when it is used up"),
            FREE_BYTES_MIN..FREE_BYTES_LOW => {
                Finding::new(name, State::Care, text).hint("free some space")
            }
            _ => Finding::new(name, State::Good, text),
        });
    }
    findings
}
