//! Skills that belong to no worker, through the program: listed, shown, checked, converted, trusted, and
//! never run.

use crate::workspace;

mod links;

use std::fs;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, eventually};

fn page(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Says {name}\n{more}---\n\n{{{{ no template }}}}\n")
}

/// A workspace with a skill in each kind of place.
fn workspace() -> Workspace {
    let workspace = Workspace::with_skills("  - {id: own, description: d, run: 'true'}\n");
    workspace.write(
        "workerctl.yaml",
        "skills: {untrusted: [.agents], roots: [~/team]}\n",
    );
    workspace.write(
        ".claude/skills/git/SKILL.md",
        &page("git", "license: MIT\n"),
    );
    workspace.write(".claude/skills/git/ref/more.md", "More.\n");
    workspace.write(".agents/skills/new/SKILL.md", &page("new", ""));
    workspace.write(".wave/skills/odd/SKILL.md", &page("Odd", ""));
    workspace.write(
        ".claude/skills/bad/SKILL.md",
        &page("bad", "allowed-tools: [1]\n"),
    );
    workspace.write(
        "workspace/skills/summarize.yaml",
        "description: One\npreferred_model: fast\nrequired_tools: [bash]\ninput_schema: {type: object, properties: {n: {type: integer, default: 3}}}\ninstructions: |\n  Do it.\n",
    );
    at_home(&workspace, ".claude/skills/git/SKILL.md", &page("git", ""));
    at_home(&workspace, "team/own/SKILL.md", &page("own", ""));
    workspace
}

fn at_home(workspace: &Workspace, path: &str, text: &str) {
    let path = workspace.home.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The JSON of a command that ends with 4.
fn refused(workspace: &Workspace, arguments: &[&str]) -> Value {
    let done = workspace.run(&[arguments, &["--json"]].concat());
    assert_eq!(done.code, 4, "{arguments:?}: {done:?}");
    done.value()
}

fn listed<'l>(list: &'l Value, address: &str) -> &'l Value {
    list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .find(|skill| skill["skill"] == address)
        .unwrap_or_else(|| panic!("no `{address}` in {list:#}"))
}

#[test]
fn a_skill_shows_what_it_takes_and_what_it_makes() {
    let workspace = Workspace::with_skills(
        r"
  - id: report
    description: d
    mutating: true
    run: 'echo {since} {n} > {report}'
    interface:
      inputs:
        - {name: since, type: string, description: the first day, pattern: '\d{4}-\d\d-\d\d', required: true}
        - {name: n, type: number, default: 3}
        - {name: form, enum: [long, short]}
        - {name: token, type: string, sensitive: true}
      outputs: [{name: report, type: markdown, destination: 'reports/{since}.md'}]
    verification: {post_execute: [{command: 'test -s {report}'}]}
",
    );
    let shown = workspace
        .run(&["skill", "show", "w/report"])
        .expect_code(0)
        .stdout;
    for line in [
        "  input        since: string, required; the first day",
        "  input        n: number, default 3",
        "  input        form: string, one of long short, optional",
        "  input        token: string, secret, optional",
        "  output       report: markdown, reports/{since}.md",
        "  mutating     ends in a commit",
        "  checks       1 after its command",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}

#[test]
fn every_skill_is_listed_with_source_dialect_trust_problems_and_shadows() {
    let workspace = workspace();
    let list = workspace.json(&["skills"]);
    let table = [
        ("w/own", "worker", "worker", "root"),
        ("git", ".claude", "agent", "root"),
        ("~/.claude:git", "~/.claude", "agent", "root"),
        ("new", ".agents", "agent", "untrusted"),
        ("Odd", ".wave", "wave", "root"),
        ("summarize", "workspace", "workspace", "root"),
        ("~/team:own", "~/team", "agent", "root"),
    ];
    assert_eq!(list["skills"].as_array().unwrap().len(), table.len());
    for (address, source, dialect, trust) in table {
        let one = listed(&list, address);
        assert_eq!(one["source"], source, "{address}");
        assert_eq!(one["dialect"], dialect, "{address}");
        assert_eq!(one["trust"], trust, "{address}");
    }
    let shadowed = listed(&list, "~/.claude:git");
    assert_eq!(shadowed["shadowed_by"], ".claude/skills/git/SKILL.md");
    assert_eq!(listed(&list, "Odd")["problems"][0]["code"], "skill-invalid");
    assert_eq!(list["omitted"][0]["name"], "bad");
    assert_eq!(
        list["omitted"][0]["problems"][0]["code"],
        "restriction-malformed"
    );
    let text = workspace.run(&["skills"]);
    assert!(text.stderr.contains("1 file left out"), "{text:?}");
    assert!(text.stdout.contains("shadowed"), "{text:?}");
    let of_one = workspace.json(&["skills", "--source", ".wave"]);
    assert_eq!(of_one["skills"].as_array().unwrap().len(), 1);
    assert_eq!(workspace.run(&["skills", "--source", "none"]).code, 3);
    // Of the workspace's own files `check` says the same; what lies at home is none of its business.
    let check = refused(&workspace, &["check"]);
    let codes: Vec<&str> = check["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"restriction-malformed") && codes.contains(&"skill-invalid"));
    assert!(!codes.contains(&"skill-shadowed"), "{check:#}");
}

#[test]
fn a_skill_is_shown_with_its_interface_its_files_and_its_text_as_it_is() {
    let workspace = workspace();
    let shown = workspace.json(&["skill", "show", "GIT"]);
    assert_eq!(shown["instructions"], "{{ no template }}");
    assert_eq!(shown["keys"]["license"], "MIT");
    assert_eq!(shown["max_iterations"], 5);
    assert_eq!(shown["files"][0]["path"], "ref/more.md");
    let shown = workspace.json(&["skill", "show", "summarize"]);
    assert_eq!(shown["model"], "fast");
    assert_eq!(shown["required_tools"][0], "bash");
    assert_eq!(shown["input_schema"]["properties"]["n"]["default"], 3);
    let shown = workspace.json(&["skill", "show", "w/own"]);
    assert_eq!(shown["source"], "worker");
    let text = workspace.run(&["skill", "show", ".claude/skills/git"]);
    assert!(text.stdout.ends_with("\n{{ no template }}\n"), "{text:?}");
    let more = workspace.run(&["skill", "files", "git", "ref/more.md"]);
    assert_eq!(more.stdout, "More.\n");
    for (path, code) in [("../bad/SKILL.md", 2), ("none.md", 3), ("/etc/passwd", 2)] {
        let left = workspace.run(&["skill", "files", "git", path]);
        assert_eq!(left.code, code, "{path}: {left:?}");
    }
    assert_eq!(workspace.run(&["skill", "show", "bad"]).code, 4);
    let left = workspace.run(&["skill", "show", "gti"]);
    assert!(
        left.code == 3 && left.stderr.contains("did you mean `git`?"),
        "{left:?}"
    );
}

#[test]
fn a_skill_without_a_worker_is_refused_when_it_is_to_run() {
    let workspace = workspace();
    workspace.write(
        ".claude/skills/cmd/SKILL.md",
        &page("cmd", "run: touch ran\n"),
    );
    for name in ["git", "cmd", "~/.claude:git", "new"] {
        let left = workspace.run(&["run", name]);
        assert_eq!(left.code, 6, "{left:?}");
        assert!(left.stderr.contains("is unavailable"), "{left:?}");
    }
    assert!(!workspace.root.join("ran").exists());
    assert_eq!(workspace.run(&["run", "bad"]).code, 4);
    assert_eq!(workspace.run(&["run", "own"]).code, 0);
}

#[test]
fn trust_holds_for_the_content_and_ends_with_it() {
    let workspace = workspace();
    let trust = |workspace: &Workspace| {
        listed(&workspace.json(&["skills"]), "new")["trust"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(trust(&workspace), "untrusted");
    assert_eq!(workspace.run(&["skill", "trust", "new"]).code, 0);
    assert_eq!(trust(&workspace), "content");
    workspace.write(".agents/skills/new/run.sh", "echo\n");
    assert_eq!(trust(&workspace), "changed");
    assert_eq!(workspace.run(&["skill", "trust", "new"]).code, 0);
    assert_eq!(trust(&workspace), "content");
    let told = workspace.json(&["skill", "distrust", "new"]);
    assert_eq!(told["was_trusted"], true);
    assert_eq!(trust(&workspace), "untrusted");
    assert_eq!(workspace.run(&["skill", "trust", "git"]).code, 8);
}

#[test]
fn validate_tells_links_and_what_the_specification_does_not_have() {
    let workspace = workspace();
    let good = "---\nname: good\ndescription: One\nmetadata: {a: b}\nallowed-tools: Bash(git add:*) Read\n---\n[x](ref.md)\n";
    workspace.write(".claude/skills/good/SKILL.md", good);
    workspace.write(".claude/skills/good/ref.md", "x");
    assert_eq!(
        workspace
            .run(&["skill", "validate", "good", "--portable", "--strict"])
            .code,
        0
    );
    let links = format!(
        "{}[a](../git/SKILL.md) [b](no.md)\n",
        page("links", "version: 1.10\n")
    );
    workspace.write(".claude/skills/links/SKILL.md", &links);
    let told = workspace.json(&["skill", "validate", "links"]);
    let codes = |told: &Value| -> Vec<String> {
        let problems = told["problems"].as_array().unwrap();
        problems
            .iter()
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(codes(&told), ["link-leads-nowhere", "link-leaves-skill"]);
    assert_eq!(
        workspace
            .run(&["skill", "validate", "links", "--strict"])
            .code,
        4
    );
    let told = refused(&workspace, &["skill", "validate", "links", "--portable"]);
    assert_eq!(codes(&told)[0], "not-portable");
    assert_eq!(workspace.run(&["skill", "validate"]).code, 4);
    // One that is in no root yet.
    workspace.write("drafts/d/SKILL.md", &page("d", ""));
    assert_eq!(workspace.run(&["skill", "validate", "drafts/d"]).code, 0);
}

#[test]
fn validate_tells_files_out_of_the_skill_however_it_leads_there() {
    let workspace = workspace();
    let front = "---\nname: out\ndescription: see [x](no.md)\n---\n";
    let body =
        "[a](linked.md) <img src=\"../x.png\">\n[b](file:///etc/hosts)\n\n    [c](code.md)\n";
    workspace.write(".claude/skills/out/SKILL.md", &format!("{front}{body}"));
    let beside = workspace.root.join(".claude/skills/out/linked.md");
    std::os::unix::fs::symlink("../git/SKILL.md", beside).unwrap();
    let told = workspace.json(&["skill", "validate", "out"]);
    let told: Vec<(&str, u64)> = told["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let line = one["line"].as_u64().or(one["place"]["line"].as_u64());
            (one["code"].as_str().unwrap(), line.unwrap())
        })
        .collect();
    let leaves = |line: u64| ("link-leaves-skill", line);
    assert_eq!(told, [leaves(5), leaves(5), leaves(6)]);
}

#[test]
fn the_specification_allows_no_body_and_only_texts_under_metadata() {
    let workspace = workspace();
    let validate = |workspace: &Workspace, place: &str| {
        let arguments = ["skill", "validate", place, "--portable", "--strict"];
        workspace.run(&arguments).code
    };
    for root in [".claude/skills", "drafts"] {
        let empty = "---\nname: empty\ndescription: One\n---\n";
        workspace.write(&format!("{root}/empty/SKILL.md"), empty);
        let path = format!("{root}/empty");
        assert_eq!(validate(&workspace, &path), 0, "{path}");
        let told = workspace.run(&["skill", "validate", &path]).expect_code(0);
        assert!(told.stdout.contains("empty-instructions"), "{told:?}");
    }
    assert_eq!(validate(&workspace, "empty"), 0);
    let other = "---\nname: empty\ndescription: One\nversion: 2\n---\n";
    workspace.write("drafts/empty/SKILL.md", other);
    assert_eq!(validate(&workspace, "drafts/empty"), 4);
    for (key, code) in [("a", 0), ("'1'", 0), ("1", 4), ("true", 4), ("~", 4)] {
        let text = format!("---\nname: m\ndescription: d\nmetadata: {{{key}: a}}\n---\nDo.\n");
        workspace.write("drafts/m/SKILL.md", &text);
        assert_eq!(validate(&workspace, "drafts/m"), code, "{key}");
    }
}

#[test]
fn validate_says_which_line_to_add_where_a_name_is_missing() {
    let workspace = workspace();
    let nameless = "---\ndescription: One\n---\nDo it.\n";
    for (place, code) in [
        (".agents/skills/mine", 0),
        (".agent/skills/mine", 4),
        (".claude/skills/mine", 4),
        ("elsewhere/.agents/skills/group/mine", 0),
        ("drafts/mine", 4),
    ] {
        workspace.write(&format!("{place}/SKILL.md"), nameless);
        let told = workspace.run(&["skill", "validate", place]);
        assert_eq!(told.code, code, "{place}: {told:?}");
        assert!(told.stdout.contains("`name: mine`"), "{place}: {told:?}");
    }
}

#[test]
fn the_list_as_text_has_source_dialect_trust_state_and_shadows() {
    let workspace = workspace();
    workspace.write(".agents/skills/git/SKILL.md", &page("git", ""));
    let listed = workspace.run(&["skills"]).stdout;
    let row = |name: &str| -> Vec<&str> {
        let line = listed
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}\n{listed}"))
            .split_whitespace()
            .collect()
    };
    assert_eq!(
        row("SKILL")[..5],
        ["SKILL", "SOURCE", "DIALECT", "TRUST", "STATE"]
    );
    assert_eq!(
        row("new")[..5],
        ["new", ".agents", "agent", "untrusted", "ok"]
    );
    let (first, second) = (row("git"), row("~/.claude:git"));
    assert_eq!(first[..4], ["git", ".agents", "agent", "untrusted"]);
    assert_eq!(second[1..5], ["~/.claude", "agent", "root", "shadowed"]);
    assert_eq!(row("w/own")[1..4], ["worker", "worker", "root"]);
}

#[test]
fn a_converted_skill_is_one_of_its_new_dialect() {
    let workspace = workspace();
    let left = workspace.run(&[
        "skill", "convert", "git", "--to", "portable", "--output", "out",
    ]);
    assert_eq!(left.code, 0, "{left:?}");
    let read = |path: &str| fs::read_to_string(workspace.root.join(path)).unwrap();
    assert_eq!(read("out/git/ref/more.md"), "More.\n");
    let left = workspace.run(&["skill", "validate", "out/git", "--portable", "--strict"]);
    assert_eq!(left.code, 0, "{left:?}");
    // Nothing is replaced.
    let again = workspace.run(&[
        "skill", "convert", "git", "--to", "portable", "--output", "out",
    ]);
    assert_eq!(again.code, 8, "{again:?}");
    let printed = workspace.run(&["skill", "convert", "summarize", "--to", "agent"]);
    assert!(
        printed.stdout.starts_with("---\nname: summarize\n"),
        "{printed:?}"
    );
    let page = workspace.run(&["skill", "convert", "git", "--to", "workspace-page"]);
    assert_eq!(page.code, 4, "it has files beside it: {page:?}");
}

#[test]
fn a_daemon_takes_up_skills_of_the_workspace_and_of_home() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    let code = |name: &str| workspace.run(&["run", name]).code;
    assert_eq!(code("git"), 6);
    assert_eq!(code("later"), 3);
    at_home(
        &workspace,
        ".agents/skills/later/SKILL.md",
        &page("later", ""),
    );
    eventually("the skill at home", || (code("later") == 6).then_some(()));
    fs::remove_dir_all(workspace.home.join(".agents")).unwrap();
    eventually("its end", || (code("later") == 3).then_some(()));
    daemon.stop();
}

#[test]
fn a_qualified_name_trusts_the_skill_that_it_names_and_no_other() {
    let workspace = Workspace::new();
    workspace.write(
        "workerctl.yaml",
        "skills: {untrusted: [.agents, .claude]}\n",
    );
    workspace.write(".agents/skills/e2/SKILL.md", &page("\".claude:only\"", ""));
    workspace.write(".claude/skills/only/SKILL.md", &page("only", ""));
    let given = workspace.run(&["skill", "trust", ".claude:only"]);
    assert_eq!(given.code, 0, "{given:?}");
    let list = workspace.json(&["skills"]);
    assert_eq!(listed(&list, "only")["trust"], "content");
    let other = listed(&list, ".agents:.claude:only");
    assert_eq!(other["trust"], "untrusted", "{other}");
    assert_eq!(other["problems"][0]["code"], "name-qualified", "{other}");
    let shown = workspace.json(&["skill", "show", ".claude:only"]);
    assert_eq!(shown["name"], "only", "{shown}");
}

#[test]
fn skills_are_read_where_there_is_no_workspace_and_nothing_is_written() {
    let bed = Workspace::new();
    bed.write(".claude/skills/git/SKILL.md", &page("git", ""));
    bed.write(".claude/skills/git/more.md", "More.\n");
    bed.write("a/b/file.txt", "x");
    at_home(&bed, ".agents/skills/own/SKILL.md", &page("own", ""));
    let sub = bed.root.join("a/b");
    let before = bed.git(&["status", "--porcelain", "--ignored", "-uall"]);
    let run = |arguments: &[&str]| {
        let mut command = bed.program(env!("CARGO_BIN_EXE_workerctl"));
        command.current_dir(&sub).args(arguments);
        bed.start(&mut command).end()
    };
    for (arguments, expected) in [
        (&["skills"][..], "~/.agents"),
        (&["skills", "--json"], "\".claude\""),
        (&["skill", "show", "git"], "Says git"),
        (&["skill", "show", "own"], "Says own"),
        (&["skill", "files", "git"], "more.md"),
        (&["skill", "files", "git", "more.md"], "More."),
        (&["skill", "convert", "git", "--to", "wave"], "name: git"),
        (&["-C", "..", "skills"], "git"),
        (&["-C", "/", "skills"], "own"),
    ] {
        let done = run(arguments).expect_code(0);
        assert!(done.stdout.contains(expected), "{arguments:?}: {done:?}");
    }
    let checked = run(&["skill", "validate"]).expect_code(0);
    assert!(checked.stderr.contains("2 skills"), "{checked:?}");
    let trusted = run(&["skill", "trust", "git"]).expect_code(8);
    assert!(
        trusted.stderr.contains("because its whole root"),
        "{trusted:?}"
    );
    for arguments in [
        &["run", "git"][..],
        &["workers"],
        &["runs"],
        &["status"],
        &["daemon"],
    ] {
        let refused = run(arguments).expect_code(3);
        assert!(refused.stderr.contains("workerctl init"), "{refused:?}");
    }
    run(&["-C", "nowhere", "skills"]).expect_code(3);
    assert_eq!(
        bed.git(&["status", "--porcelain", "--ignored", "-uall"]),
        before
    );
    let left = fs::read_dir(&bed.home).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, [".agents", ".gitconfig"]);
}
