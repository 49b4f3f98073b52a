//! A daemon with a way in over TCP.

use std::path::PathBuf;

use crate::mcp_http::wire::Place;
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const SKILLS: &str = "
  - {id: hello, description: d, run: 'echo hello {who}', interface: {inputs: [{name: who, type: string, default: you}]}}
  - {id: gated, description: d, run: 'echo before; GATE; echo after'}
  - {id: writes, description: d, mutating: true, run: 'echo x > f.txt'}
  - {id: loud, description: d, run: 'head -c 60000 /dev/zero | tr \"\\\\0\" x'}
";

/// A daemon, and where it is spoken to.
pub(crate) struct Host {
    pub(crate) workspace: Workspace,
    pub(crate) gate: Gate,
    pub(crate) daemon: Daemon,
    pub(crate) socket: Place,
    pub(crate) tcp: Place,
    pub(crate) token: String,
}

/// A workspace whose configuration says this under `mcp.http`, beside a port.
pub(crate) fn workspace(http: &str) -> (Workspace, Gate) {
    let workspace = Workspace::new();
    let gate = Gate::new(&workspace, "gate");
    let config = format!("mcp:\n  http: {{listen: '127.0.0.1:0'{http}}}\n");
    workspace.write("workerctl.yaml", &config);
    workspace.write(
        ".claude/skills/git/SKILL.md",
        "---\nname: git\ndescription: Git workflow\n---\n\n# Git\n",
    );
    // A folded text, so that quotes of the gate mean nothing here.
    let gated = Gate::text("gate").replace('"', "\\\"");
    let skills = SKILLS.replace(
        "'echo before; GATE; echo after'",
        &format!("\"echo before; {gated}; echo after\""),
    );
    workspace.furnish(&skills);
    (workspace, gate)
}

/// The socket of a daemon that was started by [`start`].
fn socket(workspace: &Workspace) -> PathBuf {
    workspace.home.join("mcp.sock")
}

/// Starts a daemon on a socket of a known name.
pub(crate) fn start(workspace: &Workspace) -> Daemon {
    let socket = socket(workspace);
    let mut command = workspace.workerctl(&["-v", "--socket"]);
    command.arg(socket).arg("daemon");
    Daemon::start_by(workspace, command)
}

impl Host {
    /// A daemon with these settings.
    pub(crate) fn start(http: &str) -> Host {
        let (workspace, gate) = workspace(http);
        Host::of(workspace, gate)
    }

    /// A daemon of this workspace.
    pub(crate) fn of(workspace: Workspace, gate: Gate) -> Host {
        let daemon = start(&workspace);
        let log = daemon.log();
        let port = log.rsplit_once("address=\"127.0.0.1:").unwrap().1;
        let port = port.split('"').next().unwrap().parse().unwrap();
        let token = std::fs::read_to_string(workspace.state().join("mcp-token"));
        Host {
            socket: Place::Socket(socket(&workspace)),
            tcp: Place::Tcp(port),
            token: token.unwrap_or_default().trim().to_owned(),
            gate,
            daemon,
            workspace,
        }
    }

    /// What a command tells that asks this daemon.
    pub(crate) fn command(&self, arguments: &[&str]) -> serde_json::Value {
        let Place::Socket(path) = &self.socket else {
            panic!("no socket")
        };
        let socket = ["--socket", path.to_str().unwrap()];
        self.workspace.json(&[&socket, arguments].concat())
    }

    /// Its newest runs, the newest first.
    pub(crate) fn runs(&self) -> serde_json::Value {
        self.command(&["runs"])["runs"].clone()
    }
}
