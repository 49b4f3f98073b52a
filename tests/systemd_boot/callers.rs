//! Who is heard while a run is active: the service's own user through other programs, and no command of the run.

use std::path::Path;

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::installed::{ACTIVATED, Installed, STATE, USER, WORKSPACE};
use crate::workspace::{Workspace, skip};

/// Commands of a person, `RUN` being the run that is active.
const COMMANDS: [&str; 14] = [
    "status",
    "runs",
    "show RUN",
    "logs RUN",
    "why w/read",
    "workers",
    "skills",
    "schedule list",
    "stats",
    "metrics",
    "doctor",
    "render w/read",
    "run w/read",
    "reload",
];

/// Lets root become another user without a password.
const PAM: &str = "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\nsession optional pam_permit.so\n";

/// Asks the engine, after leaving group, session, parent and environment, with each ancestor hidden, and without the mark.
pub(crate) fn skills() -> String {
    let ask = format!("workerctl -C {WORKSPACE} --socket {ACTIVATED} status");
    let reported = |how: &str| {
        format!(
            "{how} > {STATE}/said.new 2>&1; touch {STATE}/asked; mv {STATE}/said.new {STATE}/said"
        )
    };
    let skill = |id: &str, text: String| {
        format!(
            "  - id: {id}\n    description: d\n    sandbox: off\n    run: |\n      cat > {STATE}/{id}.sh <<'END'\n      {ask}; echo \"code $?\"\n      END\n      {text}\n      until rm {STATE}/asked 2>/dev/null; do sleep 0.1; done\n"
        )
    };
    let lost = reported(&format!("sh {STATE}/lost.sh"));
    let lost = format!("(setsid env -i PATH=\"$PATH\" STATE=x sh -c 'sleep 0.3; {lost}' &)");
    // 4 is `PR_SET_DUMPABLE`; a process that is not dumpable is hidden, also from its own user.
    let hidden = |id: &str, more: &str| {
        let ask = reported(&format!("sh {STATE}/{id}.sh"));
        format!(
            "python3 -c 'import ctypes, os, resource; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); {more}os.system(\"{ask}\")'"
        )
    };
    let unmarked = "resource.setrlimit(10, (7, resource.getrlimit(10)[1])); ";
    skill("lost", lost)
        + &skill("hidden", hidden("hidden", ""))
        + &skill("unmarked", hidden("unmarked", unmarked))
}

/// The service's user asks everything through `sudo`, `su` and `runuser`, beside a run.
pub(crate) fn are_heard(guest: &Guest<'_>, workspace: &Workspace) {
    let mut installed = Installed::new(guest, workspace);
    installed.install(&["--socket-unit"]);
    installed.systemctl(&["enable", "--now", "workerctl.socket"]);
    for service in ["sudo", "su", "runuser", "other"] {
        guest.write(&format!("/etc/pam.d/{service}"), PAM);
    }
    guest.write("/etc/sudoers", "root ALL=(ALL:ALL) NOPASSWD: ALL\n");
    let run = installed.submit("gated");
    installed.await_file("reached");
    for command in COMMANDS {
        let command = command.replace("RUN", &run);
        let ask = format!(
            "WORKERCTL_STATE_DIR={STATE} exec workerctl -C {WORKSPACE} --socket {ACTIVATED} {command}"
        );
        let through = [
            &["sudo", "-u", USER, "sh", "-c", &ask][..],
            &["su", "-s", "/bin/sh", USER, "-c", &ask],
            &["runuser", "-u", USER, "--", "sh", "-c", &ask],
        ];
        for arguments in through {
            if !Path::new("/usr/bin").join(arguments[0]).exists()
                && !Path::new("/usr/sbin").join(arguments[0]).exists()
            {
                skip(&format!("`{}` is not installed", arguments[0]));
                continue;
            }
            let done = guest.run(arguments);
            let said = format!("{arguments:?}: {done:?}");
            assert!(done.code == 0 || command == "doctor", "{said}");
            for refused in ["within_run", "origin_unknown", "cannot be decided"] {
                assert!(!said.contains(refused), "{said}");
            }
        }
    }
    no_command_of_a_run_is(&mut installed);
    let cancel = format!(
        "WORKERCTL_STATE_DIR={STATE} exec workerctl -C {WORKSPACE} --socket {ACTIVATED} cancel {run}"
    );
    let done = guest.run(&["su", "-s", "/bin/sh", USER, "-c", &cancel]);
    assert_eq!(done.code, 0, "{done:?}");
}

fn no_command_of_a_run_is(installed: &mut Installed<'_>) {
    let hides = Path::new("/usr/bin/python3").exists();
    if !hides {
        skip("there is no `python3`, with which a process hides itself");
    }
    let skills = [
        ("lost", "descends from a command of run"),
        ("hidden", "descends from a command of run"),
        ("unmarked", "`/proc` hides process"),
    ];
    for (skill, why) in skills.iter().take(if hides { 3 } else { 1 }) {
        installed.submit(skill);
        let said = installed.await_file("said");
        assert!(
            said.contains("code 6") && said.contains(why),
            "{skill}: {said}"
        );
    }
}
