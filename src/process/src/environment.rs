//! The environment of a command.

use std::collections::BTreeMap;
use std::path::Path;

use super::command::{ATTEMPT_VARIABLE, RUN_VARIABLE};
use super::owner::Owner;

/// Variables taken over from the parent environment when they are set there.
const TAKEN: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SHELL"];

/// What a command gets as `PATH` when the parent environment has none, as under systemd.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The whole environment of a command, put together in this one place. Of equal names the last one counts:
/// of `parent` only PATH, HOME, USER, LOGNAME, LANG, every LC_*, TZ and SHELL; `scratch` as TMPDIR; git is
/// kept from asking questions that nobody would answer; `more`; and the marks of `owner`, by which a process
/// that is left behind is found again. No mark is inherited from a run that this process is itself part of.
pub fn environment(
    parent: &BTreeMap<String, String>,
    scratch: &Path,
    more: impl IntoIterator<Item = (String, String)>,
    owner: &Owner,
) -> Vec<(String, String)> {
    let is_taken = |name: &str| TAKEN.contains(&name) || name.starts_with("LC_");
    let mut all: Vec<(String, String)> = parent
        .iter()
        .filter(|(name, _)| is_taken(name) && *name != "PATH")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    all.push(("PATH".to_owned(), absolute_path(parent)));
    all.push(("TMPDIR".to_owned(), scratch.to_string_lossy().into_owned()));
    all.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
    all.extend(more);
    all.push((RUN_VARIABLE.to_owned(), owner.run.clone()));
    all.push((ATTEMPT_VARIABLE.to_owned(), owner.attempt.to_string()));
    all
}

/// Returns `PATH` without relative and empty entries, which would name directories of the worktree that the command
/// runs in.
fn absolute_path(parent: &BTreeMap<String, String>) -> String {
    let path = parent.get("PATH").map_or("", String::as_str);
    let directories: Vec<&str> = path
        .split(':')
        .filter(|entry| entry.starts_with('/'))
        .collect();
    if directories.is_empty() {
        return PATH_DEFAULT.to_owned();
    }
    directories.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base_of(parent: &[(&str, &str)]) -> BTreeMap<String, String> {
        let parent = parent
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        let owner = Owner {
            run: "RUN".to_owned(),
            attempt: 2,
        };
        let more = [("A", "1"), ("A", "2"), (RUN_VARIABLE, "forged")];
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        environment(&parent, Path::new("/scratch"), more, &owner)
            .into_iter()
            .collect()
    }

    #[test]
    fn only_the_named_variables_pass_and_the_marks_cannot_be_forged() {
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
            ("A", "2"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("HOME", "/home/a"),
            ("LC_TIME", "de_DE"),
            ("PATH", "/bin"),
            ("TMPDIR", "/scratch"),
            ("WORKERCTL_ATTEMPT", "2"),
            ("WORKERCTL_RUN", "RUN"),
        ];
        let got: Vec<(&str, &str)> = base.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn there_is_always_a_path() {
        assert_eq!(base_of(&[])["PATH"], PATH_DEFAULT);
        assert_eq!(base_of(&[("PATH", "")])["PATH"], PATH_DEFAULT);
        assert_eq!(base_of(&[("PATH", "bin:.:")])["PATH"], PATH_DEFAULT);
        let path = base_of(&[("PATH", ":/a:node_modules/.bin::/b")]).remove("PATH");
        assert_eq!(path.as_deref(), Some("/a:/b"));
    }
}
