//! Builds one skill from its keys in worker.yaml, its own file and what its worker sets for all.

mod agent;
mod inherit;
pub(crate) mod placement;

use sha2::{Digest, Sha256};

use super::checks;
use super::dialect::tools;
use super::executor::{self, NO_EXECUTOR};
use super::ids::check_id;
use super::instances;
use super::keys::{SKILL, SKILL_FILE, report_unknown};
use super::layers::Layers;
use super::listing::{FileOf, Files, Item};
use super::report::Report;
use super::restrict;
use super::run;
use super::skill_file::SkillFile;
use super::source::directory_of;
use super::texts::{self, PendingText};
use super::worker::WorkerPart;
use crate::model::agent::DeclaredAgent;
use crate::model::definition::{RunText, Unavailable};
use crate::model::legible::hex;
use crate::model::{Place, Problem, Skill, SkillRef};

/// Longest description in characters before it is told.
const DESCRIPTION_CHARS: usize = 1_024;

/// What building a skill gives.
pub(crate) struct Built {
    /// The skill, when nothing rejects it.
    pub(crate) skill: Option<Skill>,
    /// Files that it needs besides its definition, relative to the workspace.
    pub(crate) depends: Vec<String>,
}

/// Builds a skill; `skill` is `None` when an error was reported or nothing is there to do.
pub(crate) fn build(
    item: &Item<'_>,
    files: &Files,
    worker: &WorkerPart<'_>,
    report: &mut Report,
) -> Built {
    let before = report.errors();
    report.set_skill(Some(&item.id));
    let mut depends = Vec::new();
    let skill = Builder::new(item, files, worker)
        .and_then(|builder| builder.build(report, &mut depends))
        .filter(|_| report.errors() == before);
    report.set_skill(None);
    Built { skill, depends }
}

struct Builder<'a, 'i> {
    item: &'i Item<'a>,
    files: &'i Files,
    worker: &'i WorkerPart<'a>,
    layers: Layers<'a>,
    file: Option<&'a SkillFile>,
    unavailable: Vec<Unavailable>,
    texts: Vec<PendingText<'a>>,
    /// Whether keys, inputs or outputs were rejected. What follows from their absence is not reported then.
    incomplete: bool,
}

impl<'a, 'i> Builder<'a, 'i> {
    /// `None` for a skill whose file is broken: its problems are reported already.
    fn new(
        item: &'i Item<'a>,
        files: &'i Files,
        worker: &'i WorkerPart<'a>,
    ) -> Option<Builder<'a, 'i>> {
        let file = match item.file {
            FileOf::Broken => return None,
            FileOf::Read(file) => Some(file),
            FileOf::None | FileOf::Missing(_) => None,
        };
        Some(Builder {
            item,
            files,
            worker,
            layers: Layers::of(item),
            file,
            unavailable: worker.unavailable.clone(),
            texts: worker.texts.clone(),
            incomplete: false,
        })
    }

    fn build(mut self, report: &mut Report, depends: &mut Vec<String>) -> Option<Skill> {
        self.report_keys(report);
        self.check_id(report);
        let (name, description) = self.told(report);
        let mutating = self.mutating(report);
        self.check_restrictions(report);
        let run = self.run(report, depends)?;
        let instructions = self.instructions(&run, report).ok()?;
        let agent = self.agent(&run, report);
        self.why_unavailable(&run, &agent, report);
        self.check_input_schema(&run, report);
        let interface = self.interface(report);
        let placement = self.placement(mutating, report);
        let verification = self.verification(report);
        self.hold_instructions(verification.approval_required);
        let hooks = self.hooks(mutating, report);
        let idempotent = self.flag("idempotent", report);
        let retry = self.retry(mutating, idempotent, report);
        let env = self.env(report);
        let may_control = self.flag("workerctl", report).unwrap_or(false);
        let skill = Skill {
            address: SkillRef {
                worker: self.worker.id.clone(),
                skill: self.item.id.clone(),
            },
            name,
            description,
            place: self.place(),
            file: self.file.map(|file| file.path.clone()),
            directory: self.directory("run"),
            run,
            run_place: self.run_place(),
            places: self.places(),
            instructions,
            inputs: interface.inputs,
            outputs: interface.outputs,
            pre_checks: join(&self.worker.verification.before, verification.before),
            wake: self.wake(report),
            sandbox: self.sandbox(may_control, report),
            approval: self.approval(verification.approval_required, mutating, report),
            agent,
            checks: join(&self.worker.verification.after, verification.after),
            mutating,
            idempotent,
            on_crash: self.on_crash(report),
            retry,
            on_rate_limit: self.on_rate_limit(report),
            timeout_ms: self.millis("timeout", self.worker.timeout_ms, report),
            max_runtime_ms: self.millis("max_runtime", self.worker.max_runtime_ms, report),
            limits: self.limits(report),
            cwd: self.cwd(report),
            shell: self.shell(report),
            env: env.names,
            secrets: env.secrets,
            variables: env.variables,
            hooks: join(&self.worker.post_tools, hooks.post_tools),
            post_commit: join(&self.worker.post_commit, hooks.post_commit),
            commit_message: self.commit_message(report),
            branch: placement.branch,
            keep: placement.keep,
            local: placement.local,
            parallel: placement.parallel,
            push: placement.push,
            filtered_stored: placement.filtered_stored,
            may_control,
            unavailable: Vec::new(),
            digest: self.digest(),
            kept: self.kept(),
        };
        Some(self.finish(skill, report))
    }

    /// Lets the other room look at every text, then hands the skill out.
    fn finish(self, mut skill: Skill, report: &mut Report) -> Skill {
        skill.unavailable = self.unavailable;
        if let Some(checker) = self.worker.options.text_checker {
            let problems = texts::problems(checker, &skill, &self.texts).into_iter();
            let follows =
                |problem: &Problem| self.incomplete && problem.code == texts::UNDECLARED_NAME;
            report.extend(problems.filter(|problem| !follows(problem)));
        }
        skill
    }

    /// Whether the item names a file, or an id alone, and nothing is there.
    fn file_is_missing(&self) -> bool {
        match self.item.file {
            FileOf::Missing(_) => true,
            FileOf::None => self.item.inline.is_none(),
            FileOf::Read(_) | FileOf::Broken => false,
        }
    }

    fn place(&self) -> Place {
        match (self.item.inline, self.file) {
            (None, Some(file)) => file.place(),
            _ => self.item.place.clone(),
        }
    }

    fn run_place(&self) -> Place {
        let run = self.layers.get("run");
        run.map_or_else(|| self.place(), |view| view.place())
    }

    /// Absolute directory of the file that `key` stands in.
    fn directory(&self, key: &str) -> String {
        let relative = self.relative_directory(key);
        let path = self.worker.root.path().join(relative);
        path.to_string_lossy().into_owned()
    }

    fn relative_directory(&self, key: &str) -> &str {
        match self.file {
            Some(file) if self.layers.in_file(key) => directory_of(&file.path),
            _ => self.worker.directory,
        }
    }

    fn report_keys(&mut self, report: &mut Report) {
        let errors = report.errors();
        if let Some(map) = self.layers.inline {
            report_unknown(map, &SKILL, report);
        }
        if let Some(map) = self.layers.file {
            report_unknown(map, &SKILL, report);
        }
        if let Some(map) = self.file.and_then(SkillFile::beside) {
            report_unknown(map, &SKILL_FILE, report);
        }
        self.incomplete = report.errors() > errors;
    }

    fn check_id(&mut self, report: &mut Report) {
        let id = &self.item.id;
        check_id(id, "skill", &self.item.place, report);
        let own = self
            .layers
            .file
            .and_then(|map| map.get("id"))
            .and_then(|view| Some((view, view.scalar_text()?)));
        if let Some((view, own)) = own.filter(|(_, own)| !own.eq_ignore_ascii_case(id)) {
            report.warning(
                "skill-id-mismatch",
                view.place(),
                format!("`id: {own}` has no effect: the skill is `{id}` in worker.yaml"),
                &format!("write `id: {id}`, or change the id in worker.yaml"),
            );
        }
        let file = self.file.filter(|_| !self.item.listed);
        if let Some(file) = file.filter(|file| !file.stem().eq_ignore_ascii_case(id)) {
            report.warning(
                "skill-id-mismatch",
                file.place(),
                format!(
                    "the skill is `{id}`, its file is named after `{}`",
                    file.stem()
                ),
                &format!("rename the file, or write `id: {}`", file.stem()),
            );
        }
        if id.contains('{') {
            self.unavailable.push(Unavailable {
                code: "template".to_owned(),
                reason: format!("`{id}` holds a placeholder: it is a template"),
            });
        }
    }

    /// Rejects keys whose restriction cannot be understood.
    fn check_restrictions(&self, report: &mut Report) {
        for key in ["disable-model-invocation", "user-invocable"] {
            if let Some(view) = self.layers.written(key) {
                checks::restricting_flag(view, key, report);
            }
        }
        let has_sets = self.layers.get("toolsets").is_some();
        for key in ["allowed-tools", "disallowed-tools", "required_tools"] {
            if let Some(view) = self.layers.written(key) {
                let fits = restrict::check_tools(view, key, report);
                if fits && key != "required_tools" {
                    let items = tools::names(&view.json());
                    tools::check_items(view, key, (&items, has_sets), report);
                }
            }
        }
    }

    /// Name and description, with the values of an instance.
    fn told(&self, report: &mut Report) -> (String, String) {
        let told = |text: &str| instances::told(text, &self.worker.placeholders);
        let description = self.description(report);
        (told(&self.name(report)), told(&description))
    }

    fn name(&self, report: &mut Report) -> String {
        let written = self
            .layers
            .get("name")
            .and_then(|view| view.filled_text("name", report));
        written
            .or_else(|| self.file.and_then(|file| file.heading.clone()))
            .unwrap_or_else(|| self.item.id.clone())
    }

    fn description(&self, report: &mut Report) -> String {
        let view = self.layers.get("description");
        let written = view.and_then(|view| view.text("description", report));
        let found = written
            .filter(|text| !text.trim().is_empty())
            .or_else(|| self.file.and_then(|file| file.paragraph.clone()));
        let Some(text) = found else {
            // Where the file is missing, that is what has to be told.
            if self.file_is_missing() {
                return self.item.id.clone();
            }
            report.warning(
                "description-missing",
                view.map_or_else(|| self.place(), |view| view.place()),
                format!("the skill `{}` has no description", self.item.id),
                "add `description` with one sentence",
            );
            return self.item.id.clone();
        };
        let characters = text.chars().count();
        if characters > DESCRIPTION_CHARS {
            report.warning(
                "description-long",
                view.map_or_else(|| self.place(), |view| view.place()),
                format!("the description has {characters} characters"),
                &format!("keep it below {DESCRIPTION_CHARS}"),
            );
        }
        text
    }

    fn mutating(&self, report: &mut Report) -> bool {
        let written = self.layers.written("mutating");
        if written.is_none() && self.file.is_some_and(|file| file.keys().is_none()) {
            report.warning(
                "no-frontmatter",
                self.file.map_or_else(|| self.place(), SkillFile::place),
                "the file has no frontmatter: the skill is taken as not mutating".to_owned(),
                "begin it with `---`, `skill:`, `id`, `name`, `description`, `mutating` and `---`",
            );
        }
        written
            .is_some_and(|view| checks::restricting_flag(view, "mutating", report).unwrap_or(true))
    }

    fn run(&mut self, report: &mut Report, depends: &mut Vec<String>) -> Option<RunText> {
        let Some(view) = self.layers.get("run") else {
            return Some(RunText::Instructions);
        };
        let directory = self.relative_directory("run").to_owned();
        let run = run::read(view, &directory, self.worker.root, report)?;
        self.texts.extend(run.texts);
        self.unavailable.extend(run.unavailable);
        depends.extend(run.depends);
        Some(run.text)
    }

    /// Instructions for a model. An unlisted file that holds nothing to do is left out.
    fn instructions(&self, run: &RunText, report: &mut Report) -> Result<Option<String>, ()> {
        let written = match self.layers.get("instructions") {
            Some(view) => view
                .texts("instructions", report)
                .map(|texts| texts.join("\n")),
            None => None,
        };
        let body = self
            .file
            .map(|file| file.body.clone())
            .filter(|body| !body.is_empty());
        let text = match (written, body) {
            (Some(written), Some(body)) => Some(format!("{written}\n\n{body}")),
            (written, body) => written.or(body),
        };
        let idle = *run == RunText::Instructions && text.is_none();
        if let (true, Some(file)) = (idle && !self.item.listed, self.file) {
            report.warning(
                "empty-instructions",
                file.place(),
                format!(
                    "`{}` has neither `run` nor instructions and is left out",
                    self.item.id
                ),
                "add `run`, or write instructions below the frontmatter",
            );
            return Err(());
        }
        if idle {
            self.report_misspelled_run(report);
        }
        Ok(text)
    }

    fn why_unavailable(&mut self, run: &RunText, agent: &DeclaredAgent, report: &mut Report) {
        if let FileOf::Missing(index) = self.item.file {
            if let Some((_, refusal)) = self.files.missing.get(index) {
                let written = self
                    .layers
                    .inline
                    .and_then(|map| map.written("file").or(map.written("path")));
                report.warning(
                    "skill-file-missing",
                    written.map_or_else(|| self.item.place.clone(), |file| file.place()),
                    format!("the skill is unavailable: {refusal}"),
                    "create the file or correct the path",
                );
                self.unavailable.push(run::missing(refusal));
            }
        } else if self.item.inline.is_none() && self.file.is_none() {
            let path = format!("{}/skills/{}.md", self.worker.directory, self.item.id);
            report.warning(
                "skill-file-missing",
                self.item.place.clone(),
                format!("the skill is unavailable: `{path}` does not exist"),
                "create the file or remove the item",
            );
            self.unavailable.push(Unavailable {
                code: "file-missing".to_owned(),
                reason: format!("`{path}` does not exist"),
            });
        }
        if *run != RunText::Instructions || self.file_is_missing() {
            return;
        }
        if let Some(lack) = executor::lack(
            self.worker.config,
            agent.model.as_deref(),
            agent.program.is_some(),
        ) {
            let message = format!("`{}` is unavailable: {}", self.item.id, lack.reason);
            if !self.incomplete {
                report.note(NO_EXECUTOR, self.place(), message, lack.hint);
            }
            self.unavailable.push(Unavailable {
                code: NO_EXECUTOR.to_owned(),
                reason: lack.reason,
            });
        }
    }

    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.worker.text.as_bytes());
        digest.update([0]);
        digest.update(self.file.map_or("", |file| file.text.as_str()).as_bytes());
        hex(&digest.finalize())
    }

    fn kept(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut kept = serde_json::Map::new();
        for layer in [self.layers.file, self.layers.inline].into_iter().flatten() {
            for (key, value) in layer.entries() {
                if SKILL.keeps(key) {
                    kept.insert(key.to_owned(), value.json());
                }
            }
        }
        kept
    }
}

fn join<T: Clone>(first: &[T], second: Vec<T>) -> Vec<T> {
    first.iter().cloned().chain(second).collect()
}
