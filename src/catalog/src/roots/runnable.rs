//! Skills of the workspace as the engine runs them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::RootSkill;
use super::loaded::LoadedSkill;
use crate::approval;
use crate::dialect::Keys;
use crate::model::agent::DeclaredAgent;
use crate::model::definition::{RunText, Shell};
use crate::model::legible::hex;
use crate::model::sandbox::Level;
use crate::model::spec::{OnCrash, Retry};
use crate::model::{Config, Problem, Scope, Skill, SkillRef};

impl RootSkill {
    /// Whether skills of its root are executed: those of the workspace itself.
    pub fn is_executed(&self) -> bool {
        self.root.scope == Scope::Workspace
    }

    /// What its runs are named after, and what runs it again.
    pub fn run_address(&self) -> SkillRef {
        SkillRef {
            worker: self.root.label.clone(),
            skill: self.name.clone(),
        }
    }

    /// The skill as it is executed, read anew; what it cannot say, the configuration does.
    pub fn runnable(&self, config: &Config) -> Result<Skill, Vec<Problem>> {
        let loaded = self.load()?;
        if !loaded.is_valid() {
            return Err(loaded.problems);
        }
        let LoadedSkill {
            keys, body, text, ..
        } = loaded;
        let mutating = keys.mutating;
        let asked = approval::DeclaredApproval::default();
        Ok(Skill {
            address: self.run_address(),
            name: self.name.clone(),
            description: keys.description.clone(),
            place: self.place.clone(),
            file: Some(self.place.path.to_string()),
            directory: self.directory().to_string_lossy().into_owned(),
            run: RunText::Instructions,
            run_place: self.place.clone(),
            places: BTreeMap::new(),
            instructions: Some(body),
            inputs: Vec::new(),
            outputs: Vec::new(),
            pre_checks: Vec::new(),
            wake: None,
            checks: Vec::new(),
            mutating,
            idempotent: None,
            on_crash: OnCrash::default(),
            retry: Retry::ONCE,
            on_rate_limit: config.on_rate_limit,
            timeout_ms: None,
            max_runtime_ms: None,
            limits: config.limits,
            cwd: ".".to_owned(),
            shell: Shell::default(),
            env: Vec::new(),
            secrets: std::collections::BTreeMap::new(),
            variables: std::collections::BTreeMap::new(),
            hooks: config.post_tools_hooks.clone(),
            post_commit: config.post_commit_hooks.clone(),
            commit_message: None,
            sandbox: Some(config.sandbox.clone()).filter(|walls| walls.level != Level::Off),
            approval: keys
                .approval_required
                .then(|| asked.resolve(mutating, &config.approval)),
            agent: DeclaredAgent {
                model: keys.model.clone(),
                program: config.program.clone(),
                max_iterations: Some(keys.max_iterations),
                budget: config.budget,
                ..DeclaredAgent::default()
            },
            branch: config.branch.clone().filter(|_| mutating),
            keep: Vec::new(),
            local: Vec::new(),
            parallel: false,
            push: config.push.clone().filter(|_| mutating),
            filtered_stored: false,
            may_control: false,
            unavailable: Vec::new(),
            digest: hex(&Sha256::digest(text.as_bytes())),
            kept: kept(keys),
        })
    }
}

/// The keys that a worker's skill keeps too, each under its one name.
fn kept(keys: Keys) -> Map<String, Value> {
    let file = |file: &crate::dialect::toolset::ListedFile| json!({"path": file.path, "description": file.description});
    let files = keys.files.map(|list| list.iter().map(file).collect());
    let all = [
        ("required_tools", Some(json!(keys.required_tools))),
        (
            "allowed-tools",
            keys.allowed_tools.map(|tools| json!(tools)),
        ),
        ("disallowed-tools", Some(json!(keys.disallowed_tools))),
        ("toolsets", Some(json!(keys.toolsets))),
        ("files", files),
        ("input_schema", keys.input_schema),
        (
            "disable-model-invocation",
            Some(json!(!keys.model_invocable)),
        ),
        ("user-invocable", Some(json!(keys.user_invocable))),
    ];
    all.into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}
