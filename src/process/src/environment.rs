//! The environment that every command gets before anything is added to it.

use std::collections::BTreeMap;
use std::path::Path;

/// Variables taken over from the parent environment when they are set there.
const TAKEN: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SHELL"];

/// What a command gets as `PATH` when the parent environment has none, as under systemd.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The base environment: of `parent` only PATH, HOME, USER, LOGNAME, LANG, every LC_*, TZ and
/// SHELL; `scratch` as TMPDIR; and git is kept from asking questions that nobody would answer.
/// In particular no variable of ours is inherited from a run that this process is itself part of.
pub fn base_environment(
    parent: &BTreeMap<String, String>,
    scratch: &Path,
) -> Vec<(String, String)> {
    let is_taken = |name: &str| TAKEN.contains(&name) || name.starts_with("LC_");
    let mut base: Vec<(String, String)> = parent
        .iter()
        .filter(|(name, value)| is_taken(name) && !(*name == "PATH" && value.is_empty()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !base.iter().any(|(name, _)| name == "PATH") {
        base.push(("PATH".to_owned(), PATH_DEFAULT.to_owned()));
    }
    base.push(("TMPDIR".to_owned(), scratch.to_string_lossy().into_owned()));
    base.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base_of(parent: &[(&str, &str)]) -> BTreeMap<String, String> {
        let parent = parent
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        base_environment(&parent, Path::new("/scratch"))
            .into_iter()
            .collect()
    }

    #[test]
    fn only_the_named_variables_pass() {
        let base = base_of(&[
            ("PATH", "/bin"),
            ("HOME", "/home/a"),
            ("LC_TIME", "de_DE"),
            ("LCX", "no"),
            ("TMPDIR", "/other"),
            ("WORKERCTL_RUN", "outer"),
            ("LD_PRELOAD", "evil.so"),
            ("GIT_DIR", "/elsewhere"),
            ("GIT_TERMINAL_PROMPT", "1"),
        ]);
        let want = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("HOME", "/home/a"),
            ("LC_TIME", "de_DE"),
            ("PATH", "/bin"),
            ("TMPDIR", "/scratch"),
        ];
        let got: Vec<(&str, &str)> = base.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn there_is_always_a_path() {
        assert_eq!(base_of(&[])["PATH"], PATH_DEFAULT);
        assert_eq!(base_of(&[("PATH", "")])["PATH"], PATH_DEFAULT);
    }
}
