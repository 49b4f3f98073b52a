//! Mistakes of users who are new: each is an error or a warning at its place, with a remedy.

use super::*;

/// Adds lines to the keys of a skill with `run`; line 6 is the first of them.
fn skill(lines: &str) -> String {
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
