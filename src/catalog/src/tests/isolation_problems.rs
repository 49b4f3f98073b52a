//! What is told of wrong values of keys that say where runs work and where their result lands.

use super::super::config;
use super::isolation::{of, problem, skill};
use super::skills::ids;
use super::{ERROR, NOTE, Severity, WARNING, Workspace, codes, show};
use crate::model::{Config, Problem};

/// Definition lines, and what is said of them.
struct Row<'t> {
    written: String,
    severity: Severity,
    column: u32,
    code: &'t str,
    message: &'t str,
    hint: &'t str,
}

/// Three lines make a row: what is written, `;` between its lines; the problem; the hint, `-` for none.
fn rows(table: &str) -> Vec<Row<'_>> {
    let lines: Vec<&str> = table.trim().lines().map(str::trim).collect();
    let mut rows = Vec::new();
    for chunk in lines.chunks(3) {
        let [written, problem, hint] = chunk else {
            panic!("not three lines: {chunk:?}");
        };
        let mut words = problem.splitn(4, ' ');
        let mut word = || words.next().expect("a word");
        let severity = match word() {
            "E" => ERROR,
            "W" => WARNING,
            _ => NOTE,
        };
        rows.push(Row {
            written: written.replace("; ", "\n    "),
            severity,
            column: word().parse().expect("a column"),
            code: word(),
            message: word(),
            hint: if *hint == "-" { "" } else { hint },
        });
    }
    rows
}

/// The only problem is that of the row.
#[track_caller]
fn check_row(problems: &[Problem], row: &Row<'_>) {
    let found = problem(problems, row.code);
    let hint = found.hint.as_deref().unwrap_or_default();
    assert_eq!(
        (
            found.severity,
            found.place.column,
            found.message.as_str(),
            hint
        ),
        (row.severity, row.column, row.message, row.hint),
        "{}",
        row.written
    );
    assert_eq!(problems.len(), 1, "{}\n{}", row.written, show(problems));
}

/// The last line of a mutating skill.
const OF_A_MUTATING_SKILL: &str = r#"
isolation: in_place
    E 16 isolation-removed `isolation: in_place` was removed: every mutating run works in a worktree of its own
    remove it; use `keep` for caches that the skill builds, `local` for files that only the checkout has, and outputs with a `destination` for results
isolation: In-Place
    E 16 isolation-removed `isolation: In-Place` was removed: every mutating run works in a worktree of its own
    remove it; use `keep` for caches that the skill builds, `local` for files that only the checkout has, and outputs with a `destination` for results
isolation: auto
    E 16 unknown-value `isolation: auto` is not known: every mutating run works in a worktree of its own
    remove it; what its commands may access is set by `sandbox`
isolation: none
    E 16 unknown-value `isolation: none` is not known: every mutating run works in a worktree of its own
    remove it; what its commands may access is set by `sandbox`
isolation: {type: worktree}
    E 16 wrong-type `isolation` must be text, not a map
    write `isolation: "TEXT"`
isolation: worktree
    N 16 isolation-not-needed `isolation: worktree` is not needed: every mutating run works in a worktree of its own
    remove `isolation`
isolation: Git-Worktree
    N 16 isolation-not-needed `isolation: Git-Worktree` is not needed: every mutating run works in a worktree of its own
    remove `isolation`
branch: a..b
    E 13 branch-name `branch: a..b` is no name for git: it holds `..`
    write the short name of a branch, such as `reports`
branch: {name: HEAD}
    E 20 branch-name `branch: HEAD` is no name for git: it is a name reserved by git
    write the short name of a branch, such as `reports`
branch: -f
    E 13 branch-name `branch: -f` is no name for git: it begins with `-`
    write the short name of a branch, such as `reports`
branch: 'r-{date}'
    W 13 branch-name `branch: r-{date}` is taken literally: no placeholder is filled in
    write the short name of a branch, such as `reports`
branch: true
    E 13 wrong-type `branch` must be a name or a map with `name`, not true or false
    write `branch: main`
branch: {create: true}
    E 13 wrong-type `branch` must be a name or a map with `name`, not a map
    write `branch: main`
branch: {x}
    E 13 quote-placeholder `branch` is read as a map because `{x}` is not quoted
    quote the placeholder: `"{x}"`
branch: {name: r, create: yes}
    E 31 wrong-type `create` must be `true` or `false`, not text
    write `create: true` or `create: false`
branch: {name: r, from: main}
    N 23 unknown-key `from` has no effect: no such key is known here
    -
push: https://example.org/x
    E 11 remote-name `push: https://example.org/x` is not the name of a remote: it holds one of `~^:?*[\`
    write `true` for `origin`, or one of the names that `git remote` lists
push: yes
    E 11 remote-name `push: yes` is not the name of a remote: it reads like an answer
    write `true` for `origin`, or one of the names that `git remote` lists
push: [origin]
    E 11 wrong-type `push` must be text, not a list
    write `push: "TEXT"`
parallel: yes
    E 15 wrong-type `parallel` must be `true` or `false`, not text
    write `parallel: true` or `parallel: false`
filtered: smudged
    E 15 unknown-value `filtered: smudged` is not known
    write `filtered: stored` where the skill can work on files as git stores them
writes: [data/]
    E 5 writes-removed `writes` was removed: all that a run changes in its worktree is its result
    remove `writes`
keep: ../x
    E 11 path-outside `keep: ../x` does not stay inside the workspace
    write a path relative to the workspace, without `..` and outside of `.git`
keep: [/x]
    E 12 path-outside `keep: /x` does not stay inside the workspace
    write a path relative to the workspace, without `..` and outside of `.git`
keep: .git
    E 11 path-outside `keep: .git` does not stay inside the workspace
    write a path relative to the workspace, without `..` and outside of `.git`
keep: ./
    E 11 path-reserved `keep: ./` covers `.git`, which is reserved
    name directories or files next to it
keep: '**/target'
    E 11 path-pattern `keep: **/target` is no path
    name each file or directory, such as `node_modules/`
keep: [' ']
    E 12 blank `keep` is blank
    write a text or remove the key
keep: {x: y}
    E 11 wrong-type `keep` must be text, not a map
    write `keep: "TEXT"`
local: .workerctl/store
    E 12 path-reserved `local: .workerctl/store` covers `.workerctl`, which is reserved
    name directories or files next to it
local: [{path: workspace}]
    E 20 path-reserved `local: workspace` covers `workspace/threads`, which is reserved
    name directories or files next to it
local: [{path: '{x}'}]
    E 20 path-pattern `local: {x}` is no path
    name each file or directory, such as `node_modules/`
local: [{link: true}]
    E 13 wrong-type `local` must be a path or a map with `path`, not a map
    write a path or a map with `path`
local: [{path: x, link: soft}]
    E 29 wrong-type `link` must be `true` or `false`, not text
    write `link: true` or `link: false`
local: [{path: x, copy: true}]
    N 23 unknown-key `copy` has no effect: no such key is known here
    -
"#;

#[test]
fn wrong_values_are_told_with_place_and_remedy() {
    for row in rows(OF_A_MUTATING_SKILL) {
        let catalog = of("", &format!("mutating: true\n    {}", row.written)).load();
        check_row(&catalog.problems, &row);
        assert_eq!(catalog.problems[0].place.line, 8, "{}", row.written);
        assert_eq!(
            ids(&catalog).is_empty(),
            row.severity == ERROR,
            "{}",
            row.written
        );
    }
}

#[test]
fn what_a_tree_is_given_stays_beside_the_engines_own() {
    for fine in [".github", "workspace/reports", "threads"] {
        skill("", &format!("mutating: true\n    keep: {fine}"));
    }
    let too_many = vec!["a"; 1_001].join(", ");
    let catalog = of("", &format!("mutating: true\n    keep: [{too_many}]")).load();
    let found = problem(&catalog.problems, "too-many");
    assert_eq!(found.message, "`keep` has more than 1000 entries");
    // Folders that the configuration names are the engine's in the same way.
    let workspace = of("", "mutating: true\n    keep: logs");
    workspace.write("workerctl.yaml", b"threads: {directory: logs/threads}\n");
    let catalog = workspace.load();
    let found = problem(&catalog.problems, "path-reserved");
    assert_eq!(
        found.message,
        "`keep: logs` covers `logs/threads`, which is reserved"
    );
}

/// Keys of a skill of which one has no effect.
const WITHOUT_EFFECT: &str = "
branch: r
    W 5 placement-unused `branch` has no effect on a skill that is not mutating
    write `mutating: true`, or remove `branch`
push: true
    W 5 placement-unused `push` has no effect on a skill that is not mutating
    write `mutating: true`, or remove `push`
isolation: worktree
    E 16 isolation-not-mutating `a` is not mutating: it works in the checkout, and `isolation: worktree` would not change that
    write `mutating: true`, or remove `isolation`
parallel: true
    W 5 placement-unused `parallel` has no effect on a skill that is not mutating
    write `mutating: true`, or remove `parallel`
keep: x
    W 5 placement-unused `keep` has no effect on runs that have no worktree
    write `mutating: true`, or remove `keep`
local: x
    W 5 placement-unused `local` has no effect on runs that have no worktree
    write `mutating: true`, or remove `local`
filtered: stored
    W 5 placement-unused `filtered` has no effect on runs that have no worktree
    write `mutating: true`, or remove `filtered`
";

#[test]
fn a_key_that_can_have_no_effect_is_told() {
    for row in rows(WITHOUT_EFFECT) {
        let catalog = of("", &row.written).load();
        check_row(&catalog.problems, &row);
        let Some((_, skill)) = catalog.skills().next() else {
            assert_eq!(row.severity, ERROR, "{}", row.written);
            continue;
        };
        assert!(
            skill.branch.is_none()
                && skill.push.is_none()
                && !skill.parallel
                && !skill.filtered_stored,
            "{skill:?}"
        );
        assert!(skill.keep.is_empty() && skill.local.is_empty(), "{skill:?}");
    }
}

/// A line of a worker.
const OF_A_WORKER: &str = "
isolation: in_place
    E 12 isolation-removed `isolation: in_place` was removed: every mutating run works in a worktree of its own
    remove it; use `keep` for caches that the skill builds, `local` for files that only the checkout has, and outputs with a `destination` for results
execution: {isolation: in-place}
    E 24 isolation-removed `isolation: in-place` was removed: every mutating run works in a worktree of its own
    remove it; use `keep` for caches that the skill builds, `local` for files that only the checkout has, and outputs with a `destination` for results
branch: refs/heads/
    E 9 branch-name `branch: refs/heads/` is no name for git: a part of it is empty
    write the short name of a branch, such as `reports`
keep: [a, ..]
    E 11 path-outside `keep: ..` does not stay inside the workspace
    write a path relative to the workspace, without `..` and outside of `.git`
local: .git
    E 8 path-outside `local: .git` does not stay inside the workspace
    write a path relative to the workspace, without `..` and outside of `.git`
push: -f
    E 7 remote-name `push: -f` is not the name of a remote: it begins with `-`
    write `true` for `origin`, or one of the names that `git remote` lists
";

#[test]
fn a_worker_is_held_to_the_same_values() {
    for row in rows(OF_A_WORKER) {
        let catalog = of(&row.written, "mutating: true").load();
        check_row(&catalog.problems, &row);
        assert!(catalog.workers.is_empty(), "{}", row.written);
    }
    // What only a skill can say is no key of a worker.
    let catalog = of("writes: data", "mutating: true").load();
    assert_eq!(
        codes(&catalog),
        ["unknown-key"],
        "{}",
        show(&catalog.problems)
    );
}

/// A line of workerctl.yaml.
const CONFIGURATIONS: &str = "
branch: '@'
    E 9 branch-name `branch: @` is no name for git: it is a name reserved by git
    write the short name of a branch, such as `reports`
push: a b
    E 7 remote-name `push: a b` is not the name of a remote: it holds a blank
    write `true` for `origin`, or one of the names that `git remote` lists
land_wait: soon
    E 12 duration-invalid `land_wait: soon`: expected a duration such as `500ms`, `30s`, `15m` or `1h30m`
    write a number with a unit: `30s`, `15m`, `1h30m`, `1d`
trees: 8
    E 8 wrong-type `trees` must be a map, not a number
    write `trees: {max: 8}`
trees: {max: 0}
    E 14 out-of-range `max` must be a whole number from 1 to 1024
    write a whole number from 1 to 1024
trees: {min_free: 1.5GiB}
    E 19 size-invalid `min_free: 1.5GiB`: expected a size such as `512MiB` or `1GiB`
    write a number with a unit: `512MiB`, `1GiB`
trees: {idle: 0s}
    E 15 duration-invalid `idle: 0s`: a duration must be greater than zero
    write a duration above zero, such as `1s` or `15m`; every limit is finite, at most `366d`
trees: {min-free: 1GiB}
    E 9 key-misspelled `min-free` is not a known key
    did you mean `min_free`?
retention: {runs: 1d}
    E 19 retention-contradiction `retention.runs`: runs must be kept for at least 2 days, so that a repeated request finds its run
    write `runs: 2d`, or longer
retention: {runs: 200d, approvals: 100d}
    E 36 retention-contradiction `retention.approvals`: approved and denied runs must be kept at least as long as other runs
    write at least as long as `runs`, whose default is 90d
retention: {runs: 366d}
    E 19 retention-contradiction `retention.approvals`: approved and denied runs must be kept at least as long as other runs
    write at least as long as `runs`, whose default is 90d
retention: {threads: 1MiB}
    E 22 retention-contradiction `retention.threads`: one run can write more: up to `output_bytes_max` (10485760 bytes) to each of its two streams
    raise `threads`, or lower `output_bytes_max`
retention: {runs_min: many}
    E 23 wrong-type `runs_min` must be a whole number from 0 to 10000, not text
    write a whole number from 0 to 10000, such as `runs_min: 0`
";

#[test]
fn wrong_settings_are_told_and_their_default_stands() {
    for row in rows(CONFIGURATIONS) {
        let workspace = Workspace::new(&[("workerctl.yaml", row.written.as_str())]);
        let (read, problems) = config(workspace.path()).expect("a workspace");
        check_row(&problems, &row);
        assert_eq!(
            read,
            Config {
                origins: read.origins.clone(),
                ..Config::default()
            },
            "{}",
            row.written
        );
        assert!(
            read.origins.values().all(|origin| origin == "default"),
            "{}",
            row.written
        );
    }
}
