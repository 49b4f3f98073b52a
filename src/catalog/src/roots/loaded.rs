//! A skill of a root read anew, for the moment in which it is used.

use std::sync::Arc;

use super::RootSkill;
use super::files::{self, FileError};
use super::read::{self, Definition};
use super::scan::Candidate;
use super::trust::{Trust, TrustFiles};
use crate::dialect::Keys;
use crate::dialect::portable;
use crate::dialect::wave::Violation;
use crate::model::{Problem, Severity};
use crate::open::Root;
use crate::report::Report;
use crate::source::whole_file;
use crate::view::View;

/// A skill with all that it says.
#[derive(Debug, Clone)]
pub struct LoadedSkill {
    /// Its keys, every default filled in.
    pub keys: Keys,
    /// What it says, never a template.
    pub body: String,
    /// The whole file.
    pub text: String,
    /// What was found on the way.
    pub problems: Vec<Problem>,
}

/// Why a skill is not handed out.
#[derive(Debug, Clone, PartialEq)]
pub enum Withheld {
    /// It is no skill any more, for these reasons.
    Rejected(Vec<Problem>),
    /// It breaks the contract of its root in these ways.
    Invalid(Vec<Violation>),
    /// Its root is not trusted, and what it holds is not either.
    Untrusted(Trust),
}

impl RootSkill {
    /// Reads it for somebody who will follow it: only where it can be read, is valid, and is trusted with
    /// exactly the text that is handed out.
    pub fn hand_out(&self, trust: &TrustFiles) -> Result<LoadedSkill, Withheld> {
        // Of what is not trusted not even the problems are told: they repeat what it says.
        let before = trust.state(self);
        if !before.holds() {
            return Err(Withheld::Untrusted(before));
        }
        let loaded = self.load().map_err(|problems| {
            if before == Trust::Root {
                Withheld::Rejected(problems)
            } else {
                Withheld::Untrusted(Trust::Changed)
            }
        })?;
        self.vouched(loaded, trust)
    }

    /// What was read, where exactly that may be handed out.
    pub(crate) fn vouched(
        &self,
        loaded: LoadedSkill,
        trust: &TrustFiles,
    ) -> Result<LoadedSkill, Withheld> {
        let state = trust.state_of(self, &[(self.file_name(), loaded.text.as_bytes())]);
        if !state.holds() {
            return Err(Withheld::Untrusted(state));
        }
        if !loaded.keys.violations.is_empty() {
            return Err(Withheld::Invalid(loaded.keys.violations));
        }
        if loaded.is_valid() {
            Ok(loaded)
        } else {
            Err(Withheld::Rejected(loaded.problems))
        }
    }

    /// Reads a file beside it for somebody who was handed the skill out: trust covers exactly its bytes.
    pub fn hand_out_file(
        &self,
        loaded: &LoadedSkill,
        path: &str,
        trust: &TrustFiles,
    ) -> Result<Vec<u8>, FileError> {
        let bytes = files::read(self, &loaded.keys, path)?;
        self.vouched_file(loaded, path, bytes, trust)
    }

    /// What was read from a file beside it, where exactly that may be handed out.
    pub(crate) fn vouched_file(
        &self,
        loaded: &LoadedSkill,
        path: &str,
        bytes: Vec<u8>,
        trust: &TrustFiles,
    ) -> Result<Vec<u8>, FileError> {
        let text = loaded.text.as_bytes();
        if path == self.file_name() {
            return Ok(text.to_vec());
        }
        let state = trust.state_of(self, &[(self.file_name(), text), (path, &bytes)]);
        if state.holds() {
            Ok(bytes)
        } else {
            Err(FileError::Untrusted(state))
        }
    }

    /// Reads it anew; the problems where it is no skill any more.
    pub fn load(&self) -> Result<LoadedSkill, Vec<Problem>> {
        self.read_anew(false)
    }

    /// As [`RootSkill::load`], and holds it to the Agent Skills specification exactly.
    pub fn load_portable(&self) -> Result<LoadedSkill, Vec<Problem>> {
        self.read_anew(true)
    }

    fn read_anew(&self, hold_to_specification: bool) -> Result<LoadedSkill, Vec<Problem>> {
        let mut report = Report::default();
        report.set_skill(Some(&self.name));
        let place = whole_file(&self.place.path);
        let definition = self
            .candidate(&mut report)
            .and_then(|candidate| read::read(&candidate, &mut report));
        let Some(definition) = definition else {
            return Err(report.finish(place));
        };
        for one in &definition.keys.violations {
            report.error("skill-invalid", place.clone(), one.error.clone(), &one.fix);
        }
        if hold_to_specification {
            self.hold_to_specification(&definition, &mut report);
        }
        let mut problems = report.finish(place);
        // The specification allows a skill that says nothing.
        problems.retain(|one| !(hold_to_specification && one.code == read::NO_BODY));
        Ok(LoadedSkill {
            keys: definition.keys,
            body: definition.body,
            text: definition.text,
            problems,
        })
    }

    fn hold_to_specification(&self, definition: &Definition, report: &mut Report) {
        let view = View::root(&definition.document.source, &definition.document.root);
        let placed = portable::Placed {
            stem: &self.stem,
            file: self.file_name(),
            form: self.form,
            text: &definition.text,
        };
        let repaired = report.has("prose-quoted");
        portable::check(view, placed, repaired, report);
    }

    fn candidate(&self, report: &mut Report) -> Option<Candidate> {
        let base = Root::open(&self.base).ok();
        let Some(base) = base.filter(|base| base.path() == self.base) else {
            report.error(
                "directory-unreadable",
                whole_file(&self.place.path),
                format!("`{}` was moved or replaced", self.base.display()),
                "reload the definitions",
            );
            return None;
        };
        Some(Candidate {
            root: Arc::clone(&self.root),
            base: Arc::new(base),
            inner: self.inner.clone(),
            shown: self.place.path.to_string(),
            stem: self.stem.clone(),
            form: self.form,
            stamp: None,
        })
    }
}

impl LoadedSkill {
    /// Whether it may be handed out: nothing rejects it.
    pub fn is_valid(&self) -> bool {
        self.problems
            .iter()
            .all(|problem| problem.severity != Severity::Error)
    }
}
