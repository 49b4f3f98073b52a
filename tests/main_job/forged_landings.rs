//! Records of landings that no landing made: recovery and removal act on none of them.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use workerctl_landing::{Journal, MetFile, Plan, Request, Unobserved, land};

use crate::main_job::landing::log_line;
use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually};

/// A run that the store does not know.
const UNKNOWN: &str = "01JC0000000000000000000000";

/// Takes the plan of a landing and lets it go no further.
struct Captured(RefCell<Option<Plan>>);

impl Journal for Captured {
    fn started(&mut self, plan: &Plan) -> std::io::Result<()> {
        self.0.replace(Some(plan.clone()));
        Err(std::io::Error::other("captured"))
    }

    fn landed(&mut self, _plan: &Plan) -> std::io::Result<()> {
        Ok(())
    }

    fn taken_back(&mut self, _plan: &Plan, _left: &[MetFile]) -> std::io::Result<()> {
        Ok(())
    }
}

/// A workspace with a branch `prod` and a run whose commit could not land; the run, and the plan of its landing.
fn kept_run() -> (Workspace, String, Value) {
    let workspace = Workspace::with_skills(
        "  - {id: change, description: d, mutating: true, run: \"echo changed >> tracked.txt\"}\n",
    );
    workspace.write("workerctl.yaml", "land_wait: 50ms\n");
    workspace.commit_all("configuration");
    workspace.git(&["branch", "prod"]);
    workspace.write("tracked.txt", "an edit\n");
    let shown = workspace.run(&["run", "change", "--json"]).expect_code(1);
    let run = shown.value()["summary"]["run"].as_str().unwrap().to_owned();
    workspace.git(&["checkout", "-q", "tracked.txt"]);
    let oid = |name: &str| workspace.git(&["rev-parse", name]).trim().parse().unwrap();
    let (from, to) = (
        oid("HEAD"),
        oid(&format!("refs/workerctl/runs/{run}/commit")),
    );
    let log = log_line();
    let request = Request {
        repository: &workspace.root,
        run: &run.parse().unwrap(),
        target: "refs/heads/main",
        from: Some(&from),
        to: &to,
        earlier: &[],
        log: &log,
    };
    let mut journal = Captured(RefCell::new(None));
    assert!(land(&request, &mut journal, &Unobserved).is_err());
    let plan = serde_json::to_value(journal.0.take().unwrap()).unwrap();
    (workspace, run, plan)
}

fn record(workspace: &Workspace, run: &str, plan: &Value, has_landed: bool) -> PathBuf {
    let mut text = format!("{}\n", json!({"event": "landing_started", "plan": plan}));
    if has_landed {
        text.push_str("{\"event\":\"landed\"}\n");
    }
    let path = workspace.state().join("landings").join(run);
    fs::write(&path, text).unwrap();
    path
}

/// A directory with a file in it that no engine made.
fn precious(place: &Path) -> PathBuf {
    fs::create_dir_all(place.join("checkout-0")).unwrap();
    fs::write(place.join("thesis.txt"), "thesis").unwrap();
    place.to_owned()
}

/// What is forged: a description, the place in the plan, and its value; each record is one of the run's.
fn forgeries(
    home: &Path,
    precious: &Path,
    plan: &Value,
) -> Vec<(&'static str, &'static str, Value)> {
    let staging = plan["staging"].as_str().unwrap();
    vec![
        ("another directory to delete", "/staging", json!(precious)),
        (
            "a directory above",
            "/staging",
            json!(format!("{staging}/../../..")),
        ),
        ("another branch", "/target", json!("refs/heads/prod")),
        ("another base", "/from", plan["to"].clone()),
        ("another commit", "/to", plan["from"].clone()),
        ("earlier commits", "/earlier", json!([plan["from"]])),
        ("files elsewhere", "/checkouts/0/workdir", json!(home)),
        (
            "an index elsewhere",
            "/checkouts/0/git_dir",
            json!(precious),
        ),
        ("another file", "/changes/0/path", json!("dot-bashrc")),
        ("another repository", "/common_dir", json!(precious)),
        ("another run", "/run", json!(UNKNOWN)),
    ]
}

#[test]
fn a_record_that_differs_from_its_run_is_ignored() {
    let (workspace, run, plan) = kept_run();
    let home = &workspace.home;
    let precious = precious(&home.join("precious"));
    let prod = workspace.git(&["rev-parse", "prod"]);
    let mut records = Vec::new();
    for (case, place, value) in forgeries(home, &precious, &plan) {
        let mut forged = plan.clone();
        if forged.pointer(place).is_none() {
            forged["earlier"] = json!([]);
        }
        *forged.pointer_mut(place).unwrap() = value;
        records.push((case, run.as_str(), forged));
    }
    let mut of_unknown = plan.clone();
    let staging = plan["staging"].as_str().unwrap().replace(&run, UNKNOWN);
    (of_unknown["run"], of_unknown["staging"]) = (json!(UNKNOWN), json!(staging));
    records.push(("a run that the store does not know", UNKNOWN, of_unknown));
    for (case, name, forged) in records {
        let path = record(&workspace, name, &forged, false);
        workspace.json(&["status"]);
        assert_eq!(workspace.git(&["rev-parse", "prod"]), prod, "{case}");
        assert_eq!(workspace.git(&["status", "--porcelain"]), "", "{case}");
        assert_eq!(workspace.git(&["rev-parse", "main"]), prod, "{case}");
        assert!(precious.join("thesis.txt").exists(), "{case}");
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 2, "{case}");
        assert!(!home.join("dot-bashrc").exists(), "{case}");
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(path.with_extension("refused"));
    }
    // The run itself is untouched by all of it.
    workspace.json(&["land", &run]);
    assert_ne!(workspace.git(&["rev-parse", "main"]), prod);
}

#[test]
fn what_a_landing_left_is_removed_only_below_the_directory_of_landings() {
    let (workspace, run, plan) = kept_run();
    let precious = precious(&workspace.home.join("precious"));
    let landings = workspace.root.join(".git/workerctl/landing");
    let own = self::precious(&landings.join(format!("{run}-0")));
    let own_of_unknown = self::precious(&landings.join(format!("{UNKNOWN}-0")));
    let mut forged = Vec::new();
    for (nth, staging) in [&precious, &landings, &workspace.root]
        .into_iter()
        .enumerate()
    {
        let name = format!("01JC000000000000000000000{}", nth + 1);
        let mut plan = plan.clone();
        (plan["run"], plan["staging"]) = (json!(name), json!(staging));
        forged.push(record(&workspace, &name, &plan, true));
    }
    let mut of_unknown = plan.clone();
    (of_unknown["run"], of_unknown["staging"]) = (json!(UNKNOWN), json!(own_of_unknown));
    forged.push(record(&workspace, UNKNOWN, &of_unknown, true));
    forged.push(record(&workspace, &run, &plan, true));
    for path in &forged {
        let old = std::time::SystemTime::now() - std::time::Duration::from_hours(72);
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let daemon = Daemon::start(&workspace);
    // The engine removes old records after a run.
    workspace.json(&["run", "change"]);
    eventually("old records are removed", || {
        forged.iter().all(|path| !path.exists()).then_some(())
    });
    assert!(precious.join("thesis.txt").exists());
    assert!(workspace.root.join("workers").is_dir());
    assert!(landings.is_dir());
    assert!(!own.exists() && !own_of_unknown.exists());
    drop(daemon);
}
