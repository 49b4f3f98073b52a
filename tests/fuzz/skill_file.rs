//! Any bytes as the file of a skill, in every dialect: reading ends, and what cannot be used is told.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use workerctl::catalog::roots::{at_path, validate};
use workerctl::model::{Dialect, Severity};

/// A skill's directory, for as long as the process lives.
static SKILL: LazyLock<PathBuf> = LazyLock::new(|| {
    let skill = tempfile::tempdir()
        .expect("a directory")
        .keep()
        .join("skill");
    std::fs::create_dir(&skill).expect("a directory in it");
    skill
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(SKILL.join("SKILL.md"), bytes).expect("the file is written");
    for dialect in [Dialect::Agent, Dialect::Wave, Dialect::Workspace] {
        match at_path(&SKILL, dialect).expect("it has the form of a skill") {
            Ok(skill) => {
                let loaded = skill.load().expect("what was read once is read again");
                assert!(!loaded.body.is_empty() && !skill.name.is_empty());
                drop(validate(&skill, true));
            }
            Err(problems) => {
                let told = |least| problems.iter().any(|one| one.severity >= least);
                assert!(told(Severity::Warning), "nothing says why it is left out");
            }
        }
    }
});
