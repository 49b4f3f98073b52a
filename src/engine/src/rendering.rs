//! `render`: exactly what would run, and each substitution.

use sha2::{Digest, Sha256};

use super::submission::Ready;
use crate::model::RunSpec;
use crate::model::agent::Executor;
use crate::model::legible::hex;
use crate::model::spec::Program;
use crate::model::value::MASK;
use crate::protocol::{Rendered, RenderedCheck, RenderedInstructions, Substitution};
use crate::template::{Scope, Use};
use crate::thread::project::sandbox_of;

/// What a request would run.
pub(super) fn rendered(ready: &Ready) -> Rendered {
    let spec = &ready.spec;
    let argv = match &spec.program {
        Program::Shell { shell, text } => vec![shell.clone(), "-c".to_owned(), text.clone()],
        Program::Argv { argv, .. } => argv.clone(),
        Program::Agent(_) => Vec::new(),
    };
    let mut environment = spec.environment.clone();
    let secret = ready.secrets.environment.iter();
    environment.extend(secret.map(|(name, _)| (name.clone(), MASK.to_owned())));
    let check = |check: &crate::model::spec::CheckSpec| RenderedCheck {
        description: check.description.clone(),
        command: check.program.as_ref().map(Program::show),
        must_pass: check.must_pass,
    };
    let hooks = spec.hooks.iter().chain(&spec.post_commit);
    Rendered {
        skill: spec.skill.to_string(),
        cwd: spec.cwd.clone(),
        argv,
        instructions: instructions(&spec.program),
        environment,
        env_names: spec.env_names.clone(),
        substitutions: ready
            .uses
            .iter()
            .map(|used| substitution(ready, used))
            .collect(),
        outputs: spec
            .outputs
            .iter()
            .map(|o| (o.name.clone(), o.path.clone()))
            .collect(),
        checks: spec
            .pre_checks
            .iter()
            .chain(&spec.checks)
            .map(check)
            .collect(),
        mutating: spec.plan.mutating,
        commit_message: spec.plan.mutating.then(|| spec.commit_message.clone()),
        inputs: spec
            .inputs
            .iter()
            .map(|(name, value)| (name.clone(), value.to_json()))
            .collect(),
        writes: writes(spec),
        sandbox: sandbox_of(spec),
        branch: spec.tree.as_ref().map(|tree| tree.branch().to_owned()),
        push: spec.tree.as_ref().and_then(|tree| tree.push.clone()),
        hooks: hooks.map(|hook| hook.program.show()).collect(),
        digest: digest(ready),
        budget_spent: None,
        notes: notes(ready),
    }
}

fn writes(spec: &RunSpec) -> Vec<String> {
    let granted = spec.sandbox.iter().flat_map(|sandbox| &sandbox.write);
    granted.cloned().collect()
}

/// SHA-256 in hex of what is asked for: the skill as it is defined, its scripts, its inputs, the branch, what it may write. Nothing of it differs from one
/// moment to the next, as rendered texts may. Of a sensitive input only that it is given.
pub(super) fn digest(ready: &Ready) -> String {
    let spec = &ready.spec;
    let target = spec.tree.as_ref().map(|tree| &tree.target);
    let asked = serde_json::json!([
        spec.skill.to_string(),
        spec.definition_digest,
        spec.requires,
        spec.inputs,
        target,
        writes(spec)
    ]);
    let asked = match &spec.message {
        Some(message) => serde_json::json!([asked, message]),
        None => asked,
    };
    hex(&Sha256::digest(asked.to_string().as_bytes()))
}

fn instructions(program: &Program) -> Option<RenderedInstructions> {
    let Program::Agent(agent) = program else {
        return None;
    };
    let sets = agent
        .toolsets
        .iter()
        .map(|set| format!("tool set {}", set.name));
    let (model, model_name) = match &agent.executor {
        Executor::Model(model) => (model.alias.clone(), model.name.clone()),
        Executor::Program(program) => (
            program.cli.clone(),
            program.model.clone().unwrap_or_default(),
        ),
    };
    Some(RenderedInstructions {
        model,
        model_name,
        text: agent.instructions.clone(),
        tools: agent.tools.iter().cloned().chain(sets).collect(),
        max_iterations: agent.max_iterations,
    })
}

fn substitution(ready: &Ready, used: &Use) -> Substitution {
    let written = ready.written.as_deref();
    let placeholder = written
        .and_then(|text| text.get(used.offset.clone()))
        .map_or_else(|| format!("{{{}}}", used.name), str::to_owned);
    let before = written
        .and_then(|text| text.get(..used.offset.start))
        .unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    Substitution {
        placeholder,
        becomes: used.becomes.clone(),
        value: value(ready, used),
        line: u32::try_from(line).unwrap_or(u32::MAX),
    }
}

fn value(ready: &Ready, used: &Use) -> String {
    let stem = match used.scope {
        Scope::Input => format!("WORKERCTL_INPUT_{}", used.name.replace('-', "_")),
        Scope::Output => format!("WORKERCTL_OUTPUT_{}", used.name.replace('-', "_")),
        Scope::Builtin => format!("WORKERCTL_{}", used.name.to_ascii_uppercase()),
    };
    if ready
        .secrets
        .environment
        .iter()
        .any(|(name, _)| *name == stem)
    {
        return MASK.to_owned();
    }
    let environment = ready.spec.environment.iter();
    if let Some((_, value)) = environment.clone().find(|(name, _)| *name == stem) {
        return value.clone();
    }
    let items = environment.filter(|(name, _)| {
        name.strip_prefix(&stem)
            .and_then(|rest| rest.strip_prefix('_'))
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    items
        .map(|(_, value)| value.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn notes(ready: &Ready) -> Vec<String> {
    let spec = &ready.spec;
    let mut notes = Vec::new();
    if let Some(output) = spec.stdout_to.and_then(|place| spec.outputs.get(place)) {
        notes.push(format!(
            "standard output becomes the output `{}`",
            output.name
        ));
    }
    if let Some(wake) = &spec.wake {
        notes.push(format!(
            "the run ends early if `wake` finds nothing to do: {}",
            wake.program.show().lines().next().unwrap_or_default()
        ));
    }
    if !spec.plan.verifies {
        notes.push("nothing verifies the result: the run will be shown as unverified".to_owned());
    }
    notes
}
