//! From the request to the first instruction of the skill, against a connection, a sync and a spawn.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{FileType, Mode};
use workerctl::protocol::Control;

use crate::Scale;
use crate::limits::{connect_seconds, median, median_of, sync_seconds};
use crate::report::{Report, Target};
use crate::workspace::{Workspace, settle, submit};

/// A pipe with a name, to which a process says that it has begun.
struct Begun {
    path: PathBuf,
    pipe: File,
}

impl Begun {
    fn new(directory: &Path) -> Begun {
        let path = directory.join("begun");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
        // Open for both, so that opening waits for nobody and its end is never reached.
        let pipe = File::options().read(true).write(true).open(&path).unwrap();
        Begun { path, pipe }
    }

    fn text(&self) -> String {
        format!("echo > {}", self.path.display())
    }

    fn wait(&mut self) {
        self.pipe.read_exact(&mut [0]).unwrap();
    }
}

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = Workspace::new(2);
    let mut begun = Begun::new(workspace.directory());
    let skill = format!(
        "  - {{id: go, name: Go, description: d, run: \"{}\"}}\n",
        begun.text()
    );
    for worker in 0..8 {
        workspace.worker(&format!("w{worker}"), &skill);
    }
    let engine = workspace.engine();
    let within = latency(scale, engine.control.as_ref(), &mut begun);
    engine.end();
    let daemon = workspace.daemon();
    let by_socket = latency(scale, &workspace.dial(), &mut begun);
    daemon.end();
    let connect = connect_seconds(workspace.directory(), scale.samples);
    let sync = sync_seconds(workspace.directory(), scale.samples);
    let spawn = spawn_until_begun(scale, &mut begun);
    let floor = connect + sync + spawn;
    let how = |latency: f64| {
        format!(
            "{:.0} us; floor {:.0} us = connect {:.0} + sync {:.0} + spawn {:.0}",
            latency * 1e6,
            floor * 1e6,
            connect * 1e6,
            sync * 1e6,
            spawn * 1e6
        )
    };
    report.add(
        "latency, submit to start, socket",
        by_socket / floor,
        "x floor",
        Target::AtMost(3.0),
        &how(by_socket),
    );
    report.add(
        "latency, submit to start, in process",
        within / (sync + spawn),
        "x sync + spawn",
        Target::None,
        &how(within),
    );
}

fn latency(scale: Scale, control: &dyn Control, begun: &mut Begun) -> f64 {
    let mut samples = Vec::new();
    for number in 0..scale.samples as u64 {
        let asked = Instant::now();
        submit(control, number, "go");
        begun.wait();
        samples.push(asked.elapsed().as_secs_f64());
        settle(control);
    }
    median(samples)
}

fn spawn_until_begun(scale: Scale, begun: &mut Begun) -> f64 {
    let text = begun.text();
    let mut children = Vec::new();
    let seconds = median_of(scale.samples, || {
        let child = Command::new("/bin/sh")
            .args(["-c", &text])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        begun.wait();
        children.push(child);
    });
    for mut child in children {
        child.wait().unwrap();
    }
    seconds
}
