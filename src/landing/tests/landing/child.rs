//! The process that lands or recovers, pauses and is killed.

use std::cell::RefCell;
use std::io::Write;
use std::path::Path;

use workerctl_landing::ids::Oid;
use workerctl_landing::{FileJournal, Observer, Request, land, recover};

use crate::rig::{MAIN, ORDERS, RUN, import, log_line};

/// Counts steps; waits before one and is killed before another.
struct Stopper {
    names: RefCell<Vec<String>>,
    pause_at: usize,
    kill_at: usize,
}

impl Observer for Stopper {
    fn before(&self, step: &str) {
        self.names.borrow_mut().push(step.to_owned());
        let number = self.names.borrow().len();
        if number == self.pause_at {
            say(&format!("@pause {step}"));
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
        }
        if number == self.kill_at {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{text}").unwrap();
    out.flush().unwrap();
}

#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else {
        return;
    };
    let parts: Vec<&str> = orders.split(' ').collect();
    let stopper = Stopper {
        names: RefCell::default(),
        pause_at: parts[1].parse().unwrap(),
        kill_at: parts[2].parse().unwrap(),
    };
    let (from, to): (Oid, Oid) = (parts[3].parse().unwrap(), parts[4].parse().unwrap());
    let mut journal = FileJournal::new(&std::env::current_dir().unwrap().join("journal"));
    let outcome = if parts[0] == "Import" {
        let here = std::env::current_dir().unwrap();
        format!("{:?}", import(&here, parts[3], parts[4], &stopper))
    } else if parts[0] == "Recover" {
        let plan = journal.open_plan().unwrap().unwrap();
        format!("{:?}", recover(&plan, &mut journal, &stopper))
    } else {
        let request = Request {
            repository: Path::new("repo"),
            run: &RUN.parse().unwrap(),
            target: MAIN,
            from: Some(&from),
            to: &to,
            earlier: &[],
            log: &log_line(),
        };
        format!("{:?}", land(&request, &mut journal, &stopper))
    };
    let names = stopper.names.into_inner();
    let (count, names) = (names.len(), names.join("|"));
    say(&format!("@done {count} {outcome} @steps {names}"));
}
