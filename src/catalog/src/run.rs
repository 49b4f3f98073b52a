//! `run`: shell text, a list of arguments, or a script beside the definition.

use super::folded_text;
use super::keys::{RUN, report_unknown};
use super::open::{Refusal, Root};
use super::report::Report;
use super::texts::{PendingText, TextKind, refuse_foreign};
use super::tree::Data;
use super::view::View;
use crate::model::definition::{RunText, Unavailable};

/// Arguments of one command.
const ARGUMENTS_MAX: usize = 1_000;

/// What `run` asks for.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// What is executed.
    pub(crate) text: RunText,
    /// Texts with placeholders.
    pub(crate) texts: Vec<PendingText<'a>>,
    /// Why it cannot run now.
    pub(crate) unavailable: Option<Unavailable>,
    /// Files that must be there, relative to the workspace.
    pub(crate) depends: Vec<String>,
}

impl Run<'_> {
    fn of(text: RunText) -> Run<'static> {
        Run {
            text,
            texts: Vec::new(),
            unavailable: None,
            depends: Vec::new(),
        }
    }
}

/// Reads `run`; `directory` is that of the file it stands in, relative to the workspace.
pub(crate) fn read<'a>(
    view: View<'a>,
    directory: &str,
    root: &Root,
    report: &mut Report,
) -> Option<Run<'a>> {
    match view.data() {
        Data::Text(_) => {
            let text = view.filled_text("run", report)?;
            folded_text::report(view, report);
            Some(Run {
                texts: vec![PendingText {
                    kind: TextKind::Run,
                    text: text.clone(),
                    view,
                }],
                ..Run::of(RunText::Shell(text))
            })
        }
        Data::List(_) => {
            let (argv, texts) = arguments(view, "run", report)?;
            if argv.first().is_none_or(|program| program.trim().is_empty()) {
                let message = "`run` names no program".to_owned();
                let hint = "write the program first: `run: [git, log]`";
                report.error("blank", view.place(), message, hint);
                return None;
            }
            if is_command_line(&argv) {
                report_command_line(view, &argv, report);
                return None;
            }
            Some(Run {
                texts,
                ..Run::of(RunText::Argv(argv))
            })
        }
        Data::Map(_) if view.get("script").is_some() => script(view, directory, root, report),
        _ => {
            let expected = "a command, a list of arguments or a map with `script`";
            view.wrong_type("run", expected, report);
            None
        }
    }
}

/// Returns true if the first item of a list, the program, is a command line such as `git log`.
pub(crate) fn is_command_line(argv: &[String]) -> bool {
    let first = argv.first().map_or("", |first| first.trim());
    let program = first.split(char::is_whitespace).next().unwrap_or_default();
    program.len() < first.len() && !program.contains('/')
}

fn report_command_line(view: View<'_>, argv: &[String], report: &mut Report) {
    let message = "`run` as a list must be a program and its arguments, but the first item is a whole command line";
    let hint = if argv.iter().skip(1).any(|item| item.starts_with('-')) {
        let words: Vec<&str> = argv
            .iter()
            .flat_map(|item| item.split_whitespace())
            .collect();
        format!("make each word an item: `run: [{}]`", words.join(", "))
    } else {
        format!(
            "write `run: |`, and below it, indented, each command in a line: `{}`",
            argv.join("`, `")
        )
    };
    let place = view.items().next().unwrap_or(view).place();
    report.error("wrong-type", place, message.to_owned(), &hint);
}

fn arguments<'a>(
    view: View<'a>,
    key: &str,
    report: &mut Report,
) -> Option<(Vec<String>, Vec<PendingText<'a>>)> {
    let count = view.items().count();
    if count > ARGUMENTS_MAX {
        let message = format!("more than {ARGUMENTS_MAX} arguments");
        report.error("too-many", view.place(), message, "write a script");
        return None;
    }
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type(key, "a list of texts", report);
        return None;
    }
    let mut argv = Vec::with_capacity(count);
    let mut texts = Vec::with_capacity(count);
    let before = report.errors();
    for item in view.items() {
        if let Some(text) = item.text(key, report)
            && !refuse_foreign(item, &text, report)
        {
            texts.push(PendingText {
                kind: TextKind::Argument,
                text: text.clone(),
                view: item,
            });
            argv.push(text);
        }
    }
    (report.errors() == before).then_some((argv, texts))
}

fn script<'a>(
    view: View<'a>,
    directory: &str,
    root: &Root,
    report: &mut Report,
) -> Option<Run<'a>> {
    report_unknown(view, &RUN, report);
    let script = view.get("script")?;
    let written = script.filled_text("script", report)?;
    let Some(relative) = join(directory, &written) else {
        report.error(
            "path-outside",
            script.place(),
            format!(
                "`script: {}` does not stay inside the workspace",
                written.escape_debug()
            ),
            "write a path relative to the file that names it",
        );
        return None;
    };
    let interpreter = match view.written("interpreter") {
        None => Vec::new(),
        Some(item) => match item.data() {
            Data::List(_) => arguments(item, "interpreter", report)?.0,
            _ => item
                .filled_text("interpreter", report)?
                .split_whitespace()
                .map(ToOwned::to_owned)
                .collect(),
        },
    };
    let (args, texts) = match view.written("args") {
        None => (Vec::new(), Vec::new()),
        Some(item) => arguments(item, "args", report)?,
    };
    let unavailable = match root.find_file(&relative) {
        Ok(false) if interpreter.is_empty() => Some(Unavailable {
            code: "script-not-executable".to_owned(),
            reason: format!("`{relative}` is not executable and no `interpreter` is named"),
        }),
        Ok(_) => None,
        Err(refusal) => Some(missing(&refusal)),
    };
    if let Some(unavailable) = &unavailable {
        let place = script.place();
        let hint = if unavailable.code == "file-missing" {
            let file = place.path.rsplit('/').next().unwrap_or(&place.path);
            format!("create it, or correct the path, which is relative to {file}")
        } else {
            "add `interpreter`, make the script executable, or correct the path".to_owned()
        };
        report.warning(&unavailable.code, place, unavailable.reason.clone(), &hint);
    }
    Some(Run {
        text: RunText::Script {
            path: root.path().join(&relative).to_string_lossy().into_owned(),
            interpreter,
            args,
        },
        texts,
        unavailable,
        depends: vec![relative],
    })
}

/// Why a file that a definition names keeps it from running.
pub(crate) fn missing(refusal: &Refusal) -> Unavailable {
    Unavailable {
        code: refusal.code_and_hint().0.to_owned(),
        reason: refusal.to_string(),
    }
}

/// Joins a directory and a path relative to it; `None` when it leads above the workspace.
pub(crate) fn join(directory: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) || path.contains(['\0', '\\']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn paths_stay_inside_the_workspace() {
        let table = [
            ("workers/a", "x.py", Some("workers/a/x.py")),
            ("workers/a", "./skills//x.md", Some("workers/a/skills/x.md")),
            ("workers/a", "../b/x.py", Some("workers/b/x.py")),
            ("workers/a", "../../../x", None),
            ("workers/a", "/etc/passwd", None),
            ("workers/a", "~/x", None),
            ("workers/a", "..\\x", None),
        ];
        for (directory, path, expected) in table {
            assert_eq!(join(directory, path).as_deref(), expected, "{path}");
        }
    }
}
