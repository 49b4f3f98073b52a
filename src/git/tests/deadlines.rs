use std::cell::Cell;

use super::*;

/// A deadline that is over once it was looked at `count` times.
fn after<T>(count: usize, step: impl FnOnce(Deadline<'_>) -> T) -> T {
    let left = Cell::new(count);
    let is_over = || {
        let over = left.get() == 0;
        left.set(left.get().saturating_sub(1));
        over
    };
    step(Deadline::when(&is_over))
}

/// Everything below `.git` that a step which ran out of time must leave as it was.
fn kept(bed: &Bed) -> (String, Vec<String>) {
    let refs = bed.git(&["for-each-ref"]);
    let names = fs::read_dir(bed.at(".git")).unwrap();
    let ours = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("workerctl"))
        .collect();
    (refs, ours)
}

fn limits() -> Limits {
    Limits {
        untracked_file_bytes_max: 50_000,
        ..Limits::default()
    }
}

/// Few files, whose objects are written one by one, and many, which are written aside.
const SIZES: [usize; 2] = [5, 100];

fn write_files(bed: &Bed, count: usize) {
    for n in 0..count {
        bed.write(&format!("new/{n}/x.txt"), &format!("{n}\n"));
    }
    // Large enough to be only digested, in several pieces.
    bed.write("large", &"x".repeat(100_000));
}

#[test]
fn a_baseline_that_runs_out_of_time_leaves_nothing() {
    for size in SIZES {
        let bed = Bed::with_commit();
        write_files(&bed, size);
        let (before, status) = (kept(&bed), bed.status());
        let mut looks = 0;
        loop {
            let taken = after(looks, |deadline| {
                baseline(&bed.path(), &none(), &limits(), &run(), deadline)
            });
            match taken {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, GitError::OutOfTime), "{looks}: {error}"),
            }
            assert_eq!(kept(&bed), before, "after {looks} looks of {size}");
            looks += 1 + size / 10;
        }
        assert!(looks > 3 * size, "looked {looks} times for {size} files");
        assert_eq!(bed.status(), status);
        assert_ne!(kept(&bed), before, "the baseline is kept");
        bed.fsck();
    }
}

#[test]
fn a_commit_that_runs_out_of_time_is_not_made() {
    for size in SIZES {
        let bed = Bed::with_commit();
        let baseline = bed.baseline();
        write_files(&bed, size);
        let result = bed.result(&baseline);
        let before = kept(&bed);
        let mut looks = 0;
        let prepared = loop {
            match after(looks, |deadline| {
                bed.prepare_until(&baseline, &result, deadline)
            }) {
                Ok(prepared) => break prepared,
                Err(PrepareError::Git(GitError::OutOfTime)) => {}
                Err(error) => panic!("{looks}: {error}"),
            }
            assert_eq!(kept(&bed), before, "after {looks} looks of {size}");
            looks += 1 + size / 10;
        };
        assert!(looks > 2 * size, "looked {looks} times for {size} files");
        assert!(matches!(prepared, Prepared::Commit(_)), "{prepared:?}");
        assert_eq!(kept(&bed).1, before.1);
        bed.fsck();
    }
}
