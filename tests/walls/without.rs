//! As on a kernel that has no walls.

use crate::walls::{bed, outcome, run, walls_or_skip};
use crate::workspace::daemon::Daemon;

/// Does something as on a kernel without Landlock: of this thread, and of what it starts.
fn without_landlock<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let calls = [444, 445, 446].map(|call| (call, Vec::new()));
    let answer = seccompiler::SeccompAction::Errno(38); // ENOSYS
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let allow = seccompiler::SeccompAction::Allow;
    let filter = seccompiler::SeccompFilter::new(calls.into(), allow, answer, arch).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            what()
        });
        match filtered.join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[test]
fn without_kernel_support_a_changed_tracked_file_fails_the_run_and_what_insists_is_refused() {
    let workspace = bed(r"
  - {id: change, description: d, run: 'echo x >> tracked.txt'}
  - {id: again, description: d, run: 'echo y >> tracked.txt'}
  - {id: back, description: d, run: 'git checkout -q tracked.txt'}
  - {id: beside, description: d, run: 'echo x > untracked'}
  - {id: report, description: d, interface: {outputs: [{name: r, destination: tracked.txt}]}, run: 'echo z > {r}'}
  - {id: free, description: d, sandbox: off, run: 'echo x >> tracked.txt'}
  - {id: insists, description: d, sandbox: required, run: 'true'}
  - {id: contained, description: d, sandbox: private, run: 'true'}
  - {id: offline, description: d, sandbox: {network: none}, run: 'true'}
  - {id: ports, description: d, sandbox: {network: {tcp: [443]}}, run: 'true'}
  - {id: narrow, description: d, sandbox: {reads: [/usr]}, run: 'true'}
  - {id: wide, description: d, sandbox: {reads: [/, ~/.ssh], write: [~/.cache]}, run: 'true'}
  - {id: asked, description: d, approval_required: true, sandbox: {network: none}, run: 'true'}
");
    // Accepted while there were walls, and begun where there are none.
    if walls_or_skip() {
        workspace.run(&["run", "asked"]).expect_code(6);
        let asked = workspace.show("latest")["summary"]["run"].clone();
        let approve = ["approve", asked.as_str().unwrap(), "--json"];
        let ended = without_landlock(|| workspace.run(&approve));
        let failure = &ended.value()["summary"]["outcome"]["failure"];
        assert_eq!(failure["step"], "execute", "{ended:?}");
        assert_eq!(failure["code"], "sandbox", "{ended:?}");
    }
    without_landlock(|| {
        for skill in ["change", "again", "back"] {
            let detail = run(&workspace, skill);
            let ended = &detail["summary"]["outcome"]["failure"];
            assert_eq!(ended["step"], "verify", "{skill}: {detail}");
            assert_eq!(ended["code"], "tree_changed", "{skill}: {ended}");
            let message = ended["message"].as_str().unwrap();
            assert!(message.contains("`tracked.txt`"), "{skill}: {message}");
            assert_eq!(detail["attempts"][0]["execution"]["sandbox_level"], 0);
            if skill == "again" {
                let left = workspace.read("tracked.txt").unwrap();
                assert!(left.ends_with("x\ny\n"), "nothing is put back: {left}");
            }
        }
        for skill in ["beside", "report", "free", "wide"] {
            let detail = run(&workspace, skill);
            assert_eq!(outcome(&detail), "succeeded", "{skill}: {detail}");
        }
        for (skill, key, linux) in [
            ("insists", "`sandbox: required`", "Linux 6.2"),
            ("contained", "`sandbox: private`", "Linux 6.2"),
            ("offline", "`sandbox: {network: none}`", "Linux 6.7"),
            ("ports", "`sandbox: {network: {tcp: …}}`", "Linux 6.7"),
            ("narrow", "`sandbox: {reads: …}`", "Linux 6.2"),
        ] {
            let refused = workspace.run(&["run", skill, "--json"]).expect_code(6);
            assert_eq!(refused.refusal(), "sandbox", "{skill}");
            for said in [key, linux] {
                assert!(refused.stderr.contains(said), "{said}: {refused:?}");
            }
        }
        let daemon = Daemon::start(&workspace);
        let looked = workspace.run(&["doctor"]);
        daemon.stop();
        assert!(looked.stdout.contains("level 0"), "{looked:?}");
    });
}
