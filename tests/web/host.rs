//! A daemon that serves the web page, and people who log in to it.

use crate::web::wire::{Answer, Request};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

const SKILLS: &str = "
  - {id: hello, description: d, run: 'echo hello'}
  - {id: asks, description: d, approval_required: true, run: 'echo approved'}
";

/// A daemon that serves the page always.
pub(crate) struct Host {
    pub(crate) workspace: Workspace,
    pub(crate) daemon: Daemon,
    pub(crate) port: u16,
}

impl Host {
    /// With `web: {listen: …}` and this behind it.
    pub(crate) fn start(more: &str) -> Host {
        Host::with_skills(more, SKILLS)
    }

    pub(crate) fn with_skills(more: &str, skills: &str) -> Host {
        let workspace = Workspace::with_skills(skills);
        configure(&workspace, more);
        Host::of(workspace)
    }

    /// A daemon of this workspace.
    pub(crate) fn of(workspace: Workspace) -> Host {
        let daemon = Daemon::start(&workspace);
        let port = port_of(&daemon);
        Host {
            workspace,
            daemon,
            port,
        }
    }

    /// The same, at the same port, after the daemon was killed.
    pub(crate) fn killed_and_started(self) -> Host {
        self.daemon.kill();
        let config = std::fs::read_to_string(self.workspace.root.join("workerctl.yaml")).unwrap();
        let config = config.replace("127.0.0.1:0'", &format!("127.0.0.1:{}'", self.port));
        self.workspace.write("workerctl.yaml", &config);
        Host::of(self.workspace)
    }

    /// A code, as `workerctl web` is given one.
    pub(crate) fn code(&self, more: &[&str]) -> String {
        let told = self.workspace.json(&[&["web", "--no-open"], more].concat());
        assert_eq!(told["persistent"], true, "{told}");
        let login = told["login"].as_str().unwrap();
        let (address, code) = login.split_once("#login=").unwrap();
        assert_eq!(address, format!("http://127.0.0.1:{}/", self.port));
        code.to_owned()
    }

    /// The token of somebody who has logged in.
    pub(crate) fn token(&self, more: &[&str]) -> String {
        let answer = self.log_in(&self.code(more));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.value()["token"].as_str().unwrap().to_owned()
    }

    /// Trades a code for what it gives.
    pub(crate) fn log_in(&self, code: &str) -> Answer {
        let body = serde_json::json!({ "code": code }).to_string();
        self.ask(&Request::post("/v1/web/login", &body))
    }

    pub(crate) fn ask(&self, request: &Request) -> Answer {
        request.ask(self.port)
    }

    pub(crate) fn get(&self, path: &str, token: &str) -> Answer {
        self.ask(&Request::get(path).token(token))
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        self.ask(&Request::post(path, body).token(token))
    }
}

pub(crate) fn configure(workspace: &Workspace, more: &str) {
    let config = format!("web: {{listen: '127.0.0.1:0'{more}}}\n");
    workspace.write("workerctl.yaml", &config);
}

/// Where the newest daemon serves the page.
fn port_of(daemon: &Daemon) -> u16 {
    let log = daemon.log();
    let port = log.rsplit_once("address=\"127.0.0.1:").unwrap().1;
    port.split('"').next().unwrap().parse().unwrap()
}
