//! The run's objects enter the repository as one pack.

use std::fs;

use crate::killed::{steps, try_all};
use crate::rig::{Orders, RUN, Running, Said, Scene, Task, git_ok};

/// A scene whose run is not imported yet.
fn before() -> Scene {
    let scene = Scene::new();
    let packs = scene.repo().join(".git/objects/pack");
    fs::remove_dir_all(&packs).unwrap();
    fs::create_dir(&packs).unwrap();
    fs::remove_dir_all(scene.repo().join(".git/refs/workerctl")).unwrap();
    assert!(!scene.try_git(&["cat-file", "-e", scene.to.as_str()]).0);
    scene
}

/// Everything is there without the run's repository, in one pack that nothing holds.
fn check(scene: &Scene) -> Result<(), String> {
    fs::remove_dir_all(scene.root().join("run")).unwrap();
    scene.git(&["rev-list", "--objects", scene.to.as_str()]);
    let reference = format!("refs/workerctl/runs/{RUN}/commit");
    assert_eq!(scene.tip(&reference), Some(scene.to.to_string()));
    let mut left = Vec::new();
    crate::rig::walk(&scene.repo().join(".git/objects/pack"), &mut |path| {
        left.extend(
            path.extension()
                .map(|end| end.to_string_lossy().into_owned()),
        );
    });
    if left.iter().any(|end| end == "keep") {
        return Err(format!("left: {left:?}"));
    }
    if scene
        .repo()
        .join(".git/workerctl")
        .join(format!("import-{RUN}"))
        .exists()
    {
        return Err("the import folder is left".into());
    }
    scene.git(&["gc", "-q", "--prune=now"]);
    scene.lands();
    Ok(())
}

fn import(scene: &Scene, pause_at: usize, kill_at: usize) -> Running {
    let orders = Orders {
        task: Task::Import,
        pause_at,
        kill_at,
    };
    Running::start(scene, orders)
}

/// The steps of an import that nobody disturbs, one after the other.
fn count() -> usize {
    match import(&before(), 0, 0).wait() {
        Said::Done(text) => text.split(' ').next().unwrap().parse().unwrap(),
        said => unreachable!("{said:?}"),
    }
}

#[test]
fn an_import_that_is_killed_is_done_again() {
    let cases: Vec<usize> = (1..=count()).collect();
    try_all(&cases, |step| {
        let scene = before();
        assert_eq!(import(&scene, 0, step).wait(), Said::Killed);
        scene.git(&["gc", "-q", "--prune=now"]);
        let said = import(&scene, 0, 0).wait();
        if !matches!(&said, Said::Done(text) if text.contains("Ok(())")) {
            return Err(format!("killed at {step}: {said:?}"));
        }
        check(&scene).map_err(|what| format!("killed at {step}: {what}"))
    });
    assert!(steps(Task::Land) > 28);
}

#[test]
fn an_import_loses_nothing_to_a_gc_at_any_step() {
    let cases: Vec<usize> = (1..=count()).collect();
    try_all(&cases, |step| {
        let scene = before();
        let mut running = import(&scene, step, 0);
        assert!(matches!(running.wait(), Said::Paused(_)));
        scene.git(&["gc", "-q", "--prune=now"]);
        running.go_on();
        let said = running.wait();
        if !matches!(&said, Said::Done(text) if text.contains("Ok(())")) {
            return Err(format!("gc at {step}: {said:?}"));
        }
        check(&scene).map_err(|what| format!("gc at {step}: {what}"))
    });
}

#[test]
fn the_reference_is_set_where_git_packs_the_others_meanwhile() {
    let scene = before();
    let base = format!("refs/workerctl/runs/{RUN}/base");
    scene.git(&["update-ref", &base, "HEAD"]);
    let mut running = (1..=count())
        .map(|step| import(&scene, step, 0))
        .find_map(|mut running| match running.wait() {
            Said::Paused(step) if step == "set the reference" => Some(running),
            _ => {
                running.go_on();
                running.wait();
                None
            }
        })
        .unwrap();
    scene.git(&["update-ref", &base, "HEAD"]);
    scene.git(&["pack-refs", "--all", "--prune"]);
    let dir = scene.repo().join(format!(".git/refs/workerctl/runs/{RUN}"));
    assert!(!dir.exists(), "git removes a directory without references");
    running.go_on();
    let said = running.wait();
    assert!(
        matches!(&said, Said::Done(text) if text.contains("Ok(())")),
        "{said:?}"
    );
    check(&scene).unwrap();
}

#[test]
fn a_keep_file_of_somebody_elses_stays() {
    let scene = before();
    assert!(matches!(import(&scene, 0, 0).wait(), Said::Done(_)));
    let packs = scene.repo().join(".git/objects/pack");
    let mut pack = None;
    crate::rig::walk(&packs, &mut |path| {
        if path.extension().is_some_and(|end| end == "pack") {
            pack = Some(path.to_owned());
        }
    });
    let keep = pack.unwrap().with_extension("keep");
    fs::write(&keep, "mine\n").unwrap();
    assert!(matches!(import(&scene, 0, 0).wait(), Said::Done(_)));
    assert_eq!(fs::read_to_string(keep).unwrap(), "mine\n");
    git_ok(&scene.repo(), &["fsck", "--no-dangling"]);
}
