//! Collects the problems of one file, all of them and not only the first, and says what is rejected for them.

use crate::model::{Place, Problem, Severity};

/// Problems that one worker may have before the rest is only counted.
const PROBLEMS_MAX: usize = 500;

/// A skill that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The worker's id, or its directory where even that is not known.
    pub worker: String,
    /// The skill's id; `None` when the whole worker is rejected.
    pub skill: Option<String>,
    /// Where it stands.
    pub place: Place,
}

/// The problems found so far, and whom they belong to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    errors: usize,
    omitted: usize,
    worker: Option<String>,
    skill: Option<String>,
}

impl Report {
    /// From now on problems belong to this worker.
    pub(crate) fn set_worker(&mut self, worker: Option<&str>) {
        self.worker = worker.map(ToOwned::to_owned);
    }

    /// From now on problems belong to this skill.
    pub(crate) fn set_skill(&mut self, skill: Option<&str>) {
        self.skill = skill.map(ToOwned::to_owned);
    }

    /// How many errors there are; a section that raised it is rejected.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Whether a problem of this code was found.
    pub(crate) fn has(&self, code: &str) -> bool {
        self.problems.iter().any(|problem| problem.code == code)
    }

    /// Something is rejected.
    pub(crate) fn error(&mut self, code: &str, place: Place, message: String, hint: &str) {
        self.add(Severity::Error, code, place, message, hint);
    }

    /// Accepted, though probably not meant.
    pub(crate) fn warning(&mut self, code: &str, place: Place, message: String, hint: &str) {
        self.add(Severity::Warning, code, place, message, hint);
    }

    /// Worth knowing.
    pub(crate) fn note(&mut self, code: &str, place: Place, message: String, hint: &str) {
        self.add(Severity::Note, code, place, message, hint);
    }

    /// Adds a problem of any weight; an empty hint is none.
    pub(crate) fn add(
        &mut self,
        severity: Severity,
        code: &str,
        place: Place,
        message: String,
        hint: &str,
    ) {
        self.push(Problem {
            code: code.to_owned(),
            severity,
            place,
            message,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
            worker: None,
            skill: None,
        });
    }

    /// Adds a finished problem and says whom it belongs to.
    pub(crate) fn push(&mut self, mut problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors += 1;
        }
        if self.problems.len() >= PROBLEMS_MAX {
            self.omitted += 1;
            return;
        }
        problem.worker = problem.worker.or_else(|| self.worker.clone());
        problem.skill = problem.skill.or_else(|| self.skill.clone());
        self.problems.push(problem);
    }

    /// Adds several finished problems.
    pub(crate) fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        for problem in problems {
            self.push(problem);
        }
    }

    /// Everything that was found.
    pub(crate) fn finish(mut self, place: Place) -> Vec<Problem> {
        if self.omitted > 0 {
            self.problems.push(Problem {
                code: "problems-omitted".to_owned(),
                severity: Severity::Warning,
                place,
                message: format!("{} further problems are not listed", self.omitted),
                hint: Some("repair the listed ones first".to_owned()),
                worker: self.worker,
                skill: None,
            });
        }
        self.problems
    }
}
