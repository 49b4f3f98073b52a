//! Workers in the directories that `workers.paths` names, and the registry that decides between two.

use std::os::unix::fs::symlink;

use super::super::{Options, reload};
use super::{Catalog, ERROR, NOTE, WARNING, Workspace, codes, expect, show};

const CONFIG: &str = "workerctl.yaml";
const REGISTRY: &str = "workers/registry.yaml";
const PATHS: &str =
    "workers: {paths: [\"core/workers\", \"packages/*/workers\", \"template/workers\"]}\n";

fn worker(id: &str) -> String {
    format!("worker: {{id: \"{id}\"}}\nskills: [{{id: s, description: d, run: echo}}]\n")
}

/// A workspace with these paths and workers, by directory and id.
fn workspace(config: &str, workers: &[(&str, &str)]) -> Workspace {
    let workspace = Workspace::new(&[(CONFIG, config)]);
    for (directory, id) in workers {
        let path = format!("{directory}/worker.yaml");
        workspace.write(&path, worker(id).as_bytes());
    }
    workspace
}

fn places(catalog: &Catalog) -> Vec<(&str, &str)> {
    let workers = catalog.workers.iter();
    workers
        .map(|worker| (worker.id.as_str(), &*worker.place.path))
        .collect()
}

/// Two packages that define `x`, and what the registry says.
fn twice(registry: &str) -> Workspace {
    let directories = [("packages/a/workers/x", "x"), ("packages/b/workers/x", "x")];
    let workspace = workspace("workers: {paths: [packages/*/workers]}\n", &directories);
    workspace.write(REGISTRY, registry.as_bytes());
    workspace
}

#[test]
fn workers_are_read_from_every_path_and_from_nowhere_else() {
    let workers = [
        ("core/workers/deep/a", "a"),
        ("packages/one/workers/b", "b"),
        ("packages/two/workers/c", "c"),
        ("packages/two/deep/workers/no", "no"),
        ("packages/.hidden/workers/no", "no"),
        ("packages/node_modules/workers/no", "no"),
        ("template/workers/cfo", "cfo-{company}"),
        ("workers/no", "no"),
    ];
    let workspace = workspace(PATHS, &workers);
    let catalog = workspace.load();
    assert_eq!(codes(&catalog), ["worker-template"]);
    let found = [
        ("a", "core/workers/deep/a/worker.yaml"),
        ("b", "packages/one/workers/b/worker.yaml"),
        ("c", "packages/two/workers/c/worker.yaml"),
        ("cfo-{company}", "template/workers/cfo/worker.yaml"),
    ];
    assert_eq!(places(&catalog), found);
    assert!(catalog.workers[3].template);
    assert!(!catalog.is_stale());
    workspace.write("packages/new/workers/d/worker.yaml", worker("d").as_bytes());
    assert!(catalog.is_stale());
    let second = reload(&catalog, Options::default());
    assert_eq!(second.workers[3].id, "cfo-{company}");
    assert_eq!(second.workers[4].id, "d");
    // Another list counts from the next look on.
    workspace.write(CONFIG, b"workers: {paths: [workers]}\n");
    let third = reload(&second, Options::default());
    assert_eq!(places(&third), [("no", "workers/no/worker.yaml")]);
    // A broken one leaves the paths as they were.
    workspace.write(CONFIG, b"workers: {paths: [../out]}\n");
    let fourth = reload(&third, Options::default());
    assert_eq!(places(&fourth), places(&third));
}

#[test]
fn a_directory_that_several_paths_lead_to_is_read_once() {
    let config = "workers: {paths: [packages, ./packages/*/workers/, packages/*/workers]}\n";
    let deep = "packages/a/workers/1/2/3/4/5/6";
    let workspace = workspace(config, &[("packages/a/workers/x", "x"), (deep, "deep")]);
    symlink("a", workspace.path().join("packages/again")).expect("a link");
    let catalog = workspace.load();
    let found = [
        ("deep", "packages/a/workers/1/2/3/4/5/6/worker.yaml"),
        ("x", "packages/a/workers/x/worker.yaml"),
    ];
    assert_eq!(places(&catalog), found, "{}", show(&catalog.problems));
}

#[test]
fn paths_that_lead_out_or_nowhere_are_told_with_their_line() {
    for (paths, code, column, hint) in [
        ("[../out]", "path-outside", 20, "without `..`"),
        ("[/srv/workers]", "path-outside", 20, "relative"),
        ("[~/workers]", "path-outside", 20, "relative"),
        ("[.git/workers]", "path-outside", 20, "`.git`"),
        ("[.]", "worker-path", 20, "a directory"),
        ("[state/w]", "worker-path", 20, "elsewhere"),
        (
            "[\"packages/**/workers\"]",
            "worker-path",
            20,
            "`*` for each directory",
        ),
        ("[\"packages/hq-*\"]", "worker-path", 20, "one whole name"),
        ("[\"p/{a,b}\"]", "worker-path", 20, "no other patterns"),
        ("[5, [a]]", "wrong-type", 23, "text"),
        ("workers", "wrong-type", 19, "a list"),
        ("[]", "out-of-range", 19, "without the key"),
    ] {
        let config = format!("\nworkers: {{paths:  {paths}}}\n");
        let catalog = workspace(&config, &[("workers/w", "w")]).load();
        expect(&catalog, CONFIG, &(code, ERROR, 2, column, hint));
        assert_eq!(
            places(&catalog),
            [("w", "workers/w/worker.yaml")],
            "{paths}"
        );
    }
    let catalog = workspace("workers: {path: [a]}\n", &[]).load();
    expect(
        &catalog,
        CONFIG,
        &("key-misspelled", ERROR, 1, 11, "`paths`"),
    );
    let catalog = workspace(
        "\nworkers: {paths: [workers, 'a/*/b']}\n",
        &[("workers/w", "w")],
    )
    .load();
    expect(
        &catalog,
        CONFIG,
        &("worker-path-empty", WARNING, 2, 1, "correct"),
    );
    assert!(!catalog.has_errors() && catalog.workers.len() == 1);
}

#[test]
fn links_may_not_lead_out_of_the_workspace() {
    let outside = xtest::tempdir();
    std::fs::create_dir(outside.path().join("workers")).expect("a directory");
    let workspace = workspace(PATHS, &[("core/workers/w", "w")]);
    let link = |path: &str| {
        let path = workspace.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        symlink(outside.path(), path).expect("a link");
    };
    link("packages/evil");
    link("template/workers");
    let catalog = workspace.load();
    let outside = (
        "link-outside",
        ERROR,
        1,
        1,
        "take the path out of `workers.paths`",
    );
    expect(&catalog, CONFIG, &outside);
    let told = show(&catalog.problems);
    assert!(told.contains("`packages/evil/workers` leads out"), "{told}");
    assert!(told.contains("`template/workers` leads out"), "{told}");
    assert_eq!(places(&catalog), [("w", "core/workers/w/worker.yaml")]);
}

#[test]
fn the_registry_decides_between_two_definitions_and_nothing_else_does() {
    for (path, counts, other) in [
        ("packages/b/workers/x/", "b", "a"),
        ("./packages/a/workers/x", "a", "b"),
        ("packages/b/workers/x/worker.yaml", "b", "a"),
    ] {
        let registry = format!(
            "version: \"5.0\"\nworkers:\n  - id: X\n    path: {path}\n    type: OpsWorker\n    status: active\n"
        );
        let catalog = twice(&registry).load();
        let place = |package: &str| format!("packages/{package}/workers/x/worker.yaml");
        assert_eq!(places(&catalog), [("x", place(counts).as_str())]);
        expect(
            &catalog,
            &place(other),
            &("worker-passed-over", NOTE, 1, 14, ""),
        );
        assert!(show(&catalog.problems).contains("`workers/registry.yaml:3:9`"));
        assert_eq!(codes(&catalog), ["worker-passed-over"]);
        assert!(catalog.rejected.is_empty());
    }
    for registry in [
        "workers: {x: packages/b/workers/x}\n",
        "workers: {x: {path: packages/b/workers/x}}\n",
    ] {
        assert_eq!(twice(registry).load().workers.len(), 1, "{registry}");
    }
    // Without a word about it both are rejected, whatever the order of the paths.
    let catalog = twice("workers: [{id: y, path: packages/a/workers/y}]\n").load();
    assert!(catalog.workers.is_empty());
    for (own, other) in [("a", "b"), ("b", "a")] {
        let own = format!("packages/{own}/workers/x/worker.yaml");
        expect(
            &catalog,
            &own,
            &("worker-duplicate", ERROR, 1, 14, REGISTRY),
        );
        let told = format!("is also defined at `packages/{other}/workers/x/worker.yaml:1:14`");
        assert!(show(&catalog.problems).contains(&told));
    }
    // Two beyond it in one workspace stay an error.
    let workspace = twice("workers: [{id: x, path: packages/b/workers/x}]\n");
    workspace.write("packages/b/workers/y/worker.yaml", worker("y").as_bytes());
    workspace.write("packages/a/workers/y/worker.yaml", worker("y").as_bytes());
    let catalog = workspace.load();
    assert_eq!(catalog.rejected.len(), 2);
    assert_eq!(catalog.workers.len(), 1);
}

#[test]
fn entries_of_a_registry_that_lead_nowhere_are_warnings() {
    let registry = "workers:\n- {id: x, path: packages/b/workers/x}\n- {id: gone, path: packages/c/workers/gone}\n- {id: far, path: workers/far}\n- {id: z, path: packages/a/workers/x}\n- {id: bare, dir: x}\n- {id: bare2}\n";
    let workspace = twice(registry);
    workspace.write("workers/far/worker.yaml", worker("far").as_bytes());
    let catalog = workspace.load();
    assert_eq!(catalog.workers.len(), 1);
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let code = "registry-path";
    expect(
        &catalog,
        REGISTRY,
        &(code, WARNING, 3, 8, "correct the path"),
    );
    expect(&catalog, REGISTRY, &(code, WARNING, 4, 8, "workers.paths"));
    expect(
        &catalog,
        REGISTRY,
        &(code, WARNING, 5, 8, "the id or the path"),
    );
    expect(&catalog, REGISTRY, &(code, NOTE, 6, 8, ""));
    assert_eq!(
        codes(&catalog).iter().filter(|one| **one == code).count(),
        4
    );
}

#[test]
fn a_registry_that_cannot_be_read_is_an_error_and_decides_nothing() {
    for (registry, code, line, column, hint) in [
        (
            "workers:\n  - id: {company}-analyst\n",
            "quote-placeholder",
            2,
            9,
            "double quotes",
        ),
        ("agents: []\n", "registry-shape", 1, 1, "rename the file"),
        (
            "workers: 5\n",
            "registry-shape",
            1,
            10,
            "path: workers/my-worker",
        ),
        (
            "workers: [x]\n",
            "registry-shape",
            1,
            11,
            "path: workers/my-worker",
        ),
        (
            "workers: [{path: a}]\n",
            "registry-shape",
            1,
            11,
            "add the `id`",
        ),
        (
            "workers: [{id: x, path: ../x}]\n",
            "path-outside",
            1,
            25,
            "without `..`",
        ),
        (
            "workers: [{id: x, path: [a]}]\n",
            "wrong-type",
            1,
            25,
            "text",
        ),
        (
            "workers:\n- {id: x, path: packages/a/workers/x}\n- {id: X, path: packages/b/workers/x}\n",
            "registry-ambiguous",
            3,
            8,
            "keep one",
        ),
    ] {
        let catalog = twice(registry).load();
        expect(&catalog, REGISTRY, &(code, ERROR, line, column, hint));
        assert!(catalog.workers.is_empty(), "{registry}");
        assert_eq!(catalog.rejected.len(), 2, "{registry}");
    }
    assert_eq!(twice("").load().rejected.len(), 2);
}

#[test]
fn the_first_path_may_have_the_registry() {
    let workers = [("core/workers/x", "x"), ("template/workers/x", "x")];
    let workspace = workspace(
        "workers: {paths: [core/workers, template/workers]}\n",
        &workers,
    );
    let entry = "workers: [{id: x, path: core/workers/x}]\n";
    workspace.write("template/workers/registry.yaml", entry.as_bytes());
    let first = workspace.load();
    assert!(first.workers.is_empty());
    workspace.write("core/workers/registry.yaml", entry.as_bytes());
    assert!(first.is_stale());
    let second = reload(&first, Options::default());
    assert_eq!(places(&second), [("x", "core/workers/x/worker.yaml")]);
    // `workers/registry.yaml` goes before it.
    workspace.write(REGISTRY, b"workers: [{id: x, path: template/workers/x}]\n");
    assert!(second.is_stale());
    let third = reload(&second, Options::default());
    assert_eq!(places(&third), [("x", "template/workers/x/worker.yaml")]);
    assert!(!third.is_stale());
}

#[test]
fn a_definition_that_counts_and_breaks_is_not_replaced_by_the_other() {
    let workspace = twice("workers: [{id: x, path: packages/b/workers/x}]\n");
    let first = workspace.load();
    workspace.write("packages/b/workers/x/worker.yaml", b"worker: [\n");
    let second = reload(&first, Options::default());
    assert_eq!(places(&second), places(&first));
    assert!(codes(&second).contains(&"kept-last-good"));
    // Neither where no good one is known.
    assert!(workspace.load().workers.is_empty());
    // A registry that breaks leaves the one that counted.
    workspace.write("packages/b/workers/x/worker.yaml", worker("x").as_bytes());
    let third = reload(&second, Options::default());
    workspace.write(REGISTRY, b"workers: [\n");
    let fourth = reload(&third, Options::default());
    assert_eq!(places(&fourth), places(&first));
}
