//! Destinations of outputs: rendered, held to their shape, never outside the workspace.

use std::path::{Path, PathBuf};

use super::Submitting;
use crate::model::definition::{RunText, Skill};
use crate::model::spec::{OutputKind, OutputSpec};
use crate::model::{Diagnostic, Kind, RunId, SkillRef};
use crate::template::{PathTemplate, Scope, Values};

/// Longest rendered destination in bytes.
const DESTINATION_BYTES_MAX: usize = 1_024;

impl Submitting<'_> {
    pub(super) fn outputs(
        &self,
        values: &Values,
        date: &str,
    ) -> Result<Vec<OutputSpec>, Diagnostic> {
        let mut outputs: Vec<OutputSpec> = Vec::new();
        for output in &self.skill.outputs {
            let path = match &output.destination {
                Some(destination) => {
                    let path = self.destination(destination, output.kind, values, date)?;
                    if outputs
                        .iter()
                        .any(|other| other.path.as_ref() == Some(&path))
                    {
                        return Err(Diagnostic::new(
                            Kind::Definition,
                            "destination_shared",
                            format!("two outputs of `{}` go to `{path}`", self.skill.address),
                        )
                        .hint("give each output a destination of its own"));
                    }
                    Some(path)
                }
                None => None,
            };
            outputs.push(OutputSpec {
                name: output.name.clone(),
                kind: output.kind,
                path,
            });
        }
        Ok(outputs)
    }

    pub(super) fn destination(
        &self,
        destination: &str,
        kind: OutputKind,
        values: &Values,
        date: &str,
    ) -> Result<String, Diagnostic> {
        let compiled = self.compiled(PathTemplate::compile(destination, self.names))?;
        let refused = |why: &str| {
            Diagnostic::new(
                Kind::Usage,
                "destination",
                format!("the destination `{destination}` cannot be used: {why}"),
            )
        };
        let mut path = compiled
            .render(values)
            .map_err(|error| refused(&error.to_string()))?;
        if path.ends_with('/') {
            path = format!("{path}{date}{}", invented_name(&self.skill.address, kind));
        }
        let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
        match path_problem(&path) {
            Some(why) => Err(refused(why)),
            None => Ok(path),
        }
    }

    /// Large values travel in files: each input has one, written when a command asks for it.
    pub(super) fn add_files(&self, values: &mut Values, run: RunId) {
        let directory = input_files(self.around.state_dir, run);
        for input in &self.skill.inputs {
            let path = directory.join(&input.name).to_string_lossy().into_owned();
            values.set_file(Scope::Input, input.name.clone(), path);
        }
    }
}

/// What follows the date in the name of a file whose output names a directory only.
///
/// The worker's id is part of it, because workers often have skills of the same id, above all those made from one
/// template.
pub(crate) fn invented_name(skill: &SkillRef, kind: OutputKind) -> String {
    format!("-{}-{}.{}", skill.worker, skill.skill, kind.extension())
}

/// Where the files of `{x.file}` lie.
pub(super) fn input_files(state_dir: &Path, run: RunId) -> PathBuf {
    state_dir
        .join("scratch")
        .join(run.to_string())
        .join("inputs")
}

/// The output that standard output becomes: the only one with a path, where the text does not name it.
pub(super) fn stdout_output(skill: &Skill, outputs: &[OutputSpec], named: bool) -> Option<usize> {
    let mut with_path = outputs
        .iter()
        .enumerate()
        .filter(|(_, output)| output.path.is_some());
    let (place, output) = with_path.next()?;
    let only = with_path.next().is_none();
    let literal = match (&skill.run, &output.path) {
        (RunText::Shell(text), Some(path)) => text.contains(path.as_str()),
        (RunText::Argv(argv), Some(path)) => argv.iter().any(|item| item.contains(path.as_str())),
        _ => false,
    };
    (only && !named && !literal).then_some(place)
}

/// Why a rendered destination cannot be used; links are looked at again right before each use.
fn path_problem(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.len() > DESTINATION_BYTES_MAX || path.split('/').any(|part| part.len() > 255) {
        return Some("it is too long");
    }
    if path.starts_with('/') {
        return Some("it is absolute; write it relative to the workspace");
    }
    if path.chars().any(char::is_control) {
        return Some("it holds control characters");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("it holds an empty, `.` or `..` component");
    }
    let reserved =
        |part: &str| part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case(".workerctl");
    path.split('/')
        .any(reserved)
        .then_some("it is in `.git` or `.workerctl`")
}
