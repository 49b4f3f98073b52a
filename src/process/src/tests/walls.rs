//! Walls: what a command tries to do outside of them, with the kernel's own answer.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;

/// A directory that a command may change, one that it may read, and one that it may not.
struct Ground {
    directory: xtest::TempDir,
}

impl Ground {
    fn new() -> Ground {
        let directory = xtest::tempdir();
        let ground = Ground { directory };
        for name in ["inside", "outside", "hidden"] {
            fs::create_dir(ground.path().join(name)).unwrap();
            fs::write(ground.path().join(name).join("kept"), "as it was\n").unwrap();
        }
        fs::create_dir(ground.path().join("outside/empty")).unwrap();
        ground
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn wall(&self) -> Wall {
        let system = [
            "/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev",
        ];
        let mut read: Vec<PathBuf> = system.map(PathBuf::from).to_vec();
        read.push(self.path().join("outside"));
        Wall {
            write: vec![self.path().join("inside")],
            read,
            ..Wall::default()
        }
    }

    /// Runs a text within a wall; `O`, `I` and `H` stand for the directories.
    fn run(&self, wall: &Wall, text: &str) -> (i32, String) {
        let here = self.path().display();
        let text = format!("O={here}/outside I={here}/inside H={here}/hidden\n{text}");
        let command = Command {
            wall: Some(Arc::new(wall.raise().unwrap())),
            cwd: self.path().join("inside"),
            ..sh(&text)
        };
        let (finished, sink) = run_kept(&command);
        let ExitStatus::Exited(code) = finished.status else {
            panic!("{text}: {finished:?}");
        };
        (code, sink.stdout() + &sink.stderr())
    }

    /// Every file with its content, without what is inside.
    fn outside(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        for name in ["outside", "hidden"] {
            for entry in fs::read_dir(self.path().join(name)).unwrap() {
                let path = entry.unwrap().path();
                let content = fs::read(&path).unwrap_or_default();
                found.push((path, content));
            }
        }
        found.sort();
        found
    }
}

fn walls_or_skip() -> bool {
    if !walls_stand() {
        xtest::skip(&format!("the kernel has Landlock ABI {}", landlock_abi()));
    }
    walls_stand()
}

#[test]
fn what_a_command_does_outside_of_its_wall_is_refused() {
    if !walls_or_skip() {
        return;
    }
    let ground = Ground::new();
    let before = ground.outside();
    let attempts = [
        "echo x > $O/new",
        "echo x >> $O/kept",
        ": > $O/kept",
        "truncate -s 0 $O/kept",
        "rm $O/kept",
        "mv $O/kept $I/",
        "touch a && mv a $O/",
        "ln $O/kept $I/hard && echo x > $I/hard",
        "ln -s $O/kept $I/soft && echo x > $I/soft",
        "mkdir $O/made",
        "rmdir $O/empty",
        "mkfifo $O/fifo",
        "ln -s x $O/link",
        "cp $H/kept $I/",
        "cat $H/kept",
        "ls $H",
        "cat /proc/self/root$H/kept",
        "cat /proc/$PPID/root$H/kept",
        "cat /proc/$PPID/environ",
        "readlink /proc/$PPID/cwd",
        "readlink /proc/$PPID/fd/1",
        "cat /proc/$PPID/maps",
        "cat /proc/$PPID/mem",
        "cd $H && cat kept",
        "exec 3<$H/kept",
        "echo x > /proc/self/cwd/../outside/new",
        "echo x > $I/../outside/new",
        "cd / && echo x > .$O/new",
        "env -i /bin/sh -c \"echo x > $O/new\"",
        "setsid sh -c \"echo x > $O/new\"",
        "(sh -c \"echo x > $O/new\" & wait $!)",
    ];
    for attempt in attempts {
        let (code, said) = ground.run(&ground.wall(), attempt);
        assert_ne!(code, 0, "{attempt}: {said}");
        assert_eq!(ground.outside(), before, "{attempt}: {said}");
    }
    let fine = "echo y > $I/own && cat $I/own $O/kept && mkdir $I/d && mv $I/own $I/d/ && ln $I/d/own $I/h && rm -r $I/d && echo z > /dev/null && date > $I/date && test -s $I/date";
    let (code, said) = ground.run(&ground.wall(), fine);
    assert_eq!((code, said.as_str()), (0, "y\nas it was\n"));
}

#[test]
fn this_process_is_neither_signalled_nor_traced() {
    if !walls_or_skip() {
        return;
    }
    let ground = Ground::new();
    if landlock_abi() >= 6 {
        let (code, said) = ground.run(&ground.wall(), "kill -0 $PPID");
        assert_ne!(code, 0, "{said}");
    }
    // Its own are its own.
    let (code, said) = ground.run(
        &ground.wall(),
        "sleep 100 & kill $!; wait $!; test $? = 143",
    );
    assert_eq!(code, 0, "{said}");
}

#[test]
fn sockets_are_those_that_are_granted() {
    if !walls_or_skip() || landlock_abi() < 4 || !Path::new("/usr/bin/python3").exists() {
        xtest::skip("it takes Landlock with TCP, and python3");
        return;
    }
    let ground = Ground::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let python = |text: &str| format!("/usr/bin/python3 -c 'import socket as s; {text}'");
    let [unix, udp, raw_tcp, tcp, bind] = [
        "s.socket(s.AF_UNIX)".to_owned(),
        "s.socket(s.AF_INET6, s.SOCK_DGRAM)".to_owned(),
        "s.socket(s.AF_INET, s.SOCK_STREAM, 262)".to_owned(),
        format!("s.create_connection((\"127.0.0.1\", {port}))"),
        "s.socket().bind((\"127.0.0.1\", 0))".to_owned(),
    ]
    .map(|text| python(&text));
    let pair = python("s.socketpair()");
    // Both reach a network without the calls that are looked at.
    let fast = format!("s.socket().sendto(b\"x\", 0x20000000, (\"127.0.0.1\", {port}))");
    let [fast, listen] = [fast.as_str(), "s.socket().listen()"].map(python);
    let of = |network: Network, unix_sockets: bool| Wall {
        network,
        unix_sockets,
        ..ground.wall()
    };
    let cases = [
        (
            of(Network::Any, false),
            vec![&udp, &tcp, &bind, &pair],
            vec![&unix],
        ),
        (of(Network::Any, true), vec![&unix], vec![]),
        (
            of(Network::None, false),
            vec![&pair],
            vec![&unix, &udp, &tcp, &bind],
        ),
        (
            of(Network::Tcp(vec![port]), false),
            vec![&tcp],
            vec![&unix, &udp, &raw_tcp, &bind, &fast, &listen],
        ),
        (
            of(Network::Tcp(vec![1]), true),
            vec![&unix],
            vec![&tcp, &fast],
        ),
    ];
    for (wall, fine, refused) in cases {
        for text in fine {
            let (code, said) = ground.run(&wall, text);
            assert_eq!(code, 0, "{:?} {text}: {said}", wall.network);
        }
        for text in refused {
            let (code, said) = ground.run(&wall, text);
            assert_ne!(code, 0, "{:?} {text}: {said}", wall.network);
        }
    }
}

/// What needs no file: limits of another process, and the terminal of the person who has started the engine.
#[test]
fn neither_limits_nor_the_terminal_of_others_are_touched() {
    if !walls_or_skip() || !Path::new("/usr/bin/python3").exists() {
        xtest::skip("it takes python3");
        return;
    }
    let ground = Ground::new();
    let python =
        |text: &str| format!("/usr/bin/python3 -c 'import os, resource as r, fcntl; {text}'");
    let kind = "r.RLIMIT_FSIZE, (1, 1)";
    for (text, code) in [
        (
            "r.prlimit(os.getppid(), r.RLIMIT_CORE, r.prlimit(os.getppid(), r.RLIMIT_CORE))"
                .to_owned(),
            1,
        ),
        (format!("r.prlimit(os.getppid(), {kind})"), 1),
        (format!("r.prlimit(0, {kind})"), 0),
        (
            "r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); print(r.prlimit(os.getppid(), r.RLIMIT_CORE))"
                .to_owned(),
            0,
        ),
        ("fcntl.ioctl(1, 0x5412, b\"x\")".to_owned(), 1),
    ] {
        let (ended, said) = ground.run(&ground.wall(), &python(&text));
        assert_eq!(ended, code, "{text}: {said}");
        // A pipe is no terminal: what got there would be told so.
        assert_eq!(
            said.contains("PermissionError"),
            code == 1,
            "{text}: {said}"
        );
    }
}

#[test]
fn our_own_threads_stay_free() {
    if !walls_or_skip() {
        return;
    }
    let ground = Ground::new();
    ground.run(&ground.wall(), "true");
    fs::write(ground.path().join("outside/ours"), "x").unwrap();
    let free = Command {
        cwd: ground.path().to_owned(),
        ..sh("echo x > outside/free && cat hidden/kept")
    };
    assert_eq!(run_kept(&free).0.status, ExitStatus::Exited(0));
}

#[test]
fn no_file_is_made_that_runs_as_its_owner() {
    if !walls_or_skip() {
        return;
    }
    let ground = Ground::new();
    let text = r#"
cp /bin/sh "$I/sh" || exit 20
for mode in 4755 2755 u+s g+s; do chmod "$mode" "$I/sh" && exit 21; done
chmod 1755 "$I/sh" || exit 22
/usr/bin/python3 - "$I" <<'EOF' || exit $?
import os, sys, ctypes
place = sys.argv[1]
def refused(name, call):
    try:
        call()
    except OSError as error:
        if error.errno == 13:
            return
        sys.exit(f"{name}: {error}")
    sys.exit(f"{name} is allowed")
refused("open", lambda: os.open(place + "/a", os.O_CREAT | os.O_WRONLY, 0o6755))
refused("fchmod", lambda: os.fchmod(os.open(place + "/sh", os.O_RDONLY), 0o4755))
refused("mknod", lambda: os.mknod(place + "/b", 0o104755))
refused("unnamed", lambda: os.open(place, os.O_TMPFILE | os.O_WRONLY, 0o4755))
libc = ctypes.CDLL(None, use_errno=True)
for number in [435, 437]:
    if libc.syscall(number, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 38:
        sys.exit(f"call {number} is known")
EOF
"#;
    // One below a home directory would be hidden from the command.
    if !Path::new("/usr/bin/python3").exists() {
        return xtest::skip("/usr/bin/python3 is not installed");
    }
    let (code, said) = ground.run(&ground.wall(), text);
    assert_eq!(code, 0, "{said}");
}
