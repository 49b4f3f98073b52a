//! Mistakes of users who are new: each is an error or a warning at its place, with a remedy.

use super::*;

/// Adds lines to the keys of a skill with `run`; line 6 is the first of them.
pub(super) fn skill(lines: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills:\n  - id: a\n    description: d\n    mutating: true\n{lines}"
    )
}

#[test]
fn a_list_that_is_a_command_line_is_answered_with_a_text() {
    let run = |items: &str| skill(&format!("    run: {items}\n"));
    for (items, column, hint) in [
        (
            "[git ls-files > a.txt, wc -l a.txt]",
            11,
            "each command in a line: `git ls-files > a.txt`, `wc -l a.txt`",
        ),
        ("[git log, --oneline]", 11, "`run: [git, log, --oneline]`"),
    ] {
        check_worker(&run(items), ("wrong-type", ERROR, 6, column, hint));
    }
    for items in ["[git, log a b]", "[/opt/my program/x, a]"] {
        let catalog = Workspace::of_worker(&run(items)).load();
        assert_eq!(catalog.count(ERROR), 0, "{}", show(&catalog.problems));
    }
    let secret = skill("    run: date\n    env: [{name: A, secret: {command: [pass show a]}}]\n");
    check_worker(&secret, ("wrong-type", ERROR, 7, 39, "`[pass, show, a]`"));
    let shell = skill("    run: date\n    shell: git ls-files | wc -l\n");
    check_worker(
        &shell,
        ("unknown-value", ERROR, 7, 12, "write the command as `run`"),
    );
}

#[test]
fn a_map_instead_of_a_list_is_answered_with_an_item() {
    for (lines, (line, column), hint) in [
        (
            "    interface: {inputs: {suffix: {type: string, default: yaml}}}\n",
            (6, 25),
            "`- {name: suffix, type: string, default: yaml}`",
        ),
        (
            "    interface: {inputs: {suffix: string}}\n",
            (6, 25),
            "`- {name: suffix, type: string}`",
        ),
        (
            "    interface: {outputs: {report: {type: markdown}}}\n",
            (6, 26),
            "`- {name: report, type: markdown}`",
        ),
        (
            "    schedule: {morning: {cron: '@daily'}, noon: {cron: '@daily'}}\n",
            (6, 15),
            "`- {id: morning, cron: …}`",
        ),
        (
            "    env: {TOKEN: {credential: token}}\n",
            (6, 10),
            "`- {name: TOKEN, credential: token}`",
        ),
        ("    env: [{API_TOKEN: SECRET}]\n", (6, 11), "`- API_TOKEN`"),
        ("    env: [{credential: SECRET}]\n", (6, 11), "`- NAME`"),
    ] {
        let text = skill(&format!("{lines}    run: date\n"));
        let catalog = check_worker(&text, ("wrong-type", ERROR, line, column, hint));
        assert!(!show(&catalog.problems).contains("SECRET"));
    }
    let skills = "worker: {id: w}\nskills:\n  lines: {run: date}\n";
    check_worker(
        skills,
        ("wrong-type", ERROR, 3, 3, "`- {id: lines, run: date}`"),
    );
}

#[test]
fn an_expression_of_ci_systems_is_an_error_in_every_text() {
    for (lines, line, column, hint) in [
        (
            "    env:\n      TOKEN: ${{ secrets.TOKEN }}\n    run: date\n",
            7,
            14,
            "write `env: [TOKEN]`",
        ),
        (
            "    env: [{name: A, value: '${{ vars.A }}'}]\n    run: date\n",
            6,
            29,
            "`$NAME`",
        ),
        (
            "    cwd: ${{ github.workspace }}\n    run: date\n",
            6,
            10,
            "the value itself",
        ),
        (
            "    run: [echo, '${{ inputs.a }}']\n",
            6,
            18,
            "the value itself",
        ),
        (
            "    hooks: {post_commit: 'echo ${{ inputs.a }}'}\n    run: date\n",
            6,
            32,
            "`$NAME`",
        ),
    ] {
        check_worker(
            &skill(lines),
            ("foreign-expression", ERROR, line, column, hint),
        );
    }
}

#[test]
fn a_default_that_its_rules_refuse_is_an_error() {
    for (input, hint) in [
        ("type: number, min: 1, max: 52, default: 100", ""),
        ("type: number, integer: true, default: 1.5", ""),
        ("type: string, min_length: 3, default: ab", ""),
        ("type: string, max_length: 3, default: abcd", ""),
        ("type: string, pattern: '[a-z]+', default: AB", ""),
        ("type: path, default: ../..", ""),
        ("type: array, max_length: 1, default: [a, b]", ""),
        ("type: string, enum: [a, b], default: c", "`a`"),
    ] {
        let lines = format!("    interface: {{inputs: [{{name: n, {input}}}]}}\n    run: date\n");
        let column = lines.find("default: ").expect("a default") + "default: ".len() + 1;
        let column = u32::try_from(column).expect("a column");
        check_worker(
            &skill(&lines),
            ("default-not-allowed", ERROR, 6, column, hint),
        );
    }
}

#[test]
fn mistakes_of_yaml_are_found_at_their_line() {
    for (lines, line, column, hint) in [
        (
            "  - <<: *defaults\n    id: a\n    run: date\n",
            3,
            9,
            "`x-defaults: &defaults {timeout: 5m}`",
        ),
        (
            "  - id: a\n    run: *SECRET\n",
            4,
            10,
            "put the value in double quotes",
        ),
        ("  -id: a\n    run: date\n", 3, 3, "write `- id: …`"),
        (
            "  - id: b\n    run: date\n  -id: a\n    run: date\n",
            5,
            3,
            "write `- id: …`",
        ),
        ("  -id: a\n", 3, 3, "write `- id: …`"),
        ("  - id:a\n    run: date\n", 3, 5, "write `id: …`"),
        ("  - id: a\n     run: date\n", 4, 6, "in the column of `id`"),
        (
            "  - id: a\n    cwd: \"a\"\n     run: date\n",
            5,
            6,
            "in the column of `cwd`",
        ),
        ("  - id: a\n    run: echo a: b\n", 4, 16, "write `run: |`"),
        (
            "  - id: a\n    run: \"echo \"x\"\"\n    cwd: a\n",
            4,
            17,
            "write `\\\"`",
        ),
        (
            "  - id: a\n    run: |\n      cat <<EOF\nweeks \"{n}\" of the year\n      EOF\n",
            6,
            1,
            "indent it by at least 6 spaces",
        ),
        (
            "  - id: a\n    run: |\n      date\nSECRET\n    cwd: a\n",
            6,
            1,
            "indent it by at least 6 spaces",
        ),
    ] {
        let text = format!("worker: {{id: w}}\nskills:\n{lines}");
        let catalog = check_worker(&text, ("yaml-syntax", ERROR, line, column, hint));
        assert!(!show(&catalog.problems).contains("SECRET"));
    }
    let ended = "worker: {id: w}\nskills:\n  - id: a\n    run: |\n      date\nEOF\n";
    let shown = show(&Workspace::of_worker(ended).load().problems);
    let message = "this line ends the text of `run: |` in line 4";
    assert!(shown.contains(message), "{shown}");
    let merged = skill("    <<: *defaults\n    run: date\n");
    let repaired = format!("x-defaults: &defaults {{timeout: 5m}}\n{merged}");
    let catalog = Workspace::of_worker(&repaired).load();
    assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
}

#[test]
fn a_file_that_looks_like_a_worker_and_is_not_read_is_a_warning() {
    let worker = "worker: {id: w}\nskills: [{id: a, description: d, run: date}]\n";
    let unread = [
        ("workers/worker2.yaml", "workers/worker2/worker.yaml"),
        ("workers/tally.yml", "workers/tally/worker.yaml"),
        ("workers/extra/workers.yaml", "workers/extra/worker.yaml"),
        ("workers/w/worker3.yaml", "workers/worker3/worker.yaml"),
        ("workers/other/Worker.yaml", "workers/other/worker.yaml"),
    ];
    let read = [
        ("workers/w/worker.yaml", worker),
        ("workers/w/data.yaml", worker),
        ("workers/values.yaml", "a: 1\n"),
        ("workers/registry.yaml", "workers: []\n"),
    ];
    let files: Vec<_> = unread
        .iter()
        .map(|(path, _)| (*path, worker))
        .chain(read)
        .collect();
    let catalog = Workspace::new(&files).load();
    for (path, expected) in unread {
        let hint = format!("rename it to `{expected}`");
        expect(
            &catalog,
            path,
            &("worker-file-unread", WARNING, 0, 0, &hint),
        );
    }
    let count = codes(&catalog)
        .iter()
        .filter(|code| **code == "worker-file-unread")
        .count();
    assert_eq!(count, unread.len(), "{}", show(&catalog.problems));
}

#[test]
fn a_definition_in_the_wrong_directory_is_a_warning() {
    let worker = "worker: {id: w}\nskills: [{id: a, description: d, run: date}]\n";
    let skill = "---\nid: s\nrun: date\n---\n";
    let files = [
        ("workers/w/worker.yaml", worker, ""),
        ("workerctl.yml", "timezone: UTC\n", "`workerctl.yaml`"),
        (
            "worker/b/worker.yaml",
            worker,
            "move it to `workers/b/worker.yaml`",
        ),
        (
            "workers/w/skill/s.md",
            skill,
            "move it to `workers/w/skills/s.md`",
        ),
        (
            "workers/w/skill/t/SKILL.md",
            skill,
            "move it to `workers/w/skills/t/SKILL.md`",
        ),
        ("workers/w/skill/README.md", "# Text\n", ""),
        (
            "workers/w/skills/links.yaml",
            "id: links\nrun: date\n",
            "rename it to `workers/w/skills/links.md`",
        ),
        ("workers/w/skills/data.yaml", "a: 1\n", ""),
    ];
    let pairs: Vec<_> = files.iter().map(|(path, text, _)| (*path, *text)).collect();
    let catalog = Workspace::new(&pairs).load();
    let unread = files.iter().filter(|(.., hint)| !hint.is_empty());
    for (path, _, hint) in unread.clone() {
        expect(&catalog, path, &("worker-file-unread", WARNING, 0, 0, hint));
    }
    assert_eq!(
        catalog.problems.len(),
        unread.count(),
        "{}",
        show(&catalog.problems)
    );
}

#[test]
fn a_missing_file_of_a_notification_is_a_warning() {
    let worker = "worker: {id: w}\nnotify: {on_failure: ./tell now}\nskills:\n  - {id: a, description: d, run: date, schedule: {cron: '@daily', on_missed: ./tell}}\n";
    let files = [
        (
            "workerctl.yaml",
            "notify:\n  on_recovery: {command: ./tell}\n",
        ),
        ("workers/w/worker.yaml", worker),
    ];
    let workspace = Workspace::new(&files);
    let catalog = workspace.load();
    for (path, line, column) in [
        (files[0].0, 2, 26),
        (files[1].0, 2, 22),
        (files[1].0, 4, 78),
    ] {
        let hint = "relative to the workspace";
        expect(
            &catalog,
            path,
            &("command-file-missing", WARNING, line, column, hint),
        );
    }
    workspace.write("tell", b"");
    assert!(workspace.load().problems.is_empty());
}

#[test]
fn a_near_miss_in_an_inner_map_wins_over_a_key_of_another_place() {
    let skill = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    KEY\n";
    let top = "worker: {id: w}\nKEY\nskills: [{id: a, description: d, run: date}]\n";
    for (text, map, code, column, hint) in [
        (
            skill,
            "interface: {input: []}",
            "key-misspelled",
            17,
            "did you mean `inputs`?",
        ),
        (
            skill,
            "interface: {output: []}",
            "key-misspelled",
            17,
            "did you mean `outputs`?",
        ),
        (
            skill,
            "interface: {params: []}",
            "key-misspelled",
            17,
            "did you mean `inputs`?",
        ),
        (
            skill,
            "sandbox: {netwrok: none}",
            "restriction-malformed",
            15,
            "did you mean `network`?",
        ),
        (
            skill,
            "limits: {grace: 5s}",
            "restriction-malformed",
            14,
            "`grace` belongs in workerctl.yaml",
        ),
        (
            top,
            "notify: {on_fail: date}",
            "key-misspelled",
            10,
            "did you mean `on_failure`?",
        ),
        (
            top,
            "notify: {on_error: date}",
            "key-misspelled",
            10,
            "did you mean `on_failure`?",
        ),
        (
            top,
            "notify: {failure: date}",
            "key-misspelled",
            10,
            "did you mean `on_failure`?",
        ),
        (
            top,
            "notify: {on_success: date}",
            "key-foreign",
            10,
            "write `on_recovery: date`",
        ),
    ] {
        let line = if text == top { 2 } else { 6 };
        check_worker(&text.replace("KEY", map), (code, ERROR, line, column, hint));
    }
}

#[test]
fn commands_of_several_lines_that_yaml_joins_are_a_warning() {
    for (run, line) in [
        ("run: >\n      git ls-files > a.txt\n      echo b\n", 8),
        ("run: >-\n      cd a\n\n      cd b\n      X=1 cd c\n", 10),
        ("run: git ls-files\n      echo b\n", 7),
        ("wake: >\n      cd a\n      cd b\n    run: date\n", 8),
        (
            "run: date\n    verification:\n      - command: >\n          cd a\n          cd b\n",
            10,
        ),
    ] {
        let column = if run.contains("verification") { 11 } else { 7 };
        check_worker(
            &skill(&format!("    {run}")),
            ("run-folded", WARNING, line, column, "`|`"),
        );
    }
    for run in [
        "run: |\n      cd a\n      cd b\n",
        "run: >\n      cd a &&\n      cd b\n",
        "run: >\n      printf '%s'\n      --flag\n      a.txt\n",
        "run: >\n      printf '%s'\n        echo\n",
        "run: >\n      cd a\n\n      cd b\n",
        "run: \"cd a\n      cd b\"\n",
    ] {
        let catalog = Workspace::of_worker(&skill(&format!("    {run}"))).load();
        assert!(
            catalog.problems.is_empty(),
            "{run}: {}",
            show(&catalog.problems)
        );
    }
}

#[test]
fn a_second_skill_without_its_dash_is_one_error() {
    let text = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    id: b\n    description: d\n    run: date\n";
    let hint = "write `- ` before this `id`";
    let catalog = check_worker(text, ("duplicate-key", ERROR, 6, 5, hint));
    assert_eq!(catalog.problems.len(), 1, "{}", show(&catalog.problems));
}

#[test]
fn a_missing_skill_file_is_one_warning_at_its_path() {
    let text = "worker: {id: w}\nskills:\n  - id: a\n    file: skills/none.md\n";
    let hint = "create the file";
    let catalog = check_worker(text, ("skill-file-missing", WARNING, 4, 11, hint));
    assert_eq!(catalog.problems.len(), 1, "{}", show(&catalog.problems));
}

#[test]
fn a_date_that_does_not_exist_is_answered_with_the_length_of_its_month() {
    for (at, code, hint) in [
        (
            "2027-02-30T09:00",
            "schedule-at",
            "February 2027 has 28 days",
        ),
        ("2027-04-31", "schedule-at", "April 2027 has 30 days"),
        ("2027-11-01", "schedule-at", "`at: 2027-11-01T09:00`"),
    ] {
        let text = skill(&format!("    run: date\n    schedule: {{at: {at}}}\n"));
        check_worker(&text, (code, ERROR, 7, 20, hint));
    }
    for (time, is_error) in [("02:30", true), ("03:30", false)] {
        let schedule =
            format!("{{at: 2027-03-28T{time}, timezone: Europe/Berlin, dst: {{gap: skip}}}}");
        let text = skill(&format!("    run: date\n    schedule: {schedule}\n"));
        let catalog = Workspace::of_worker(&text).load();
        assert_eq!(
            codes(&catalog).contains(&"schedule-never"),
            is_error,
            "{}",
            show(&catalog.problems)
        );
    }
}

#[test]
fn a_value_that_is_not_known_is_named() {
    for (line, said) in [
        ("sandbox: true", "write `sandbox: required`"),
        ("sandbox: strict", "`strict` is not a level of `sandbox`"),
        ("sandbox: {network: [443]}", "write `network: {tcp: [443]}`"),
        ("retention: {runs: 12h}", "at least 2 days"),
        (
            "models: {default: {provider: claude, model: x}}",
            "did you mean `anthropic`?",
        ),
    ] {
        let shown = show(&Workspace::new(&[("workerctl.yaml", line)]).load().problems);
        assert!(shown.contains(said), "{line}: {shown}");
    }
}

#[test]
fn a_time_limit_without_a_value_is_an_error() {
    let text = skill("    run: date\n    timeout:\n");
    check_worker(&text, ("blank", ERROR, 7, 5, "write `timeout: 15m`"));
    let explicit = Workspace::of_worker(&skill("    run: date\n    timeout: ~\n")).load();
    assert!(explicit.problems.is_empty(), "{}", show(&explicit.problems));
}
