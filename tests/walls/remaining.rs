//! Processes that the engine cannot end.

use rustix::process::{Pid, Signal, kill_process};

use crate::walls::levels::{Ground, User, users};
use crate::walls::outcome;

/// A process of root, which a command of an ordinary user starts without a sandbox, survives its command.
#[test]
fn processes_that_cannot_be_ended_meet_no_later_run() {
    if users().len() < 2 {
        return;
    }
    let skill = |id: &str, text: &str| {
        format!(
            "  - {{id: {id}, description: d, mutating: true, sandbox: off, run: '{text}; {{ pwd; echo $TMPDIR; }} > $HOME/{id}'}}\n"
        )
    };
    let skills = [
        skill(
            "first",
            "$HOME/of-root --reuid=0 sleep 1000 & echo $! > $HOME/pid",
        ),
        skill("second", "true"),
    ];
    let ground = Ground::new(User::Ordinary, &skills.concat(), &[]);
    let workspace = &ground.workspace;
    workspace.write("workerctl.yaml", "grace: 1ms\n");
    let of_root = workspace.home.join("of-root");
    std::fs::copy("/usr/bin/setpriv", &of_root).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(&of_root, mode).unwrap();
    let first = ground.run("first");
    let noted = |name: &str| std::fs::read_to_string(workspace.home.join(name)).unwrap();
    let pid = noted("pid").trim().parse().unwrap();
    let second = ground.run("second");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(outcome(&first), "failed", "{first}");
    assert!(first.to_string().contains("processes_remain"), "{first}");
    assert_eq!(outcome(&second), "succeeded", "{second}");
    let places = ["first", "second"].map(noted);
    let [first, second] = places.each_ref().map(|text| text.lines());
    assert!(
        first.zip(second).all(|(first, second)| first != second),
        "{places:?}"
    );
}
