//! `workerctl.yaml`: the engine's configuration with the origin of each value.

mod agent;
mod mcp;
mod retention;
mod web;

use super::access;
use super::approval;
use super::document;
use super::isolation::{self, PushTo};
use super::keys::{
    APPROVAL, CONFIG, CONFIG_COMMIT, CONFIG_DIRECTORY, CONFIG_MCP, CONFIG_METRICS, CONFIG_QUEUE,
    CONFIG_SKILLS, CONFIG_TREES, CONFIG_WORKERS, report_unknown,
};
use super::limits;
use super::notify;
use super::open::Root;
use super::protected_files;
use super::rate_limit::{self, OnRateLimit};
use super::report::Report;
use super::roots::settings as roots;
use super::sandbox;
use super::schedule;
use super::settings;
use super::source::{Source, whole_file};
use super::tree::Data;
use super::view::View;
use super::worker_paths;

use crate::bounds::{OUTPUT_BYTES_MAX, PARALLEL_MAX, QUEUE_MAX, TREES_MAX};
use crate::model::config::CONFIG_FILE;
use crate::model::skill_roots::FAMILIES;
use crate::model::{Config, Problem};

/// Reads the configuration; where a value is rejected its default stands, and an error is told.
pub(crate) fn read(root: &Root) -> (Config, Vec<Problem>) {
    let (config, _, problems) = read_with_text(root);
    (config, problems)
}

/// The same, with the text that it was read from; `None` if there is no file, or none that is text.
pub(crate) fn read_with_text(root: &Root) -> (Config, Option<String>, Vec<Problem>) {
    let mut report = Report::default();
    let mut config = Config::default();
    for (path, _) in CONFIG.paths() {
        config.origins.insert(path, "default".to_owned());
    }
    let absent = std::fs::symlink_metadata(root.path().join(CONFIG_FILE))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let source = if absent {
        None
    } else {
        root.source(CONFIG_FILE, &mut report)
    };
    let text = source.as_ref().map(|source| source.text().to_owned());
    if let Some(source) = source {
        read_source(root, source, &mut config, &mut report);
    }
    (config, text, report.finish(whole_file(CONFIG_FILE)))
}

fn read_source(
    root: &Root,
    source: Source,
    config: &mut Config,
    report: &mut Report,
) -> Option<()> {
    let (yaml, body) = super::frontmatter::of_worker_file(&source, report).ok()?;
    if body.is_some() {
        let message = "text follows the configuration".to_owned();
        report.error("multiple-documents", source.whole(), message, "remove it");
        return None;
    }
    let document = document::read(source, yaml, report)?;
    let map = View::root(&document.source, &document.root);
    match map.data() {
        Data::Map(_) => {}
        Data::Null => return Some(()),
        _ => {
            let message = format!("the configuration is {}, not a map of keys", map.kind());
            let hint = "write keys such as `timezone: Europe/Berlin`";
            report.error("definition-shape", map.place(), message, hint);
            return None;
        }
    }
    report_unknown(map, &CONFIG, report);
    let mut reader = Reader { map, config };
    reader.numbers(report);
    reader.texts(report);
    reader.hooks(root, report);
    reader.landing(report);
    reader.retention(report);
    reader.workers(report);
    reader.skills(report);
    let protected = reader.value("protected_files", report, protected_files::read);
    reader.config.protected_files = protected.unwrap_or_default();
    reader.mcp(report);
    reader.mcp_over_http(report);
    reader.web(report);
    reader.access(report);
    reader.models(report);
    reader.program(report);
    reader.budget(report);
    reader.instances(report);
    for (key, value) in map.entries() {
        if CONFIG.keeps(key) {
            reader.config.kept.insert(key.to_owned(), value.json());
        }
    }
    Some(())
}

struct Reader<'a, 'c> {
    map: View<'a>,
    config: &'c mut Config,
}

impl<'a> Reader<'a, '_> {
    /// The value at a dotted path; its origin is remembered.
    fn at(&mut self, path: &str) -> Option<View<'a>> {
        let mut view = self.map;
        for key in path.split('.') {
            view = view.written(key)?;
        }
        let origin = format!("{CONFIG_FILE}:{}", view.place().line);
        self.config.origins.insert(path.to_owned(), origin);
        Some(view)
    }

    /// Remembers the origins of all values in a map.
    fn at_all(&mut self, key: &str) {
        let all = CONFIG.paths().into_iter();
        for (path, _) in all.filter(|(path, _)| path.split('.').next() == Some(key)) {
            self.at(&path);
        }
    }

    /// The value at a path, when it can be read; otherwise its origin is the default again.
    fn value<T>(
        &mut self,
        path: &str,
        report: &mut Report,
        read: impl Fn(View<'a>, &mut Report) -> Option<T>,
    ) -> Option<T> {
        let view = self.at(path)?;
        let value = read(view, report);
        if value.is_none() {
            self.config
                .origins
                .insert(path.to_owned(), "default".to_owned());
        }
        value
    }

    fn numbers(&mut self, report: &mut Report) {
        let parallel = self.value("max_parallel", report, |view, report| {
            view.whole("max_parallel", 0..=PARALLEL_MAX, report)
        });
        if let Some(parallel) = parallel {
            self.config.max_parallel = u32::try_from(parallel).unwrap_or(0);
        }
        let queue = self.value("queue.max", report, |view, report| {
            view.whole("max", 1..=QUEUE_MAX, report)
        });
        if let Some(queue) = queue {
            self.config.queue_max = u32::try_from(queue).unwrap_or(self.config.queue_max);
        }
        let bytes = self.value("output_bytes_max", report, |view, report| {
            view.whole("output_bytes_max", 1_024..=OUTPUT_BYTES_MAX, report)
        });
        if let Some(bytes) = bytes {
            self.config.output_bytes_max = bytes;
        }
        let view = self.map.written("limits");
        if let Some(view) = view {
            self.at_all("limits");
            self.config.limits = limits::read(view, report).within(self.config.limits);
        }
        for path in ["timeout", "grace", "drain_grace", "keep_refs"] {
            let Some(millis) = self.value(path, report, |view, report| view.millis(path, report))
            else {
                continue;
            };
            match path {
                "timeout" => self.config.timeout_ms = millis,
                "grace" => self.config.grace_ms = millis,
                "drain_grace" => self.config.drain_grace_ms = millis,
                _ => self.config.keep_refs_ms = millis,
            }
        }
    }

    fn texts(&mut self, report: &mut Report) {
        let hours = self.value("blocked_hours", report, |view, report| {
            let before = report.errors();
            let hours = schedule::hours(view, report);
            (report.errors() == before).then_some(hours)
        });
        self.config.blocked_hours = hours.unwrap_or_default();
        if let Some(zone) = self.value("timezone", report, settings::timezone) {
            self.config.timezone = zone;
        }
        for (key, known) in [
            ("queue", &CONFIG_QUEUE),
            ("trees", &CONFIG_TREES),
            ("approval", &APPROVAL),
            ("commit", &CONFIG_COMMIT),
            ("threads", &CONFIG_DIRECTORY),
            ("metrics", &CONFIG_METRICS),
            ("workers", &CONFIG_WORKERS),
            ("skills", &CONFIG_SKILLS),
            ("mcp", &CONFIG_MCP),
        ] {
            let Some(view) = self.map.written(key) else {
                continue;
            };
            known.is_map(view, key, "a map", report);
        }
        if let Some(author) = self.value("commit.author", report, settings::author) {
            self.config.commit_author = Some(author);
        }
        let message = self.value("commit.message", report, |view, report| {
            view.filled_text("message", report)
        });
        if let Some(message) = message {
            self.config.commit_message = message;
        }
        let directory = |view: View<'a>, report: &mut Report| {
            let path = settings::inner_path(view, "directory", report)?;
            // The engine would take one kind of its files for another, or all of the workspace for its own.
            let first = path
                .split('/')
                .find(|part| !part.is_empty() && *part != ".");
            if !matches!(first, None | Some(".workerctl" | "state")) {
                return Some(path);
            }
            report.error(
                "path-outside",
                view.place(),
                format!("`directory: {path}` is where the engine keeps other files"),
                "write a directory of its own, such as `workspace/threads`",
            );
            None
        };
        if let Some(path) = self.value("threads.directory", report, directory) {
            self.config.threads_dir = path;
        }
        if let Some(path) = self.value("metrics.directory", report, directory) {
            self.config.metrics_dir = path;
        }
    }

    fn workers(&mut self, report: &mut Report) {
        let paths = self.value("workers.paths", report, worker_paths::read);
        self.config.workers = paths.unwrap_or_default();
    }

    fn skills(&mut self, report: &mut Report) {
        if let Some(found) = self.value("skills.families", report, roots::families) {
            self.config.skills.families = found;
        }
        let personal = self.value("skills.personal", report, |view, report| {
            view.flag("personal", report)
        });
        if let Some(personal) = personal {
            self.config.skills.personal = personal;
        }
        if let Some(found) = self.value("skills.roots", report, roots::extra) {
            self.config.skills.extra = found;
        }
        if self.at("skills.untrusted").is_some() {
            // A restriction that cannot be read holds for all.
            let read = self.value("skills.untrusted", report, roots::families);
            self.config.skills.untrusted =
                read.unwrap_or_else(|| FAMILIES.map(str::to_owned).to_vec());
        }
    }

    fn landing(&mut self, report: &mut Report) {
        self.config.branch = self.value("branch", report, isolation::branch);
        self.config.push = self
            .value("push", report, isolation::push)
            .and_then(PushTo::remote);
        let push_timeout = self.value("push_timeout", report, |view, report| {
            view.millis("push_timeout", report)
        });
        let wait = self.value("land_wait", report, |view, report| {
            view.millis("land_wait", report)
        });
        let max = self.value("trees.max", report, |view, report| {
            view.whole("max", 1..=TREES_MAX, report)
        });
        let min_free = self.value("trees.min_free", report, |view, report| {
            isolation::bytes(view, "min_free", report)
        });
        let idle = self.value("trees.idle", report, |view, report| {
            view.millis("idle", report)
        });
        let before = self.value("approval.before", report, approval::before);
        let expires = self.value("approval.expires", report, approval::expires);
        let on_rate_limit = self.value("on_rate_limit", report, rate_limit::read);
        let workers = self.config.workers.clone();
        let sandbox = self.value("sandbox", report, |view, report| {
            sandbox::of_workspace(view, &workers, report)
        });
        let config = &mut *self.config;
        config.on_rate_limit = on_rate_limit.and_then(OnRateLimit::wait);
        config.approval.before = before;
        config.approval.expires_ms = expires.unwrap_or(config.approval.expires_ms);
        config.sandbox = sandbox.unwrap_or_default();
        config.push_timeout_ms = push_timeout.unwrap_or(config.push_timeout_ms);
        config.land_wait_ms = wait.unwrap_or(config.land_wait_ms);
        let trees = &mut config.trees;
        trees.max = max
            .and_then(|max| u32::try_from(max).ok())
            .unwrap_or(trees.max);
        trees.min_free_bytes = min_free.unwrap_or(trees.min_free_bytes);
        trees.idle_ms = idle.unwrap_or(trees.idle_ms);
    }

    fn access(&mut self, report: &mut Report) {
        self.at_all("access");
        if let Some(view) = self.map.written("access") {
            self.config.access = access::read(view, report);
        }
    }

    fn hooks(&mut self, root: &Root, report: &mut Report) {
        self.at_all("hooks");
        if let Some(view) = self.map.get("hooks") {
            let hooks = settings::hooks(view, report);
            self.config.post_tools_hooks = hooks.post_tools;
            self.config.post_commit_hooks = hooks.post_commit;
        }
        self.at_all("notify");
        if let Some(view) = self.map.written("notify") {
            let mut commands = Vec::new();
            self.config.notify = notify::notify(view, &mut commands, report);
            notify::report_missing(&commands, root, report);
        }
    }
}
