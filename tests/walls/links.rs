//! Symbolic links on the way to grants and working directories: a run that makes one must not choose what a later run
//! may change, or where it works.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::walls::{bed, containers_or_skip, outcome, run, walls_or_skip};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

/// Ways to bring a link into a result, each at a path that `grants()` names or above it.
const WAYS: [&str; 5] = [
    "rm -r data; ln -s $HOME/.ssh data",
    "rm -r notes; ln -s $HOME/.ssh notes",
    "rm -r deep; ln -s $HOME deep",
    "rm -r Deep; ln -s $HOME DEEP",
    "rm -r work; ln -s inner work",
];

/// Skills with grants and a working directory.
const GRANTS: &str = "
  - {id: write, description: d, sandbox: {level: LEVEL, write: [data]}, run: 'echo x > data/new; cat $HOME/.ssh/id'}
  - {id: reads, description: d, sandbox: {level: LEVEL, reads: [/, notes]}, run: 'cat $HOME/.ssh/id'}
  - {id: below, description: d, sandbox: {level: LEVEL, write: [deep/.cache]}, run: 'cat $HOME/.cache/kept'}
  - {id: outer, description: d, sandbox: {level: LEVEL, write: [~/srv]}, run: 'rm -r $HOME/srv/sub; ln -s $HOME/.ssh $HOME/srv/sub'}
  - {id: inner, description: d, sandbox: {level: LEVEL, write: [~/srv/sub]}, run: 'cat $HOME/.ssh/id'}
  - {id: works, description: d, mutating: true, cwd: work, run: 'echo x > new.txt'}
  - {id: mine, description: d, sandbox: {level: LEVEL, write: [~/mine]}, run: 'echo x > $HOME/real/new'}
  - {id: other-name, description: d, sandbox: {level: LEVEL, reads: [/, ~/keys]}, run: 'cat $HOME/.ssh/id'}
";

fn place(level: &str, more: &str) -> Workspace {
    let workspace = bed(&format!("{}{more}", GRANTS.replace("LEVEL", level)));
    for path in ["data/k", "notes/k", "deep/.cache/k", "work/k"] {
        workspace.write(path, "1\n");
    }
    workspace.write(".gitignore", "/inner/\n");
    workspace.commit_all("directories");
    for path in ["srv/sub", "real"] {
        std::fs::create_dir_all(workspace.home.join(path)).unwrap();
    }
    symlink("real", workspace.home.join("mine")).unwrap();
    symlink(".ssh", workspace.home.join("keys")).unwrap();
    workspace.write("inner/k", "1\n");
    for words in ["init -q", "add k", "commit -q -m private"] {
        let inner = ["-C", "inner"].into_iter().chain(words.split(' '));
        workspace.git(&inner.collect::<Vec<_>>());
    }
    workspace
}

#[test]
fn no_result_puts_a_link_in_the_place_of_a_grant_or_a_working_directory() {
    if !walls_or_skip() {
        return;
    }
    let skill = |(nth, text): (usize, &&str)| {
        format!("  - {{id: s{nth}, description: d, mutating: true, run: \"{text}\"}}\n")
    };
    let free = "ln -s data other; ln -s k data/link; echo x > notes/new; rm -r work; mkdir work; echo x > work/k";
    let mut skills: String = WAYS.iter().enumerate().map(skill).collect();
    skills += &skill((WAYS.len(), &free));
    let workspace = place("required", &skills);
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (nth, way) in WAYS.iter().enumerate() {
        let failure = &run(&workspace, &format!("s{nth}"))["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "definitions_changed", "{way}: {failure}");
    }
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    let landed = run(&workspace, &format!("s{}", WAYS.len()));
    assert_eq!(outcome(&landed), "succeeded", "{landed:#}");
    daemon.stop();
}

/// Such a link may have come by a merge, or directly where two grants overlap.
#[test]
fn no_grant_and_no_working_directory_passes_a_link_that_a_run_can_make() {
    let levels: &[&str] = match (walls_or_skip(), containers_or_skip()) {
        (false, _) => return,
        (true, false) => &["required"],
        (true, true) => &["required", "private"],
    };
    for level in levels {
        let workspace = place(level, "");
        let failed = |skill: &str| run(&workspace, skill)["summary"]["outcome"]["failure"].clone();
        // Without a link the key is hidden.
        for skill in ["write", "reads", "inner"] {
            assert_eq!(failed(skill)["code"], "exit_code", "{level} {skill}");
        }
        for skill in ["mine", "works", "outer"] {
            assert_eq!(
                outcome(&run(&workspace, skill)),
                "succeeded",
                "{level} {skill}"
            );
        }
        workspace.git(&["rm", "-rq", "data", "notes", "deep", "work"]);
        for (target, link) in [(".ssh", "data"), (".ssh", "notes"), ("", "deep")] {
            let _ = std::fs::remove_dir_all(workspace.root.join(link));
            symlink(workspace.home.join(target), workspace.root.join(link)).unwrap();
        }
        symlink("inner", workspace.root.join("work")).unwrap();
        workspace.commit_all("links");
        for (skill, code, named) in [
            ("write", "sandbox_grant", "data"),
            ("reads", "sandbox_grant", "notes"),
            ("below", "sandbox_grant", "deep"),
            ("inner", "sandbox_grant", "srv/sub"),
            ("works", "cwd", "work"),
        ] {
            let refused = workspace.run(&["run", skill, "--json"]).expect_code(4);
            assert_eq!(refused.refusal(), code, "{level} {skill}");
            let said = &refused.stderr;
            let named = format!("{named}`, which a run can replace");
            assert!(
                said.contains("symbolic link `") && said.contains(&named),
                "{said}"
            );
        }
        let refused = workspace
            .run(&["run", "other-name", "--json"])
            .expect_code(4);
        assert!(
            refused.stderr.contains("only by its own path"),
            "{refused:?}"
        );
        let checked = workspace.run(&["check", "--json"]).expect_code(4).value();
        let problems = checked["problems"].as_array().unwrap();
        let found = |code: &str| -> Vec<&Value> {
            let problems = problems.iter().filter(|problem| problem["code"] == code);
            problems.map(|problem| &problem["skill"]).collect()
        };
        assert_eq!(found("sandbox-grant"), ["write", "reads", "below", "inner"]);
        assert_eq!(found("cwd-link"), ["works"]);
    }
}
