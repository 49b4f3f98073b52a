//! What a skill needs of the configuration so that a model can execute it, and what is missing there.

use super::keys::suggest;
use super::report::Report;
use crate::model::agent::{DEFAULT_MODEL, has_model_client};
use crate::model::{Config, Place};

/// Code of why instructions are not executed.
pub const NO_EXECUTOR: &str = "no-executor";

/// What is said of a skill of a root whose skills are not executed.
pub(crate) const READ_ONLY_ROOT: &str = "skills of this root are read, not executed";

/// Why instructions are not executed, with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) reason: String,
    pub(crate) hint: &'static str,
}

/// Why nothing executes the instructions of a skill that names this model; `None`: something does, be it a program.
pub(crate) fn lack(config: &Config, alias: Option<&str>, by_program: bool) -> Option<Lack> {
    lack_in(config, alias, by_program, has_model_client())
}

fn lack_in(
    config: &Config,
    alias: Option<&str>,
    by_program: bool,
    has_client: bool,
) -> Option<Lack> {
    if !has_client {
        return Some(Lack {
            reason: "this build has no model client (feature `llm`)".to_owned(),
            hint: "install a build with the feature `llm`, or give the skill a `run`",
        });
    }
    if by_program || config.model(alias).is_some() {
        return None;
    }
    let reason = match alias {
        _ if config.models.is_empty() => "it has no `run`, and no model is configured".to_owned(),
        Some(alias) => format!(
            "it has no `run`, and neither its model `{}` nor `{DEFAULT_MODEL}` is configured",
            alias.escape_debug()
        ),
        None => {
            format!("it has no `run` and names no model, and no `{DEFAULT_MODEL}` is configured")
        }
    };
    Some(Lack {
        reason,
        hint: "add `models: {default: {provider: anthropic, model: …, key: env:…}}` or `agent: {cli: claude}` to workerctl.yaml, or give the skill a `run`",
    })
}

/// What a definition names of the configuration, with places.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Named {
    pub(crate) model: Option<(String, Place)>,
    pub(crate) toolsets: Vec<(String, Place)>,
}

impl Named {
    /// Says what of it is not there.
    pub(crate) fn report_missing(&self, config: &Config, report: &mut Report) {
        // Without a default the skill is unavailable, which is said where it is.
        let has_default = config.models.contains_key(DEFAULT_MODEL);
        let unknown = self
            .model
            .as_ref()
            .filter(|(alias, _)| has_default && !config.models.contains_key(alias));
        if let Some((alias, place)) = unknown {
            report.warning(
                "model-unknown",
                place.clone(),
                format!(
                    "`{}` is no configured model: `{DEFAULT_MODEL}` is used",
                    alias.escape_debug()
                ),
                &remedy(alias, config.models.keys(), "models"),
            );
        }
        let toolsets = self.toolsets.iter();
        for (name, place) in toolsets.filter(|(name, _)| !config.toolsets.contains_key(name)) {
            report.warning(
                "toolset-unknown",
                place.clone(),
                format!(
                    "`toolsets` of workerctl.yaml has no `{}`: the skill cannot run",
                    name.escape_debug()
                ),
                &remedy(name, config.toolsets.keys(), "toolsets"),
            );
        }
    }
}

fn remedy<'k>(name: &str, known: impl Iterator<Item = &'k String>, key: &str) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    suggest(name, &known).map_or_else(
        || match known.as_slice() {
            [] => format!("add it to `{key}` of workerctl.yaml, which has none, or remove it here"),
            known => format!(
                "add it to `{key}` of workerctl.yaml, or name one that is there: `{}`",
                known.join("`, `")
            ),
        },
        |meant| format!("did you mean `{meant}`?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_client_says_so() {
        let lack = lack_in(&Config::default(), None, true, false).unwrap();
        assert_eq!(
            lack.reason,
            "this build has no model client (feature `llm`)"
        );
        assert!(lack.hint.contains("`run`"), "{}", lack.hint);
    }
}
