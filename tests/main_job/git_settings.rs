//! Settings of git that people rely on: what the environment names and gives, identities, and permissions of what is
//! made in `.git`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::{Done, Workspace, skip};

const SKILLS: &str = r#"
  - {id: change, description: d, mutating: true, run: "echo x >> tracked.txt; echo n > new.txt"}
  - {id: fails, description: d, mutating: true, run: "echo x >> tracked.txt", verification: [{command: "false"}]}
  - {id: commits, description: d, mutating: true, run: "echo x >> tracked.txt; git commit -qam own; echo y >> tracked.txt"}
  - {id: litters, description: d, mutating: true, run: "echo x > a.env; echo x > a.home; echo x > a.kept"}
"#;

/// A user who owns nothing of the machine's.
const STRANGER: u32 = 54_321;

fn run_with(workspace: &Workspace, variables: &[(&str, &str)], arguments: &[&str]) -> Done {
    let mut command = workspace.workerctl(arguments);
    command.envs(variables.iter().copied());
    workspace.start(&mut command).end()
}

fn identities(workspace: &Workspace, of: &str) -> String {
    let form = "--format=%an <%ae> %ad, %cn <%ce> %cd";
    let log = workspace.git(&["log", "-1", "--date=raw", form, of]);
    log.trim().to_owned()
}

#[test]
fn author_committer_and_dates_of_the_environment_are_those_of_commits_and_logs() {
    let workspace = Workspace::with_skills(SKILLS);
    let variables = [
        ("GIT_AUTHOR_NAME", "Writer"),
        ("GIT_AUTHOR_EMAIL", "writer@example.org"),
        ("GIT_AUTHOR_DATE", "2005-04-07T22:13:13+02:00"),
        ("GIT_COMMITTER_NAME", "Keeper"),
        ("GIT_COMMITTER_EMAIL", "keeper@example.org"),
        ("GIT_COMMITTER_DATE", "@1112911993 -0330"),
    ];
    run_with(&workspace, &variables, &["run", "commits"]).expect_code(0);
    let people = |text: &str| {
        let people = text.split(", ").map(|one| one.split_once('>').unwrap().0);
        people.collect::<Vec<_>>().join(", ")
    };
    let (ours, own) = (
        identities(&workspace, "HEAD"),
        identities(&workspace, "HEAD~1"),
    );
    let expected = "Writer <writer@example.org> 1112904793 +0200, \
                    Keeper <keeper@example.org> 1112911993 -0330";
    assert_eq!(ours, expected);
    // The skill's commit is made by git, when it is made.
    assert_eq!(people(&own), people(expected));
    let log = workspace.git(&["log", "-g", "-1", "--date=raw", "--format=%gn <%ge> %gd"]);
    assert_eq!(
        log.trim(),
        "Keeper <keeper@example.org> HEAD@{1112911993 -0330}"
    );
    // The configuration has the last word, as `--author` has it for git.
    workspace.write(
        "workerctl.yaml",
        "commit: {author: \"Bot <bot@example.org>\"}\n",
    );
    run_with(&workspace, &variables[..2], &["run", "change"]).expect_code(0);
    assert!(identities(&workspace, "HEAD").starts_with("Bot <bot@example.org>"));
}

#[test]
fn settings_that_the_environment_names_or_gives_are_followed_everywhere() {
    let workspace = Workspace::with_skills(SKILLS);
    let home = |name: &str, text: &str| {
        let path = workspace.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (by_env, by_home) = (home("by-env", "*.env\n"), home("by-home", "*.home\n"));
    // Neither file of the user is read where the environment names another one.
    let person = "[user]\n\tname = Home\n\temail = h@example.com\n";
    home(
        ".gitconfig",
        &format!("{person}[core]\n\texcludesFile = {by_home}\n"),
    );
    home(
        ".config/git/config",
        &format!("[core]\n\texcludesFile = {by_home}\n\teol = crlf\n"),
    );
    let named = "[user]\n\tname = Named\n\temail = n@example.com\n";
    let named = home(
        "named",
        &format!("{named}[core]\n\texcludesFile = {by_env}\n"),
    );
    let bare = home("bare", "");
    let parameters = format!("'user.name'='Given' 'core.excludesFile={by_env}'");
    let counted = [
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_0", "user.name"),
        ("GIT_CONFIG_VALUE_0", "Counted"),
        ("GIT_CONFIG_KEY_1", "user.email"),
        ("GIT_CONFIG_VALUE_1", "c@example.com"),
        ("GIT_CONFIG_KEY_2", "core.excludesFile"),
        ("GIT_CONFIG_VALUE_2", by_env.as_str()),
    ];
    let with_bare = [&[("GIT_CONFIG_GLOBAL", bare.as_str())], counted.as_slice()].concat();
    let given = [
        &with_bare[..],
        &[("GIT_CONFIG_PARAMETERS", parameters.as_str())],
    ]
    .concat();
    let in_a_hook = [
        &with_bare[..],
        &[("GIT_INDEX_FILE", "/nowhere"), ("GIT_DIR", "/nowhere")],
    ]
    .concat();
    let by_file = [("GIT_CONFIG_GLOBAL", named.as_str())];
    let table = [
        (&by_file[..], "Named <n@example.com>"),
        (&with_bare, "Counted <c@example.com>"),
        (&given, "Given <c@example.com>"),
        (&in_a_hook, "Counted <c@example.com>"),
    ];
    let begin = workspace.git(&["rev-parse", "HEAD"]);
    for (variables, author) in table {
        run_with(&workspace, variables, &["run", "litters"]).expect_code(0);
        let identity = identities(&workspace, "HEAD");
        assert!(identity.starts_with(author), "{identity}");
        let committed = workspace.git(&["show", "--format=", "--name-only", "HEAD"]);
        let committed: Vec<&str> = committed.split_whitespace().collect();
        assert_eq!(committed, ["a.home", "a.kept"], "{author}");
        workspace.git(&["reset", "-q", "--hard", begin.trim()]);
    }
}

#[test]
fn settings_of_git_that_cannot_be_followed_are_refused_by_name() {
    let workspace = Workspace::with_skills(SKILLS);
    let table: [(&[(&str, &str)], &str); 5] = [
        (&[("GIT_CONFIG_COUNT", "many")], "GIT_CONFIG_COUNT"),
        (&[("GIT_CONFIG_COUNT", "1")], "GIT_CONFIG_KEY_0"),
        (
            &[("GIT_CONFIG_PARAMETERS", "user.name=x")],
            "GIT_CONFIG_PARAMETERS",
        ),
        (&[("GIT_AUTHOR_DATE", "yesterday")], "GIT_AUTHOR_DATE"),
        (
            &[
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", "core.sharedRepository"),
                ("GIT_CONFIG_VALUE_0", "friends"),
            ],
            "core.sharedRepository",
        ),
    ];
    let before = workspace.tree();
    for (variables, name) in table {
        let done = run_with(&workspace, variables, &["run", "change"]);
        assert_ne!(done.code, 0, "{name}: {done:?}");
        let said = [done.stdout, done.stderr].concat();
        assert!(said.contains(&format!("`{name}`")), "{name}: {said}");
        assert_eq!(workspace.tree(), before);
    }
}

#[test]
fn a_directory_that_a_named_file_lists_as_safe_is_worked_in() {
    if !rustix::process::geteuid().is_root() {
        return skip("a repository of another user needs root");
    }
    let workspace = Workspace::with_skills(SKILLS);
    let safe = format!("[safe]\n\tdirectory = {}\n", workspace.root.display());
    let person = fs::read_to_string(workspace.home.join(".gitconfig")).unwrap();
    let named = workspace.home.join("named");
    fs::write(&named, format!("{person}{safe}")).unwrap();
    own(&workspace.root, STRANGER);
    let refused = workspace.run(&["run", "change"]);
    let said = [refused.stdout, refused.stderr].concat();
    assert!(
        refused.code != 0 && said.contains("belongs to another user"),
        "{said}"
    );
    let root = workspace.root.to_str().unwrap();
    let given = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", root),
    ];
    let refused = run_with(&workspace, &given, &["run", "change"]);
    let said = [refused.stdout, refused.stderr].concat();
    assert!(
        refused.code != 0 && said.contains("`safe.directory`"),
        "{said}"
    );
    let named = [("GIT_CONFIG_GLOBAL", named.to_str().unwrap())];
    run_with(&workspace, &named, &["run", "change"]).expect_code(0);
}

fn own(place: &Path, owner: u32) {
    let owner = format!("{owner}:{owner}");
    let changed = Command::new("chown")
        .args(["-hR", &owner])
        .arg(place)
        .status();
    assert!(changed.unwrap().success());
}

/// The same program as another user.
fn by_stranger(mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    command.uid(STRANGER).gid(STRANGER);
    command
}

/// Commits as root in a repository of another user, as `sudo git commit` does.
fn commit_as_root(workspace: &Workspace, arguments: &[&str]) {
    let mut command = workspace.program("git");
    let done = command
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_result_lands_beside_an_index_a_branch_and_logs_of_root() {
    if !rustix::process::geteuid().is_root() {
        return skip("files of root need root");
    }
    let workspace = Workspace::with_skills(SKILLS);
    let base = workspace.root.parent().unwrap().to_owned();
    own(&base, STRANGER);
    let protected = fs::read_to_string("/proc/sys/fs/protected_hardlinks");
    if protected.is_ok_and(|text| text.trim() != "1") {
        skip("this kernel lets files of others be linked");
    }
    workspace.write("by-root.txt", "x\n");
    commit_as_root(&workspace, &["add", "-A"]);
    commit_as_root(&workspace, &["commit", "-q", "-m", "by root"]);
    let at = |name: &str| workspace.root.join(".git").join(name);
    for name in [
        "index",
        "refs/heads/main",
        "logs/refs/heads/main",
        "logs/HEAD",
    ] {
        std::os::unix::fs::chown(at(name), Some(0), Some(0)).unwrap();
        assert_eq!(fs::metadata(at(name)).unwrap().uid(), 0, "{name}");
    }
    let run = |arguments: &[&str]| {
        workspace
            .start(&mut by_stranger(workspace.workerctl(arguments)))
            .end()
    };
    run(&["run", "change"]).expect_code(0);
    let status = by_stranger(workspace.program("git"))
        .args(["status", "--porcelain"])
        .output();
    assert_eq!(String::from_utf8_lossy(&status.unwrap().stdout), "");
    for log in ["logs/HEAD", "logs/refs/heads/main"] {
        let log = fs::read_to_string(at(log)).unwrap();
        assert!(
            log.contains("by root")
                && log
                    .trim()
                    .lines()
                    .next_back()
                    .unwrap()
                    .contains("workerctl: w/change"),
            "{log}"
        );
    }

    // Where the directory itself may not be written, the remedy is named, and it works.
    std::os::unix::fs::chown(at("refs/heads"), Some(0), Some(0)).unwrap();
    fs::set_permissions(at("refs/heads"), fs::Permissions::from_mode(0o755)).unwrap();
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    let failed = run(&["run", "change"]);
    let remedy = format!(
        "sudo chown -R {STRANGER} '{}'",
        at("").display().to_string().trim_end_matches('/')
    );
    let said = [failed.stdout, failed.stderr].concat();
    assert!(failed.code != 0 && said.contains(&remedy), "{said}");
    own(&workspace.root.join(".git"), STRANGER);
    run(&["run", "change"]).expect_code(0);
}

/// Shell that does something under an umask.
fn under(workspace: &Workspace, umask: &str, command: &Command) {
    let mut shell = workspace.program("sh");
    shell.args(["-c", "umask $0; exec \"$@\"", umask]);
    shell.arg(command.get_program()).args(command.get_args());
    let done = workspace.start(&mut shell).end();
    assert!(done.code < 6, "{command:?}: {done:?}");
}

fn modes(dir: &Path) -> BTreeMap<PathBuf, (u64, u32)> {
    let mut left = vec![dir.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        found.insert(path, (meta.ino(), meta.mode() & 0o7777));
    }
    found
}

/// What git itself makes in place of a file of `.git`.
fn alike(path: &str) -> &'static str {
    let end = Path::new(path).extension().and_then(|end| end.to_str());
    match end {
        Some("pack") => "pack",
        Some("idx") => "idx",
        _ if path.starts_with("logs/") => "logs/refs/heads/main",
        _ if path == "index" => "index",
        _ => "refs/x/y",
    }
}

#[test]
fn what_is_made_in_git_has_the_modes_that_git_gives_it() {
    for setting in ["group", "all", "0640", "umask", "true"] {
        for umask in ["022", "077"] {
            let workspace = Workspace::with_skills(SKILLS);
            let git = |dir: &Path, arguments: &[&str]| {
                let mut command = workspace.program("git");
                command.arg("-C").arg(dir).args(arguments);
                under(&workspace, umask, &command);
            };
            let reference = workspace.home.join("reference");
            fs::create_dir(&reference).unwrap();
            fs::remove_dir_all(workspace.root.join(".git")).unwrap();
            for dir in [&reference, &workspace.root] {
                git(dir, &["init", "-q"]);
                git(dir, &["config", "core.sharedRepository", setting]);
                git(dir, &["add", "-A"]);
                git(dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
            }
            git(&reference, &["update-ref", "refs/x/y", "HEAD"]);
            git(&reference, &["repack", "-adq"]);
            let by_git = modes(&reference.join(".git"));
            let expected = |kind: &str| {
                let is_it = |path: &PathBuf| match kind {
                    "pack" | "idx" => path.extension().is_some_and(|end| end == kind),
                    _ => path.ends_with(kind),
                };
                by_git.iter().find(|(path, _)| is_it(path)).unwrap().1.1
            };
            let git_dir = workspace.root.join(".git");
            let before = modes(&git_dir);
            for skill in ["change", "fails"] {
                under(&workspace, umask, &workspace.workerctl(&["run", skill]));
            }
            let mut compared = 0;
            for (path, found) in modes(&git_dir) {
                let name = path.file_name().unwrap().to_str().unwrap();
                // These are files of the work tree, aside.
                let is_of_work_tree = ["new-", "ours-", "out-"]
                    .iter()
                    .any(|start| name.starts_with(start));
                if before.get(&path).is_some_and(|known| known.0 == found.0) || is_of_work_tree {
                    continue;
                }
                let inner = path.strip_prefix(&git_dir).unwrap().to_str().unwrap();
                let kind = if path.is_dir() {
                    "refs/x"
                } else {
                    alike(inner)
                };
                let wanted = expected(kind);
                assert_eq!(
                    format!("{:o}", found.1),
                    format!("{wanted:o}"),
                    "{inner} by `{setting}` and {umask}"
                );
                compared += 1;
            }
            assert!(compared > 12, "{compared}");
        }
    }
}
