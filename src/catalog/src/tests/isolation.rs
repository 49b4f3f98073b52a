//! Where runs work and where their result lands, as definitions say it.

use super::super::config;
use super::{NOTE, Workspace, show};
use crate::model::isolation::{BranchChoice, LocalEntry, TreeLimits};
use crate::model::{Problem, Skill};

/// A worker with the keys `worker` and one skill with the keys `skill`, which begin in column 5 of the last line.
pub(super) fn of(worker: &str, skill: &str) -> Workspace {
    Workspace::of_worker(&format!(
        "worker: {{id: w}}\n{worker}\nskills:\n  - id: a\n    description: d\n    run: date\n    {skill}\n"
    ))
}

#[track_caller]
pub(super) fn problem<'p>(problems: &'p [Problem], code: &str) -> &'p Problem {
    let mut found = problems.iter().filter(|problem| problem.code == code);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no `{code}`:\n{}", show(problems)));
    assert!(found.next().is_none(), "twice:\n{}", show(problems));
    first
}

#[track_caller]
pub(super) fn skill(worker: &str, keys: &str) -> Skill {
    let catalog = of(worker, keys).load();
    assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
    (*catalog.workers[0].skills[0]).clone()
}

fn branch(name: &str, create: bool) -> BranchChoice {
    BranchChoice {
        name: name.to_owned(),
        create,
    }
}

#[test]
fn a_skill_says_what_its_tree_is_given_and_where_its_result_lands() {
    let found = skill(
        "",
        "mutating: true\n    branch: {name: refs/heads/bot/reports, create: true}\n    keep: [node_modules/, ./.venv, a//b]\n    local: [.env, {path: settings/, link: true}, {path: x, link: false}]\n    parallel: true\n    push: true\n    filtered: stored",
    );
    assert_eq!(found.branch, Some(branch("bot/reports", true)));
    assert_eq!(found.keep, ["node_modules", ".venv", "a/b"]);
    let local = [(".env", false), ("settings", true), ("x", false)];
    let local = local.map(|(path, link)| LocalEntry {
        path: path.to_owned(),
        link,
    });
    assert_eq!(found.local, local);
    assert!(found.parallel && found.filtered_stored);
    assert_eq!(found.push.as_deref(), Some("origin"));
    // What is evaluated is not kept as data besides.
    assert!(found.kept.is_empty(), "{:?}", found.kept);

    let found = skill("", "branch: 2026\n    mutating: true");
    assert_eq!(found.branch, Some(branch("2026", false)));

    let found = skill("", "mutating: true");
    assert!(!found.parallel && !found.filtered_stored);
    assert_eq!((&found.branch, &found.push), (&None, &None));
    // What an older version stored of a skill says none of it.
    let mut stored = serde_json::to_value(&found).expect("json");
    let map = stored.as_object_mut().expect("a map");
    let new = "branch keep local parallel push filtered_stored";
    assert!(new.split(' ').all(|key| map.remove(key).is_some()));
    assert_eq!(
        serde_json::from_value::<Skill>(stored).expect("a skill"),
        found
    );
}

/// What a worker says is for the skills that say nothing, and to which it applies.
#[test]
fn what_a_worker_says_is_handed_down_where_it_applies() {
    let worker = "branch: reports\nkeep: target/\nlocal: {path: .env}\npush: mirror";
    let loaded = of(worker, "mutating: true").load();
    assert!(loaded.workers[0].kept.is_empty(), "{:?}", loaded.workers[0]);
    let inherits = skill(worker, "mutating: true");
    assert_eq!(inherits.branch, Some(branch("reports", false)));
    assert_eq!(inherits.keep, ["target"]);
    assert_eq!(inherits.local[0].path, ".env");
    assert_eq!(inherits.push.as_deref(), Some("mirror"));
    let own = skill(
        worker,
        "mutating: true\n    branch: main\n    keep: []\n    local: a\n    push: false",
    );
    assert_eq!(own.branch, Some(branch("main", false)));
    assert!(own.keep.is_empty() && own.local[0].path == "a");
    assert_eq!(own.push, None);
    // What a worker says is for those of its skills to which it applies: one that is not mutating has no tree.
    let reads = skill(worker, "mutating: false");
    assert_eq!(
        (reads.branch, reads.keep.len(), reads.push),
        (None, 0, None)
    );
    // Where neither says it, the configuration does.
    let branch_and_push = |worker: &str, keys: &str| {
        let workspace = of(worker, keys);
        workspace.write("workerctl.yaml", b"branch: nightly\npush: true\n");
        let catalog = workspace.load();
        assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
        let skill = &catalog.workers[0].skills[0];
        let name = skill.branch.as_ref().map(|branch| branch.name.clone());
        (
            name.unwrap_or_default(),
            skill.push.clone().unwrap_or_default(),
        )
    };
    let said = |worker: &str, keys: &str, name: &str, push: &str| {
        let expected = (name.to_owned(), push.to_owned());
        assert_eq!(branch_and_push(worker, keys), expected, "{worker} {keys}");
    };
    said("", "mutating: true", "nightly", "origin");
    said(
        "branch: reports",
        "mutating: true\n    push: false",
        "reports",
        "",
    );
    said("push: false", "mutating: true\n    branch: own", "own", "");
    said(
        "push: false",
        "mutating: true\n    push: mirror",
        "nightly",
        "mirror",
    );
    said("", "mutating: false", "", "");
}

/// Agent programs know `isolation: worktree` of what they start. Skills that belong to no worker start nothing here.
#[test]
fn what_agent_programs_say_of_it_is_taken_or_told() {
    let front = "---\nname: a\ndescription: d\nmutating: true\nisolation: worktree\n---\n\nDo.\n";
    let own = Workspace::of_skill("a.md", front).load();
    assert!(own.skills().next().is_some(), "{}", show(&own.problems));
    problem(&own.problems, "isolation-not-needed");
    let path = ".claude/skills/a/SKILL.md";
    let catalog = Workspace::new(&[(path, front)]).load();
    let found = problem(&catalog.problems, "unknown-key");
    assert_eq!(
        found.message,
        "`isolation` has no effect: no such key is known here"
    );
    assert_eq!((found.place.line, found.severity), (5, NOTE));
}

#[test]
fn the_configuration_names_branch_remote_and_bounds() {
    let read = |text: &str| {
        let workspace = Workspace::new(&[("workerctl.yaml", text)]);
        config(workspace.path()).expect("a workspace")
    };
    let (defaults, _) = read("");
    assert_eq!((&defaults.branch, &defaults.push), (&None, &None));
    assert_eq!(defaults.land_wait_ms, 600_000);
    let limits = |max, min_free_bytes, idle_ms| TreeLimits {
        max,
        min_free_bytes,
        idle_ms,
    };
    assert_eq!(defaults.trees, limits(8, 1_073_741_824, 1_209_600_000));
    let (own, problems) = read(
        "branch: {name: reports, create: true}\npush: true\nland_wait: 5s\ntrees: {max: 2, min_free: 512MiB, idle: 1d}\n",
    );
    assert!(problems.is_empty(), "{}", show(&problems));
    assert_eq!(own.branch, Some(branch("reports", true)));
    assert_eq!(own.push.as_deref(), Some("origin"));
    assert_eq!(own.land_wait_ms, 5_000);
    assert_eq!(own.trees, limits(2, 536_870_912, 86_400_000));
    assert!(own.kept.is_empty(), "{:?}", own.kept);
    assert_eq!(own.origins["branch"], "workerctl.yaml:1");
    assert_eq!(own.origins["trees.idle"], "workerctl.yaml:4");
    let (free, _) = read("trees: {min_free: 0}\n");
    assert_eq!(free.trees.min_free_bytes, 0);
    // What an older version stored of a configuration is read.
    let mut stored = serde_json::to_value(&defaults).expect("json");
    for key in ["branch", "push", "land_wait_ms", "trees"] {
        assert!(stored.as_object_mut().expect("a map").remove(key).is_some());
    }
    let restored: crate::model::Config = serde_json::from_value(stored).expect("a configuration");
    assert_eq!(restored, defaults);
}
