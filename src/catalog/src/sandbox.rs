//! `sandbox`: whether the kernel keeps commands within walls, and what is let through.

use std::path::PathBuf;

use super::keys::{SANDBOX, report_unknown};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::sandbox::{Level, NetworkChoice, Sandbox};
use crate::model::{Place, WorkerPaths};

/// Paths that one key may name.
const PATHS_MAX: usize = 200;

/// Ports that may be named.
const PORTS_MAX: usize = 100;

/// What a skill or a worker says.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredSandbox {
    place: Place,
    sandbox: Sandbox,
}

impl DeclaredSandbox {
    /// What holds where the worker or the workspace speaks too. What is nearer to the skill counts, but insisting
    /// on walls is never taken back.
    pub(crate) fn within(mut self, outer: &Sandbox, report: &mut Report) -> DeclaredSandbox {
        let narrows = outer.network != NetworkChoice::Any || outer.reads.is_some();
        if self.sandbox.level == Level::Off && (outer.level >= Level::Required || narrows) {
            report.error(
                "sandbox-contradiction",
                self.place.clone(),
                format!("`sandbox: off` contradicts `{outer}` of an outer level"),
                "remove one of the two; the outer setting may be in the worker or in workerctl.yaml",
            );
        }
        let own = &mut self.sandbox;
        if outer.level >= Level::Required {
            own.level = own.level.max(outer.level);
        }
        own.write.extend(outer.write.iter().cloned());
        if own.reads.is_none() {
            own.reads.clone_from(&outer.reads);
        }
        own.network = std::mem::take(&mut own.network).and(outer.network.clone());
        own.unix_sockets |= outer.unix_sockets;
        self
    }

    /// What it says.
    pub(crate) fn sandbox(self) -> Sandbox {
        self.sandbox
    }
}

/// Reads `sandbox`; `None`: it is a word that means something else to somebody else. What lies in `workers` is never
/// granted to write.
pub(crate) fn read(
    view: View<'_>,
    workers: &WorkerPaths,
    report: &mut Report,
) -> Option<DeclaredSandbox> {
    let mut sandbox = Sandbox::default();
    sandbox.level = if let Data::Map(_) = view.data() {
        report_unknown(view, &SANDBOX, report);
        let value = |key| view.written(key);
        if let Some(found) = value("write") {
            sandbox.write = paths(found, "write", workers, report);
        }
        sandbox.reads = value("reads").map(|found| paths(found, "reads", workers, report));
        if let Some(found) = value("network") {
            sandbox.network = network(found, report);
        }
        if let Some(found) = value("unix_sockets") {
            sandbox.unix_sockets = found.flag("unix_sockets", report).unwrap_or(false);
        }
        match value("level") {
            None => Level::Auto,
            Some(found) => {
                let text = found.scalar_text().unwrap_or_default();
                level(&text).unwrap_or_else(|| {
                    report.error(
                        "unknown-value",
                        found.place(),
                        format!("`level: {}` is not known", text.escape_debug()),
                        "write `auto`, `required`, `private` or `off`",
                    );
                    Level::Private
                })
            }
        }
    } else {
        report_flag(view, report);
        level(&view.scalar_text()?)?
    };
    let level = sandbox.level;
    if level == Level::Off
        && sandbox
            != (Sandbox {
                level,
                ..Sandbox::default()
            })
    {
        report.error(
            "sandbox-contradiction",
            view.place(),
            "`level: off` is combined with keys that have no effect without a sandbox".to_owned(),
            "remove `level`, or the others",
        );
    }
    Some(DeclaredSandbox {
        place: view.place(),
        sandbox,
    })
}

/// Reports `true`, which does not say which level is meant.
fn report_flag(view: View<'_>, report: &mut Report) {
    if matches!(view.data(), Data::Bool(true)) {
        let message = "`true` is not a level of `sandbox`".to_owned();
        let hint = "write `sandbox: required`, or `sandbox: auto` to run without a sandbox where the kernel has none";
        report.error("unknown-value", view.place(), message, hint);
    }
}

/// Reads `sandbox` of the configuration, where every word has to be known.
pub(crate) fn of_workspace(
    view: View<'_>,
    workers: &WorkerPaths,
    report: &mut Report,
) -> Option<Sandbox> {
    let asked = read(view, workers, report);
    if asked.is_none() {
        report.error(
            "unknown-value",
            view.place(),
            format!("`{}` is not a level of `sandbox`", shown(view)),
            "write `auto`, `required`, `private`, `off`, or a map with `level`",
        );
    }
    asked.map(DeclaredSandbox::sandbox)
}

/// A value that is refused, in words: short text as it is written.
fn shown(view: View<'_>) -> String {
    let text = view.scalar_text().filter(|text| text.len() <= 64);
    text.map_or_else(
        || view.kind().to_owned(),
        |text| text.escape_debug().to_string(),
    )
}

fn level(text: &str) -> Option<Level> {
    match text {
        "auto" | "optional" => Some(Level::Auto),
        "required" | "true" => Some(Level::Required),
        "private" => Some(Level::Private),
        "off" | "none" | "false" => Some(Level::Off),
        _ => None,
    }
}

/// Reads a list of paths; those that are never granted are refused.
fn paths(view: View<'_>, key: &str, workers: &WorkerPaths, report: &mut Report) -> Vec<String> {
    let listed: Vec<View<'_>> = match view.data() {
        Data::List(items) if items.len() > PATHS_MAX => {
            let message = format!("`{key}` has more than {PATHS_MAX} entries");
            report.error("too-many", view.place(), message, "name a directory");
            return Vec::new();
        }
        Data::List(_) => view.items().collect(),
        _ => vec![view],
    };
    let texts = listed.into_iter().filter_map(|item| {
        let text = item.filled_text(key, report)?;
        refuse(&item, key, &text, workers, report)?;
        Some(text)
    });
    texts.collect()
}

fn refuse(
    view: &View<'_>,
    key: &str,
    text: &str,
    workers: &WorkerPaths,
    report: &mut Report,
) -> Option<()> {
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    let is_relative = !text.starts_with(['/', '~']);
    let wrong = if text.contains(['*', '?', '{', '}', '$'])
        || text.split('/').any(|part| part == "..")
    {
        Some(
            "is not a plain path: it must not contain a pattern, a placeholder, a variable or `..`",
        )
    } else if text.starts_with('~') && !(text == "~" || text.starts_with("~/")) {
        Some("is another user's home, which is not looked up")
    } else if key == "write" && text.split('/').any(|part| part == ".git") {
        Some("is in a repository's own files, which are never granted")
    } else if key == "write"
        && is_relative
        && (matches!(parts.first(), Some(&(".workerctl" | "workerctl.yaml")))
            || workers.meet(&parts.iter().collect::<PathBuf>()))
    {
        Some("covers definitions or files of the engine, to which access is never granted")
    } else {
        None
    };
    let Some(why) = wrong else {
        return Some(());
    };
    report.error(
        "sandbox-grant",
        view.place(),
        format!("`{key}: {}` {why}", text.escape_debug()),
        "name a directory of its own, such as `/srv/backup` or `~/.cache/tool`",
    );
    None
}

fn network(view: View<'_>, report: &mut Report) -> NetworkChoice {
    let text = view.scalar_text();
    match (text.as_deref(), view.get("tcp")) {
        (Some("any"), _) => return NetworkChoice::Any,
        (Some("none" | "false"), _) => return NetworkChoice::None,
        (None, Some(ports)) => {
            let listed: Vec<View<'_>> = ports.items().take(PORTS_MAX).collect();
            let ports = listed.iter().map(|port| {
                let port = port.whole("tcp", 1..=65_535, report)?;
                u16::try_from(port).ok()
            });
            if let Some(ports) = ports.collect::<Option<Vec<_>>>()
                && !ports.is_empty()
            {
                return NetworkChoice::Tcp(ports);
            }
        }
        _ => {}
    }
    report.error(
        "unknown-value",
        view.place(),
        format!(
            "`network` must be `none`, `any` or a map with `tcp`, not {}",
            view.kind()
        ),
        &match view.data() {
            Data::List(_) if !view.raw().is_empty() && view.raw().len() < 64 => {
                format!("write `network: {{tcp: {}}}`", view.raw())
            }
            _ => "write `none`, `any` or `{tcp: [53, 443]}`".to_owned(),
        },
    );
    NetworkChoice::None
}
