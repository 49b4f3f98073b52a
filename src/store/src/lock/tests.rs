use super::*;

/// What another test starts at this moment holds a lock that is let go until its own program begins.
fn once_let_go<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it is still held");
}

fn is_free(found: impl Fn() -> Result<LockState, FileError>) {
    once_let_go(|| (found().unwrap() == LockState::Free).then_some(()));
}

#[test]
fn the_second_is_told_who_holds_it() {
    let dir = xtest::tempdir();
    let me = Holder::this_process(dir.path(), dir.path());
    assert!(!me.boot_id.is_empty());
    assert_eq!(inspect_state(dir.path()).unwrap(), LockState::Free);
    let lock = once_let_go(|| Lock::of_state(dir.path(), &me).ok());
    assert_eq!(
        inspect_state(dir.path()).unwrap(),
        LockState::HeldBy(Box::new(me.clone()))
    );
    let error = Lock::of_state(dir.path(), &me).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains(&format!("process {}", std::process::id())),
        "{shown}"
    );
    drop(lock);
    is_free(|| inspect_state(dir.path()));
    drop(once_let_go(|| Lock::of_state(dir.path(), &me).ok()));
}

#[test]
fn what_a_killed_holder_left_is_harmless() {
    let dir = xtest::tempdir();
    let path = dir.path().join(LOCK_NAME);
    for left in ["{\"pid\":1}", "not json", ""] {
        std::fs::write(&path, left).unwrap();
        is_free(|| inspect_state(dir.path()));
        let me = Holder::this_process(dir.path(), dir.path());
        let lock = once_let_go(|| Lock::of_state(dir.path(), &me).ok());
        assert_eq!(
            inspect_state(dir.path()).unwrap(),
            LockState::HeldBy(Box::new(me))
        );
        drop(lock);
    }
}

#[test]
fn only_a_process_that_can_be_seen_from_here_is_dead() {
    let path = Path::new("/x");
    let gone = Holder {
        pid: i32::MAX.cast_unsigned(),
        ..Holder::this_process(path, path)
    };
    assert!(gone.is_dead());
    for (pid_ns, dead) in [("", true), ("pid:[1]", false)] {
        let pid_ns = pid_ns.to_owned();
        let holder = Holder {
            pid_ns,
            ..gone.clone()
        };
        assert_eq!(holder.is_dead(), dead, "{holder:?}");
    }
}

#[test]
fn a_child_does_not_keep_it() {
    let dir = xtest::tempdir();
    let me = Holder::this_process(dir.path(), dir.path());
    let lock = once_let_go(|| Lock::of_state(dir.path(), &me).ok());
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    drop(lock);
    let again = once_let_go(|| Lock::of_state(dir.path(), &me).ok());
    assert!(child.try_wait().unwrap().is_none(), "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(again);
}

#[test]
fn the_folder_in_a_workspace_ignores_itself() {
    let dir = xtest::tempdir();
    let mut me = Holder::this_process(dir.path(), dir.path());
    let lock = Lock::of_workspace(dir.path(), &me).unwrap();
    me.socket = Some("/run/x.sock".to_owned());
    lock.tell(&me).unwrap();
    assert_eq!(
        inspect_workspace(dir.path()).unwrap(),
        LockState::HeldBy(Box::new(me))
    );
    let ignore = std::fs::read_to_string(dir.path().join(".workerctl/.gitignore")).unwrap();
    assert_eq!(ignore, "*\n");
}

#[test]
fn a_workspace_stays_held_though_its_folder_is_cleaned_away() {
    let dir = xtest::tempdir();
    let me = Holder::this_process(dir.path(), dir.path());
    let mut lock = Lock::of_workspace(dir.path(), &me).unwrap();
    assert!(!lock.is_lost());
    std::fs::remove_dir_all(dir.path().join(WORKSPACE_FOLDER)).unwrap();
    assert!(lock.is_lost());
    assert_eq!(inspect_workspace(dir.path()).unwrap(), LockState::Unnamed);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert_eq!(inspect_workspace(&link).unwrap(), LockState::Unnamed);
    let refused = Lock::of_workspace(dir.path(), &me).unwrap_err();
    assert!(matches!(refused, LockError::Unnamed(_)), "{refused}");
    assert!(!dir.path().join(WORKSPACE_FOLDER).exists());
    lock.put_back(dir.path(), &me).unwrap();
    assert!(!lock.is_lost());
    let found = inspect_workspace(dir.path()).unwrap();
    assert_eq!(found, LockState::HeldBy(Box::new(me.clone())));
    assert!(dir.path().join(".workerctl/.gitignore").exists());
    drop(lock);
    is_free(|| inspect_workspace(dir.path()));
    drop(once_let_go(|| Lock::of_workspace(dir.path(), &me).ok()));
}

#[test]
fn a_lock_is_not_put_back_into_another_directory_or_over_another_engine() {
    let above = xtest::tempdir();
    let place = above.path().join("workspace");
    std::fs::create_dir(&place).unwrap();
    let me = Holder::this_process(&place, &place);
    let mut lock = Lock::of_workspace(&place, &me).unwrap();
    std::fs::remove_dir_all(place.join(WORKSPACE_FOLDER)).unwrap();
    let file = taken(&made_place(&place).unwrap()).unwrap();
    let refused = lock.put_back(&place, &me).unwrap_err();
    assert!(matches!(refused, LockError::Held { .. }), "{refused}");
    drop(file);
    drop(once_let_go(|| taken(&place_in(&place)).ok()));
    std::fs::rename(&place, above.path().join("moved")).unwrap();
    for is_there in [false, true] {
        let refused = lock.put_back(&place, &me).unwrap_err();
        assert!(matches!(refused, LockError::Moved(_)), "{refused}");
        assert_eq!(place.exists(), is_there);
        let _ = std::fs::create_dir(&place);
    }
    assert!(!place.join(WORKSPACE_FOLDER).exists());
}

#[test]
fn a_link_in_its_place_is_not_followed() {
    let dir = xtest::tempdir();
    std::os::unix::fs::symlink("/dev/null", dir.path().join(LOCK_NAME)).unwrap();
    let me = Holder::this_process(dir.path(), dir.path());
    assert!(matches!(
        Lock::of_state(dir.path(), &me),
        Err(LockError::File(_))
    ));
}
