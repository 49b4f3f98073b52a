//! Values of secrets: those of sensitive inputs between acceptance and end, in a file of mode 0600 per run and never the
//! store; those that skills are given by name are read where they are kept.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::model_keys;
use crate::model::definition::Skill;
use crate::model::{Diagnostic, Kind, RunId, SecretSource, diagnostic::chain};
use crate::model::{SecretText, SecretUse, SecretUses};
use crate::store::secrets::{SecretFiles, Secrets, SecretsError};
use crate::thread::mask::{SECRET_BYTES_MAX, check_secret};

/// The bit by which everybody may read a file.
const OTHERS_READ: u32 = 0o004;

/// Keeps the values of a run, durable before it is accepted. A run without any has no file; one with
/// sensitive inputs always has one, so that a file that is gone is noticed.
pub(super) fn keep(
    state_dir: &Path,
    run: RunId,
    sensitive: &[String],
    secrets: &Secrets,
) -> Result<(), Diagnostic> {
    if secrets.is_empty() && sensitive.is_empty() {
        return Ok(());
    }
    let refused = |error: SecretsError| {
        let kind = match &error {
            SecretsError::TooLarge { .. } => Kind::Usage,
            SecretsError::File(_) | SecretsError::Damaged { .. } | SecretsError::Newer { .. } => {
                Kind::Internal
            }
        };
        Diagnostic::new(kind, "secrets", chain(&error))
    };
    SecretFiles::of_state(state_dir)
        .write(run, secrets)
        .map_err(refused)
}

/// The values of a run; empty where it has none.
pub(super) fn read(state_dir: &Path, run: RunId, sensitive: &[String]) -> Result<Secrets, String> {
    match SecretFiles::of_state(state_dir).read(run) {
        Ok(None) if !sensitive.is_empty() => Err(format!(
            "the values of its sensitive inputs are gone: {}",
            sensitive.join(", ")
        )),
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(error) => Err(chain(&error)),
    }
}

/// Forgets the values of a run that has ended.
pub(super) fn forget(state_dir: &Path, run: RunId) {
    if let Err(error) = SecretFiles::of_state(state_dir).remove(run) {
        tracing::warn!(%run, error = chain(&error), "the secrets of an ended run could not be removed");
    }
}

/// Forgets the values of every run but those that `is_active` names: a crash between the end of a run
/// and their removal has left them, or one between their arrival and the run's acceptance.
pub(super) fn sweep(state_dir: &Path, is_active: impl Fn(RunId) -> bool) {
    match SecretFiles::of_state(state_dir).sweep(|run| !is_active(run)) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "secrets of runs that are over were removed"),
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "secrets of runs that are over could not be removed"
            );
        }
    }
}

/// Has the command of a secret variable print it, given the variable's name.
pub(super) type Ask<'a> = &'a dyn Fn(&str, &SecretUse) -> Result<Option<SecretText>, Diagnostic>;

/// The value of a secret variable. It is where `uses` says; otherwise it is the engine's variable, else the credential
/// that is called as the variable is. A command is asked where `ask` is there: before its run executes that would be of no
/// use, and hold others up.
///
/// # Errors
/// It is nowhere, cannot be read, or could not be kept out of logs.
pub(super) fn value(
    name: &str,
    uses: &SecretUses,
    environment: &BTreeMap<String, String>,
    ask: Option<Ask<'_>>,
) -> Result<Option<SecretText>, Diagnostic> {
    let found = match uses.get(name).map(|one| (one, &one.source)) {
        Some((one, Some(SecretSource::Command { .. }))) => {
            ask.map_or(Ok(None), |ask| ask(name, one))?
        }
        Some((one, Some(SecretSource::File(path)))) => {
            Some(of_file(name, one, path, environment)?)
        }
        Some((_, Some(SecretSource::Credential(credential)))) => {
            Some(of_credential(name, credential, environment)?.ok_or_else(|| {
                let text = format!(
                    "the credential `{credential}` of the variable `{name}` is not passed to the engine"
                );
                let hint = format!(
                    "add `LoadCredential={credential}:/path/of/the/secret` to the service, and restart it"
                );
                Diagnostic::new(Kind::Blocked, "secret_missing", text).hint(hint)
            })?)
        }
        Some((_, None)) | None => Some(of_environment(name, environment)?),
    };
    if let Some(found) = &found {
        refuse_unmaskable(name, found)?;
    }
    Ok(found)
}

fn of_environment(
    name: &str,
    environment: &BTreeMap<String, String>,
) -> Result<SecretText, Diagnostic> {
    if let Some(value) = environment.get(name) {
        return Ok(SecretText::new(value));
    }
    of_credential(name, name, environment)?.ok_or_else(|| {
        let text = format!("the variable `{name}` is not set where the engine runs");
        Diagnostic::new(Kind::Blocked, "secret_missing", text)
            .hint("set it there, for a service with `LoadCredential=` or `EnvironmentFile=`")
    })
}

/// What a file holds, without the ends of lines behind it.
fn of_file(
    name: &str,
    one: &SecretUse,
    path: &str,
    environment: &BTreeMap<String, String>,
) -> Result<SecretText, Diagnostic> {
    let refused = |why: &str| {
        let text = format!(
            "{}: the secret `{name}`: the file `{path}` {why}",
            one.place
        );
        Diagnostic::new(Kind::Blocked, "secret_unreadable", text).hint(
            "it must be a file of at most 16 KiB of text, and readable for the account that the engine runs as",
        )
    };
    let full = model_keys::expanded(path, environment);
    let unreadable = |error: std::io::Error| refused(&format!("cannot be read: {error}"));
    let found = std::fs::metadata(&full).map_err(unreadable)?;
    if !found.is_file() {
        return Err(refused("is no regular file"));
    }
    if found.len() > SECRET_BYTES_MAX as u64 {
        return Err(refused(&format!("has {} bytes", found.len())));
    }
    if found.mode() & OTHERS_READ != 0 {
        tracing::warn!(
            variable = name,
            path,
            "everybody may read the file of a secret: `chmod o-r` it"
        );
    }
    let text = std::fs::read_to_string(&full).map_err(unreadable)?;
    match text.trim_end_matches('\n') {
        "" => Err(refused("is empty")),
        value => Ok(SecretText::new(value)),
    }
}

/// What a credential holds, without the ends of lines behind it; `None` where there is none of that name.
fn of_credential(
    name: &str,
    credential: &str,
    environment: &BTreeMap<String, String>,
) -> Result<Option<SecretText>, Diagnostic> {
    let Some(directory) = environment.get("CREDENTIALS_DIRECTORY") else {
        return Ok(None);
    };
    match std::fs::read_to_string(Path::new(directory).join(credential)) {
        Ok(text) => Ok(Some(SecretText::new(text.trim_end_matches('\n')))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let text = format!(
                "the credential `{credential}` of the variable `{name}` cannot be read: {error}"
            );
            Err(Diagnostic::new(Kind::Blocked, "secret_unreadable", text)
                .hint("it must be text, and readable for the account that the engine runs as"))
        }
    }
}

/// Files that hold secrets of a skill: no command of a skill reads them.
pub(super) fn files<'a>(
    skill: &'a Skill,
    environment: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = PathBuf> + 'a {
    let sources = skill.secrets.values().map(|one| &one.source);
    sources.filter_map(|source| match source {
        Some(SecretSource::File(path)) => Some(model_keys::expanded(path, environment)),
        Some(SecretSource::Credential(_) | SecretSource::Command { .. }) | None => None,
    })
}

/// Refuses secrets of the environment that could not be kept out of logs, or are not there at all. What commands print is
/// seen later.
pub(super) fn check(
    skill: &Skill,
    environment: &BTreeMap<String, String>,
) -> Result<(), Diagnostic> {
    let mut names = skill.env.iter();
    names.try_for_each(|name| {
        let found = value(name, &skill.secrets, environment, None);
        found
            .map(drop)
            .map_err(|refused| with_place(refused, skill))
    })
}

/// Adds where the skill declares its variables.
pub(super) fn with_place(refused: Diagnostic, skill: &Skill) -> Diagnostic {
    match skill.places.get("env") {
        Some(place) => refused.hint(format!("`env` is at {place}")),
        None => refused,
    }
}

/// Refuses a value that could not be kept out of logs.
pub(super) fn refuse_unmaskable(name: &str, value: &SecretText) -> Result<(), Diagnostic> {
    check_secret(name, value.expose().as_bytes()).map_err(|error| {
        Diagnostic::new(Kind::Usage, "secret", error.to_string())
            .hint("use a longer value: a short one would be masked wherever its letters appear")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_secrets_has_no_file_and_what_is_over_goes() {
        let dir = xtest::tempdir();
        let state = dir.path();
        let run: RunId = "01JC0000000000000000000001".parse().unwrap();
        keep(state, run, &[], &Secrets::default()).unwrap();
        assert!(!state.join("secrets").exists());
        let kept = Secrets {
            values: vec![SecretText::new("a long enough value")],
            ..Secrets::default()
        };
        let token = ["token".to_owned()];
        keep(state, run, &token, &kept).unwrap();
        assert_eq!(read(state, run, &token).unwrap(), kept);
        sweep(state, |one| one == run);
        assert_eq!(read(state, run, &token).unwrap(), kept);
        sweep(state, |_| false);
        assert_eq!(read(state, run, &[]).unwrap(), Secrets::default());
        // What a run needs and is gone is no empty value.
        assert!(read(state, run, &token).unwrap_err().contains("token"));
        keep(state, run, &token, &Secrets::default()).unwrap();
        assert_eq!(read(state, run, &token).unwrap(), Secrets::default());
        forget(state, run);
    }

    #[test]
    fn damage_is_told_without_what_it_holds() {
        let dir = xtest::tempdir();
        let run: RunId = "01JC0000000000000000000001".parse().unwrap();
        std::fs::create_dir(dir.path().join("secrets")).unwrap();
        let path = dir.path().join(format!("secrets/{run}.json"));
        std::fs::write(path, "s3cret").unwrap();
        let told = read(dir.path(), run, &[]).unwrap_err();
        assert!(
            told.contains("damaged") && !told.contains("s3cret"),
            "{told}"
        );
    }
}
