//! Helpers for the tests of all packages.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "test programs fail and print"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::fs::{IFlags, Mode, OFlags};
pub use tempfile::TempDir;

/// Returns true if `bytes` contain `part`. Tests search all files of a workspace for secrets.
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

/// Creates a temporary directory for a test, which is deleted with the returned value.
///
/// # Panics
/// If it cannot be created.
pub fn tempdir() -> TempDir {
    tempdir_in(&temporary())
}

/// Creates a temporary directory for a test in `parent`.
///
/// # Panics
/// If it cannot be created.
pub fn tempdir_in(parent: &Path) -> TempDir {
    let created = tempfile::Builder::new().prefix("test-").tempdir_in(parent);
    created.expect("a temporary directory can be created")
}

/// Returns the directory of [`tempdir`].
///
/// Its flag `T` (see chattr(1)) spreads them over the block groups of an ext4. Otherwise all tests share one group, and
/// without a journal ext4 looks at each inode that was deleted there in the last minutes before it creates a file.
fn temporary() -> PathBuf {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
        let name = format!("workerctl-tests-{}", rustix::process::geteuid().as_raw());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory can be created");
        let opened = rustix::fs::open(
            &directory,
            OFlags::DIRECTORY | OFlags::RDONLY,
            Mode::empty(),
        );
        if let Ok(opened) = opened
            && let Ok(flags) = rustix::fs::ioctl_getflags(&opened)
        {
            // Other file systems refuse the flag and do not need it.
            let _ = rustix::fs::ioctl_setflags(&opened, flags | IFlags::TOPDIR);
        }
        directory
    });
    DIRECTORY.clone()
}

/// Compares a text with the one that a test spells out, indented like the code around it. The `@` keeps `rustfmt` from
/// breaking the lines.
#[macro_export]
macro_rules! assert_text {
    ($actual:expr, @$expected:literal $(,)?) => {
        $crate::expect_text(AsRef::<str>::as_ref(&$actual), $expected)
    };
}

/// Compares the texts of [`assert_text`].
///
/// # Panics
/// If they differ.
#[track_caller]
pub fn expect_text(actual: &str, expected: &str) {
    let lines = || expected.lines().filter(|line| !line.trim().is_empty());
    let indents = lines().map(|line| line.len() - line.trim_start_matches(' ').len());
    let indent = indents.min().unwrap_or(0);
    let dedented: Vec<&str> = expected
        .lines()
        .map(|line| line.get(indent..).unwrap_or_default())
        .collect();
    let dedented = dedented.join("\n");
    let (actual, expected) = (
        actual.trim_end(),
        dedented.trim_end().trim_start_matches('\n'),
    );
    assert!(
        actual == expected,
        "the text differs\n--- expected\n{expected}\n--- actual\n{actual}\n---"
    );
}

/// Reports that the current test, or a part of it, cannot run on this machine.
///
/// `cargo test` hides the output of tests that pass. So the report is also kept in a file, and the last test of
/// `cargo test`, which is the one of this package, prints all reports.
///
/// # Panics
/// If the report cannot be written.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("SKIPPED {test}: {reason}");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(reports());
    file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes()))
        .expect("the report of a skipped test is kept");
}

/// Returns the file with the reports of this run of `cargo test`, which is the parent of all test programs.
fn reports() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    let parent = std::os::unix::process::parent_id();
    program.with_file_name(format!("skipped-tests-{parent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_listed() {
        let reports = std::fs::read_to_string(super::reports()).unwrap_or_default();
        let mut skipped: Vec<&str> = reports.lines().collect();
        skipped.sort_unstable();
        skipped.dedup();
        let count = skipped.len();
        let listed: String = skipped
            .into_iter()
            .flat_map(|report| ["  SKIPPED ", report, "\n"])
            .collect();
        let text = format!("\nskipped tests: {count}\n{listed}");
        // Not by a macro for printing, whose output would be hidden.
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        let own = super::reports();
        for entry in own.parent().unwrap().read_dir().unwrap().flatten() {
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with("skipped-tests-")
            {
                // Another test program may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
