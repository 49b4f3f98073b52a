use super::*;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn places<'a>(workspace: &'a Path, environment: &'a BTreeMap<String, String>) -> SocketPlaces<'a> {
    SocketPlaces {
        workspace,
        state_dir: Path::new("/state"),
        explicit: None,
        environment,
    }
}

#[test]
fn the_first_place_that_exists_is_used() {
    let workspace = Path::new("/work/space");
    let both = environment(&[
        ("RUNTIME_DIRECTORY", "/run/workerctl:/run/x"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ]);
    let session = environment(&[
        ("RUNTIME_DIRECTORY", "relative"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ]);
    let none = environment(&[]);
    let socket = |environment| places(workspace, environment).of_engine().expect("a place");
    assert_eq!(socket(&both), Path::new("/run/workerctl/workerctl.sock"));
    let in_session = socket(&session);
    assert!(
        in_session.starts_with("/run/user/7/workerctl"),
        "{in_session:?}"
    );
    assert_eq!(socket(&none), Path::new("/state/run/workerctl.sock"));
}

#[test]
fn a_place_that_is_too_long_is_replaced_and_an_explicit_one_refused() {
    let long = format!("/{}", "d".repeat(200));
    let none = environment(&[]);
    let mut places = places(Path::new("/w"), &none);
    places.state_dir = Path::new(&long);
    let socket = places.of_engine().expect("a place");
    assert!(
        socket.starts_with("/tmp") && socket.as_os_str().len() < 60,
        "{socket:?}"
    );
    assert_eq!(places.of_client().expect("places"), [socket]);
    places.explicit = Some(Path::new(&long));
    let refused = places.of_engine().expect_err("too long");
    assert_eq!(
        (refused.kind, refused.code.as_str()),
        (Kind::Usage, "socket_path_too_long")
    );
}

#[test]
fn a_lock_file_is_read_as_data() {
    let workspace = xtest::tempdir();
    let none = environment(&[]);
    let lock = workspace.path().join(".workerctl").join("lock");
    fs::create_dir(lock.parent().expect("a parent")).expect("made");
    let found = || {
        let mut found = places(workspace.path(), &none).of_client().expect("places");
        let owner = places(workspace.path(), &none).of_owner();
        let known = |place: &PathBuf| place.starts_with("/state") || Some(place) == owner.as_ref();
        found.retain(|place| !known(place));
        found
    };
    assert!(found().is_empty());
    for hostile in [
        "",
        "{",
        "[]",
        "{\"socket\": 7}",
        "{\"socket\": \"relative\"}",
        "\0\0",
    ] {
        fs::write(&lock, hostile).expect("written");
        assert!(found().is_empty(), "{hostile:?}");
    }
    fs::write(&lock, vec![b' '; 1 << 20]).expect("written");
    assert!(found().is_empty());
    fs::write(
        &lock,
        r#"{"pid": 1, "boot_id": "x", "state_dir": "/s", "socket": "/run/a.sock"}"#,
    )
    .expect("written");
    assert_eq!(found(), [PathBuf::from("/run/a.sock")]);
}

#[test]
fn a_socket_is_private_from_its_first_moment_and_removed_at_its_end() {
    let directory = xtest::tempdir();
    let path = directory.path().join("deep/er/x.sock");
    let endpoint = Endpoint::bind(&path).expect("bound");
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("a parent")), 0o700);
    let second = Endpoint::bind(&path).expect_err("taken");
    assert_eq!(
        (second.kind, second.code.as_str()),
        (Kind::Conflict, "already_running")
    );
    drop(endpoint);
    assert!(!path.exists());
}

#[test]
fn only_a_stale_socket_gives_way() {
    let directory = xtest::tempdir();
    let path = directory.path().join("x.sock");
    drop(UnixListener::bind(&path).expect("bound"));
    let endpoint = Endpoint::bind(&path).expect("the stale file gave way");
    drop(endpoint);
    let foreign = UnixListener::bind(&path).expect("bound");
    let refused = Endpoint::bind(&path).expect_err("somebody listens");
    assert_eq!(refused.code, "already_running");
    // It made no claim, so nothing says which process it is; least of all that it is this one.
    let own = std::process::id().to_string();
    assert!(!refused.message.contains(&format!("process {own}")));
    drop(foreign);
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "precious").expect("written");
    let refused = Endpoint::bind(&path).expect_err("a file");
    assert_eq!(refused.code, "socket_path_taken");
    assert_eq!(fs::read_to_string(&path).expect("kept"), "precious");
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let directory = xtest::tempdir();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("set");
    let refused = Endpoint::bind(&directory.path().join("x.sock")).expect_err("unsafe");
    assert_eq!(refused.code, "socket_directory_unsafe");
}

#[test]
fn what_keeps_others_out_is_named_with_its_remedy() {
    use crate::model::Access;
    use crate::model::access::Member;
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    // As the service manager hands it over: its mode is not ours to change.
    let _listener = UnixListener::bind(&socket).expect("bound");
    let files = SocketFiles {
        socket: socket.clone(),
        is_ours: false,
        own_directory: None,
    };
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    let group = fs::metadata(&socket).expect("there").gid();
    let mut access = Access::default();
    assert_eq!(files.closed_to(&access), None, "nobody is to be let in");
    let member = |id| Member {
        name: "x".to_owned(),
        id,
    };
    access.read.users.push(member(1));
    for (mode_of_directory, mode_of_socket, remedy) in [
        (0o700, 0o666, Some("`RuntimeDirectoryMode=0755`")),
        (0o710, 0o666, Some("`RuntimeDirectoryMode=0755`")),
        (0o711, 0o600, Some("`SocketMode=0666`")),
        (0o711, 0o660, Some("`SocketMode=0666`")),
        (0o711, 0o666, None),
    ] {
        set(directory.path(), mode_of_directory);
        set(&socket, mode_of_socket);
        let closed = files.closed_to(&access);
        assert_eq!(closed.is_some(), remedy.is_some(), "{closed:?}");
        let hint = closed.map(|closed| closed.hints.concat());
        assert!(
            hint.unwrap_or_default()
                .contains(remedy.unwrap_or_default())
        );
        files.follow(&access);
        let mode = fs::metadata(&socket).expect("there").mode() & 0o777;
        assert_eq!(mode, mode_of_socket, "it is not ours");
    }
    // A group that has a role may be the one that the modes let in.
    access.read.groups.push(member(group));
    set(directory.path(), 0o710);
    set(&socket, 0o660);
    assert_eq!(files.closed_to(&access), None);
}
