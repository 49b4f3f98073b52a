//! Values of sensitive inputs between acceptance and end: a file of mode 0600 per run, never the store.

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::definition::Skill;
use crate::model::{Diagnostic, Kind, RunId, diagnostic::chain};
use crate::store::secrets::{SecretFiles, Secrets, SecretsError};

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

/// Variables that skills are given by name. Where `credentials` has the name, its value is that credential of the
/// service manager (`$CREDENTIALS_DIRECTORY/<credential>`); otherwise it is the engine's variable, else the credential
/// that is called as the variable is. A value that is nowhere is refused.
pub(super) fn of_environment(
    names: &[String],
    credentials: &BTreeMap<String, String>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, Diagnostic> {
    let value = |name: &String| {
        match (credentials.get(name), environment.get(name)) {
        (Some(credential), _) => of_credential(name, credential, environment)?.ok_or_else(|| {
            let text = format!(
                "the credential `{credential}` of the variable `{name}` is not passed to the engine"
            );
            let hint = format!(
                "add `LoadCredential={credential}:/path/of/the/secret` to the service, and restart it"
            );
            Diagnostic::new(Kind::Blocked, "secret_missing", text).hint(hint)
        }),
        (None, Some(value)) => Ok(value.clone()),
        (None, None) => of_credential(name, name, environment)?.ok_or_else(|| {
            let text = format!("the variable `{name}` is not set where the engine runs");
            Diagnostic::new(Kind::Blocked, "secret_missing", text)
                .hint("set it there, for a service with `LoadCredential=` or `EnvironmentFile=`")
        }),
    }
    };
    names
        .iter()
        .map(|name| Ok((name.clone(), value(name)?)))
        .collect()
}

/// What a credential holds, without the ends of lines behind it; `None` where there is none of that name.
fn of_credential(
    name: &str,
    credential: &str,
    environment: &BTreeMap<String, String>,
) -> Result<Option<String>, Diagnostic> {
    let Some(directory) = environment.get("CREDENTIALS_DIRECTORY") else {
        return Ok(None);
    };
    match std::fs::read_to_string(Path::new(directory).join(credential)) {
        Ok(text) => Ok(Some(text.trim_end_matches('\n').to_owned())),
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

/// Refuses what could not be kept out of logs, or is not there at all.
pub(super) fn check(
    skill: &Skill,
    environment: &BTreeMap<String, String>,
    secrets: &Secrets,
) -> Result<(), Diagnostic> {
    for (name, value) in of_environment(&skill.env, &skill.credentials, environment)? {
        refuse_unmaskable(&name, &value)?;
    }
    secrets
        .values
        .iter()
        .try_for_each(|value| refuse_unmaskable("sensitive input", value))
}

fn refuse_unmaskable(name: &str, value: &str) -> Result<(), Diagnostic> {
    crate::thread::mask::check_secret(name, value.as_bytes()).map_err(|error| {
        Diagnostic::new(Kind::Usage, "secret", error.to_string())
            .hint("use a longer value: a short one would be masked wherever its letters appear")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_secrets_has_no_file_and_what_is_over_goes() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        let run: RunId = "01JC0000000000000000000001".parse().unwrap();
        keep(state, run, &[], &Secrets::default()).unwrap();
        assert!(!state.join("secrets").exists());
        let kept = Secrets {
            values: vec!["a long enough value".to_owned()],
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
        let dir = tempfile::tempdir().unwrap();
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
