//! `check` and `doctor` find skills that cannot run here, although their definitions are valid.

use serde_json::Value;

use crate::workspace::Workspace;

const SKILLS: &str = r"
  - {id: branch, description: d, mutating: true, branch: nowhere, run: 'true'}
  - {id: made, description: d, mutating: true, branch: {name: nowhere, create: true}, run: 'true'}
  - {id: remote, description: d, mutating: true, push: upstream, run: 'true'}
  - {id: directory, description: d, cwd: nowhere, run: 'true'}
  - {id: tool, description: d, required_tools: [no-such-tool], run: 'true'}
  - {id: script, description: d, run: {script: nowhere.sh}}
  - {id: model, description: d, instructions: think, schedule: '@daily'}
  - {id: unused, description: d, instructions: think}
  - {id: fine, description: d, mutating: true, branch: main, run: 'true'}
";

/// Codes and skills of the problems that `check` reports.
fn checked(workspace: &Workspace) -> Vec<(String, String)> {
    let found = workspace.run(&["check", "--json"]).expect_code(6).value();
    let problems = found["problems"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = problems.filter(|one| one["severity"] == "warning");
    let named = problems.map(|one| (text(&one["code"]), text(&one["skill"])));
    named
        .filter(|(code, _)| code.ends_with("-missing") || code == "no-executor")
        .collect()
}

#[test]
fn what_can_never_run_is_found_before_it_is_run() {
    let workspace = Workspace::with_skills(SKILLS);
    let expected = [
        ("branch-missing", "branch"),
        ("remote-missing", "remote"),
        ("cwd-missing", "directory"),
        ("tool-missing", "tool"),
        ("file-missing", "script"),
        ("no-executor", "model"),
    ];
    let found = checked(&workspace);
    let found: Vec<_> = found
        .iter()
        .map(|(code, skill)| (&**code, &**skill))
        .collect();
    assert_eq!(found, expected);
    let text = std::fs::read_to_string(workspace.root.join("workers/w/worker.yaml")).unwrap();
    let told = workspace.run(&["check", "--json"]).value();
    for (code, value) in [
        ("branch-missing", "nowhere, run"),
        ("remote-missing", "upstream,"),
        ("cwd-missing", "nowhere, run: 'true'}\n  - {id: tool"),
        ("tool-missing", "no-such-tool"),
    ] {
        let problems = told["problems"].as_array().unwrap();
        let problem = problems.iter().find(|problem| problem["code"] == code);
        let place = &problem.unwrap()["place"];
        let at = text.find(value).unwrap();
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').unwrap();
        assert_eq!(place["line"], line, "{code}: {place}");
        assert_eq!(place["column"], column, "{code}: {place}");
    }
    let doctor = workspace.run(&["doctor"]).expect_code(1).stdout;
    assert!(doctor.contains("`unused` is unavailable"), "{doctor}");
    for (_, skill) in expected {
        let cannot = [
            format!("`w/{skill}` cannot run"),
            format!("`{skill}` is unavailable"),
        ];
        assert!(cannot.iter().any(|text| doctor.contains(text)), "{doctor}");
        let done = workspace.run(&["run", skill, "-q"]);
        assert_eq!(done.code, 6, "{skill}: {done:?}");
    }
    workspace.git(&["branch", "nowhere"]);
    workspace.git(&["remote", "add", "upstream", "../nowhere"]);
    std::fs::create_dir(workspace.root.join("nowhere")).unwrap();
    assert_eq!(
        checked(&workspace),
        expected[3..]
            .iter()
            .map(|(code, skill)| ((*code).to_owned(), (*skill).to_owned()))
            .collect::<Vec<_>>()
    );
}

#[test]
fn programs_that_do_not_exist_are_found() {
    let skills = r"
  - {id: name, description: d, run: [pyhton3, x]}
  - {id: path, description: d, run: ./nowhere.sh}
  - {id: interpreter, description: d, run: {script: a.py, interpreter: python9}}
  - {id: fine, description: d, run: [sh, -c, 'true']}
";
    let workspace = Workspace::with_skills(skills);
    std::fs::write(workspace.root.join("workers/w/a.py"), "").unwrap();
    let found = checked(&workspace);
    let expected = ["name", "path", "interpreter"];
    let expected = expected.map(|skill| ("program-missing".to_owned(), skill.to_owned()));
    assert_eq!(found, expected);
    for skill in ["name", "path", "interpreter"] {
        let done = workspace.run(&["run", skill, "-q"]);
        assert_ne!(done.code, 0, "{skill}: {done:?}");
    }
}

#[test]
fn a_missing_command_of_a_notification_keeps_nothing_from_running() {
    let skills = "\n  - {id: b, description: d, run: 'true', schedule: {watch: [docz/]}}\n  - {id: c, description: d, mutating: true, run: 'true'}\n";
    let workspace = Workspace::with_skills(skills);
    std::fs::write(
        workspace.root.join("workerctl.yaml"),
        "notify: {on_failure: ./nowhere.sh}\nhooks: {post_commit: ./nohook.sh}\n",
    )
    .unwrap();
    let done = workspace.run(&["check"]).expect_code(0).stdout;
    for code in ["command-file-missing", "schedule-path-missing"] {
        assert!(done.contains(code), "{code}: {done}");
    }
    assert!(done.contains("`./nohook.sh` does not exist"), "{done}");
}

#[test]
fn a_schedule_that_waits_for_a_missing_branch_fails_the_check() {
    let workspace = Workspace::with_skills(
        "\n  - {id: a, description: d, run: 'true', schedule: {on_commit: relase}}\n",
    );
    let done = workspace.run(&["check"]).expect_code(6).stdout;
    assert!(done.contains("schedule-branch-missing"), "{done}");
}

#[test]
fn a_tool_that_no_set_has_is_not_its_own_correction() {
    let skills = "\n  - {id: a, description: d, run: 'true', required_tools: [web_search]}\n";
    let workspace = Workspace::with_skills(skills);
    let done = workspace.run(&["check"]).expect_code(6).stdout;
    assert!(done.contains("no tool set has it"), "{done}");
    assert!(!done.contains("did you mean"), "{done}");
}

#[test]
fn workers_in_another_directory_are_found() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "timezone: UTC\n");
    workspace.write(
        "team/workers/a/worker.yaml",
        "worker: {id: a}\nskills: [{id: s, description: d, run: 'true'}]\n",
    );
    let found = workspace.run(&["check", "--json"]).value();
    let hint = found["problems"][0]["hint"].as_str().unwrap();
    assert!(hint.contains("paths: [team/workers]"), "{found}");
    std::fs::remove_file(workspace.root.join("workerctl.yaml")).unwrap();
    let refused = workspace.run(&["check"]).expect_code(3).stderr;
    assert!(refused.contains("/team' …`"), "{refused}");
}
