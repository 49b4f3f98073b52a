//! A person works in a repository beside a daemon whose runs succeed, fail, are cancelled and are killed with it.
//!
//! Every edit leaves a mark of its own. At the end each mark that was not removed on purpose is in a work
//! tree, a stash or a commit of a branch; nothing that was committed has been reverted, no commit is off its branch,
//! `HEAD` is where the person put it, the repository is whole and without locks, no run is stuck, none that was
//! acknowledged is lost, and none is committed twice.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of edits (100 by default, 2,000 before a release);
//! `WORKERCTL_TEST_SEED=<n>` another sequence. What was found is printed: `-- --nocapture`.

mod checks;
mod script;
use crate::workspace;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use script::Person;
use workspace::daemon::Daemon;
use workspace::{Dice, Workspace, rounds};

const SKILLS: &str = r#"
  - id: own
    description: writes a file of its own
    mutating: true
    run: "mkdir -p runs; echo mark-R$WORKERCTL_RUN > runs/$WORKERCTL_RUN.md"
  - id: shared
    description: changes a file that other runs and the person change too
    mutating: true
    run: "echo mark-R$WORKERCTL_RUN >> shared.txt"
  - id: again
    description: the same, and may be repeated
    mutating: true
    idempotent: true
    run: "echo mark-R$WORKERCTL_RUN >> shared.txt"
  - id: persons
    description: changes files of the person's
    mutating: true
    run: "for one in 0 1 2; do echo mark-R$WORKERCTL_RUN$one >> person-$one.txt; done"
  - {id: fails, description: d, mutating: true, run: "echo mark-R$WORKERCTL_RUN >> shared.txt; exit 3"}
  - id: refuted
    description: its check does not pass
    mutating: true
    run: "echo mark-R$WORKERCTL_RUN >> person-1.txt"
    verification: [{command: "false"}]
  - {id: slow, description: d, mutating: true, run: "sleep 1; echo mark-R$WORKERCTL_RUN >> shared.txt"}
"#;

const NAMES: [&str; 12] = [
    "own", "own", "own", "shared", "shared", "again", "again", "persons", "persons", "fails",
    "refuted", "slow",
];

/// Runs that are under way or wait at most, so that they are beside the person and not after them.
const OPEN_MAX: u64 = 3;

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "branch: main\nland_wait: 500ms\n");
    workspace.write("shared.txt", "begin\n");
    workspace.write("colleague.txt", "begin\n");
    for nth in 0..script::FILES {
        workspace.write(&format!("person-{nth}.txt"), "begin\n");
    }
    // What git does on its own beside its commands would be seen after the end.
    for setting in ["gc.autoDetach", "maintenance.autoDetach"] {
        workspace.git(&["config", setting, "false"]);
    }
    workspace.furnish(SKILLS);
    workspace
}

/// What the daemon is asked for and meets while the person works.
struct Beside<'w> {
    workspace: &'w Workspace,
    dice: Dice,
    daemon: Option<Daemon>,
    /// Actions of the person before the next daemon starts.
    down: u64,
    acknowledged: Vec<String>,
    kills: usize,
}

impl Beside<'_> {
    /// One action of the person, beside which the daemon may be killed.
    fn act(&mut self, person: &mut Person<'_>) {
        let moment = Duration::from_micros(self.dice.below(40_000));
        let is_last = self.daemon.is_some() && self.dice.below(20) == 0;
        let killed = is_last.then(|| self.daemon.take()).flatten();
        std::thread::scope(|scope| {
            if let Some(daemon) = killed {
                // The moment is what varies: in the middle of whatever is under way then.
                scope.spawn(move || {
                    std::thread::sleep(moment);
                    daemon.kill();
                });
                self.kills += 1;
                // Every other one is followed at once.
                self.down = self.dice.below(2) * (1 + self.dice.below(8));
            }
            person.act();
        });
        if self.daemon.is_none() {
            if self.down == 0 {
                self.daemon = Some(Daemon::start(self.workspace));
            }
            self.down = self.down.saturating_sub(1);
        }
    }

    /// Asks for runs, and now and then for the end of one.
    fn ask(&mut self) {
        if self.daemon.is_none() || self.dice.below(3) != 0 {
            return;
        }
        if let Some(run) = self.acknowledged.last()
            && self.dice.below(8) == 0
        {
            // It may have ended meanwhile.
            self.workspace.run(&["cancel", run]);
        }
        let status = self
            .workspace
            .run(&["status", "--json"])
            .expect_code(0)
            .value();
        let count = |name: &str| status[name].as_u64().unwrap();
        if count("running") + count("queued") + count("backing_off_count") < OPEN_MAX {
            let nth = self.dice.below(u64::try_from(NAMES.len()).unwrap());
            let name = NAMES[usize::try_from(nth).unwrap()];
            self.acknowledged.push(self.workspace.submit(&[name]));
        }
    }
}

#[test]
fn a_person_who_works_beside_runs_loses_nothing() {
    let workspace = workspace();
    let seed = std::env::var("WORKERCTL_TEST_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(17);
    let edits = rounds(100);
    let began = Instant::now();
    let mut person = Person::new(&workspace, Dice(seed));
    let mut beside = Beside {
        workspace: &workspace,
        dice: Dice(seed + 1),
        daemon: Some(Daemon::start(&workspace)),
        down: 0,
        acknowledged: Vec::new(),
        kills: 0,
    };
    while person.edits < edits {
        beside.act(&mut person);
        beside.ask();
    }
    let daemon = beside.daemon.take();
    let daemon = daemon.unwrap_or_else(|| Daemon::start(&workspace));
    workspace.wait_until_idle();
    daemon.stop();
    workspace.expect_no_process();
    println!(
        "{edits} edits, {} actions, {} kills, {} runs in {:?}; git was tried again {} times; {:?}",
        person.actions,
        beside.kills,
        beside.acknowledged.len(),
        began.elapsed(),
        person.again,
        person.done
    );
    let acknowledged: BTreeSet<String> = beside.acknowledged.into_iter().collect();
    checks::repository(&workspace, &person);
    checks::marks(&workspace, &person);
    checks::runs(&workspace, &acknowledged);
}
