//! What a person approves: its digest, and how it is shown.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::view::RunSnapshot;
use crate::machine::Run;
use crate::model::evidence::HeldResult;
use crate::model::legible::hex;
use crate::model::{RunId, RunSpec};
use crate::protocol::ApprovalView;

/// Below the state directory.
const DIRECTORY: &str = "held";

/// Everything that what happens next depends on.
#[derive(Serialize)]
struct Approved<'a> {
    run: &'a crate::model::RunId,
    skill: &'a crate::model::SkillRef,
    definition: &'a str,
    workspace: &'a str,
    cwd: &'a str,
    inputs: &'a std::collections::BTreeMap<String, crate::model::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    program: &'a crate::model::spec::Program,
    scripts: &'a [(String, Option<String>)],
    environment: &'a [(String, String)],
    env_names: &'a [String],
    #[serde(skip_serializing_if = "crate::model::SecretUses::is_empty")]
    secrets: &'a crate::model::SecretUses,
    outputs: &'a [crate::model::spec::OutputSpec],
    checks: &'a [crate::model::spec::CheckSpec],
    #[serde(skip_serializing_if = "Option::is_none")]
    wake: Option<&'a crate::model::spec::WakeSpec>,
    hooks: &'a [crate::model::spec::HookSpec],
    post_commit: &'a [crate::model::spec::HookSpec],
    tree: Option<&'a crate::model::spec::TreeSpec>,
    result: Option<&'a HeldResult>,
}

/// SHA-256 in hex of what a person is asked about: the skill, its inputs and commands as they were accepted, and the
/// result, where there is one.
pub(super) fn digest(spec: &RunSpec, run: &Run) -> String {
    let approved = Approved {
        run: &spec.run,
        skill: &spec.skill,
        definition: &spec.definition_digest,
        workspace: &spec.workspace,
        cwd: &spec.cwd,
        inputs: &spec.inputs,
        message: spec.message.as_deref(),
        program: &spec.program,
        scripts: &spec.requires,
        environment: &spec.environment,
        env_names: &spec.env_names,
        secrets: &spec.secrets,
        outputs: &spec.outputs,
        checks: &spec.checks,
        wake: spec.wake.as_ref(),
        hooks: &spec.hooks,
        post_commit: &spec.post_commit,
        tree: spec.tree.as_ref(),
        result: run.facts.held.as_ref(),
    };
    // Plain data without maps of other keys than texts always becomes JSON.
    let bytes = serde_json::to_vec(&approved).unwrap_or_default();
    hex(&Sha256::digest(bytes))
}

/// Adds what only the engine knows: the digest that an answer has to name, and where outputs wait.
pub(super) fn complete(view: &mut ApprovalView, shown: &RunSnapshot, state_dir: &Path) {
    if shown.run.asked().is_none() {
        return;
    }
    view.digest = Some(digest(&shown.spec, &shown.run));
    let held = shown.run.facts.held.as_ref();
    if held.is_some_and(|held| !held.outputs.is_empty()) {
        let place = held_place(state_dir, shown.spec.run);
        view.outputs_in = Some(place.display().to_string());
    }
}

/// Where outputs of a run wait for a person.
pub(super) fn held_place(state_dir: &Path, run: RunId) -> PathBuf {
    state_dir.join(DIRECTORY).join(run.to_string())
}

/// Whether what was approved is still what would happen; also where nothing was asked.
pub(super) fn stands(spec: &RunSpec, run: &Run) -> bool {
    let approval = run.facts.approval.as_ref();
    approval.is_none_or(|approval| approval.digest == digest(spec, run))
}
