//! Why a result is refused, in words.

use workerctl_landing::ids::RepoPath;

use crate::model::ResultProblem;

fn problem(code: &str, message: String, hint: impl Into<String>) -> ResultProblem {
    ResultProblem {
        code: code.to_owned(),
        message,
        hint: hint.into(),
    }
}

pub(crate) fn overlay_changed(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "overlay_changed",
        format!(
            "the run changed `{path}`, which was copied from the checkout and is not part of the result"
        ),
        format!(
            "do not change `{path}` in the run, or, if git does not ignore it, commit it in the checkout first"
        ),
    )
}

pub(crate) fn too_large(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "file_too_large",
        format!("`{path}` is larger than 512 MiB, which is too much for a commit"),
        format!("let the run remove it, or list `/{path}` in `.gitignore`"),
    )
}

pub(crate) fn overlay_committed(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "overlay_changed",
        format!(
            "the run committed `{path}`, which was copied from the checkout and is not committed there"
        ),
        format!("let the run leave `{path}` out of its commits"),
    )
}

pub(crate) fn kept_is_tracked(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "kept_is_tracked",
        format!("`{path}` is below a path of `keep`, and the commits of the run track it"),
        "take the path out of `keep`, or let the run leave the file out of its commits",
    )
}

pub(crate) fn nested_repository(path: &[u8]) -> ResultProblem {
    let path = escape(path.strip_suffix(b"/").unwrap_or(path));
    problem(
        "nested_repository",
        format!("`{path}` is a repository inside the result"),
        format!("let the run remove `{path}/.git`, or list `/{path}/` in `.gitignore`"),
    )
}

pub(crate) fn submodule(path: &[u8], why: &str) -> ResultProblem {
    let path = escape(path);
    problem(
        "submodule",
        format!("the repository of the submodule `{path}` cannot be used: {why}"),
        format!(
            "let the run leave `{path}` empty, or check it out by `git submodule update --init`"
        ),
    )
}

pub(crate) fn submodule_dirty(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "submodule_dirty",
        format!(
            "the submodule `{path}` has changes that are not committed in it and would be lost"
        ),
        format!("let the run commit and push them in `{path}`, or take them back"),
    )
}

pub(crate) fn submodule_unpublished(path: &[u8], commit: &str) -> ResultProblem {
    let path = escape(path);
    problem(
        "submodule_unpublished",
        format!(
            "the submodule `{path}` is at {commit}, which is not on any branch of its remotes and would be lost with the worktree"
        ),
        format!("let the run push it, as by `git -C '{path}' push`"),
    )
}

pub(crate) fn path_name(path: &[u8]) -> ResultProblem {
    problem(
        "path_name",
        format!(
            "`{}` cannot be committed: a name is reserved by git, is not UTF-8, or the path is too long",
            escape(path)
        ),
        "let the run use another name, or list it in `.gitignore`",
    )
}

pub(crate) fn filtered(path: &[u8], attribute: &str) -> ResultProblem {
    let path = escape(path);
    problem(
        "filtered",
        format!("`{path}` has the attribute `{attribute}`, which is not applied to a result"),
        format!("let the run leave `{path}` as it is, or take the attribute off"),
    )
}

/// `line` counts from 1.
pub(crate) fn rule_file(path: &[u8], line: Option<usize>, why: &str) -> ResultProblem {
    let path = escape(path);
    let place = line.map_or_else(String::new, |line| format!(" line {line}"));
    problem(
        "rule_file",
        format!("`{path}`{place} {why}, so the rules of git in it are not evaluated"),
        format!("let the run leave `{path}` a small regular file with simple patterns"),
    )
}

pub(crate) fn unreadable(path: &[u8]) -> ResultProblem {
    let path = escape(path);
    problem(
        "unreadable",
        format!("`{path}` cannot be read, because the run took the permission away"),
        format!("let the run make `{path}` readable"),
    )
}

pub(crate) fn unmerged() -> ResultProblem {
    problem(
        "unmerged",
        "the index of the run has unmerged paths".into(),
        "let the run complete or abort its merge",
    )
}

pub(crate) fn operation(what: &str) -> ResultProblem {
    problem(
        "operation",
        format!("the run left {what} under way"),
        format!("let the run complete or abort {what}"),
    )
}

pub(crate) fn case_collision(path: &[u8], other: &[u8]) -> ResultProblem {
    problem(
        "case_collision",
        format!(
            "`{}` and `{}` are the same path for this repository, which ignores case",
            escape(path),
            escape(other)
        ),
        "let the run use another name",
    )
}

pub(crate) fn damaged(what: &str) -> ResultProblem {
    problem(
        "repository_damaged",
        format!("the repository of the run cannot be used: {what}"),
        "change `.git` in the run only with git commands",
    )
}

/// A path as text that is safe on a terminal.
pub(crate) fn escape(path: &[u8]) -> String {
    let (body, slash) = match path.strip_suffix(b"/") {
        Some(body) => (body, "/"),
        None => (path, ""),
    };
    match RepoPath::from_bytes(body) {
        Ok(path) => format!("{path}{slash}"),
        Err(_) => path.escape_ascii().to_string(),
    }
}
