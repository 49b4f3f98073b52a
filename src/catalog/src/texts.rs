//! How another room looks at the texts of a skill while they are loaded.

use std::sync::Arc;

use super::report::Report;
use super::view::View;
use crate::model::{Problem, Severity, Skill, Worker};

/// What a text is for; what is allowed in it follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// `run` as shell text.
    Run,
    /// One item of `run` as a list, or of a script's `args`; no shell reads it.
    Argument,
    /// A check's command, shell text.
    Check,
    /// Command of a `pre_execute` check or of a wake gate, shell text: outputs do not exist yet.
    PreCheck,
    /// A hook's command, shell text without placeholders.
    Hook,
    /// Path of an output.
    Destination,
    /// Template of the commit message.
    CommitMessage,
    /// Regular expression of an input.
    Pattern,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFinding {
    /// Stable code, lower case with dashes.
    pub code: String,
    /// Weight; an error rejects the skill.
    pub severity: Severity,
    /// Byte of the text where it stands.
    pub offset: usize,
    /// A lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Looks at the texts of a skill; the catalog turns what is found into problems with places.
///
/// It is called from several threads at once, with the skill as it will be handed out.
pub trait TextChecker: Sync {
    /// Everything that is wrong with each text of `skill`, text by text.
    fn check(&self, skill: &Skill, texts: &[(TextKind, &str)]) -> Vec<Vec<TextFinding>>;

    /// Everything that is wrong between the texts of several skills.
    fn check_all(&self, _workers: &[Arc<Worker>]) -> Vec<Problem> {
        Vec::new()
    }
}

/// A text that waits until its skill is complete.
#[derive(Debug, Clone)]
pub(crate) struct PendingText<'a> {
    pub(crate) kind: TextKind,
    pub(crate) text: String,
    pub(crate) view: View<'a>,
}

/// Code of a name in braces that is neither an input nor an output.
pub(crate) const UNDECLARED_NAME: &str = "undeclared-name";

/// Refuses `${{ … }}` in a text that is used as it is: an expression of CI systems.
pub(crate) fn refuse_foreign(view: View<'_>, text: &str, report: &mut Report) -> bool {
    let Some(at) = text.find("${{") else {
        return false;
    };
    let secret = text[at..].split_once("secrets.").map(|(_, rest)| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        rest.split(|c| !is_word(c)).next().unwrap_or_default()
    });
    let hint = match secret {
        Some(name) if !name.is_empty() => format!(
            "write `env: [{name}]`: commands then have the secret `{name}` of the engine's environment as `${name}`"
        ),
        _ => "write the value itself; commands read variables of `env` as `$NAME`".to_owned(),
    };
    let message = "`${{ … }}` is not an expression of workerctl".to_owned();
    report.error("foreign-expression", view.place_within(at), message, &hint);
    true
}

/// The problems that `checker` finds in the texts of a skill, each at its place in the file.
pub(crate) fn problems(
    checker: &dyn TextChecker,
    skill: &Skill,
    pending: &[PendingText<'_>],
) -> Vec<Problem> {
    let texts: Vec<(TextKind, &str)> = pending
        .iter()
        .map(|text| (text.kind, text.text.as_str()))
        .collect();
    let found = checker.check(skill, &texts);
    pending
        .iter()
        .zip(found)
        .flat_map(|(text, findings)| findings.into_iter().map(|finding| text.problem(finding)))
        .collect()
}

impl PendingText<'_> {
    fn problem(&self, finding: TextFinding) -> Problem {
        Problem {
            code: finding.code,
            severity: finding.severity,
            place: self.view.place_within(finding.offset),
            message: finding.message,
            hint: finding.hint,
            worker: None,
            skill: None,
        }
    }
}
