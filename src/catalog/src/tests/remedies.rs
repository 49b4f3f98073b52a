//! Remedies of problems: what to write instead of what people try first.

use super::{ERROR, WARNING, Workspace, check_worker, expect};

fn scheduled(schedule: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills: [{{id: a, description: d, run: date}}]\nschedule: {schedule}\n"
    )
}

#[test]
fn abbreviations_of_zones_are_answered_with_a_zone_and_never_with_another_abbreviation() {
    for (zone, hint) in [
        ("PST", "did you mean `America/Los_Angeles`?"),
        ("edt", "did you mean `America/New_York`?"),
        ("CST", "did you mean `America/Chicago`?"),
        ("BST", "did you mean `Europe/London`?"),
        ("IST", "did you mean `Asia/Kolkata`?"),
        ("JST", "did you mean `Asia/Tokyo`?"),
        ("XST", "write an IANA name"),
        ("Europe/Berln", "did you mean `Europe/Berlin`?"),
    ] {
        let text = scheduled(&format!("{{cron: '@daily', timezone: {zone}}}"));
        check_worker(&text, ("timezone-unknown", ERROR, 3, 38, hint));
    }
}

#[test]
fn a_nickname_without_its_sign_is_answered_with_it() {
    for name in ["daily", "hourly", "weekly", "monthly", "yearly"] {
        let text = scheduled(name);
        let hint = format!("write `@{name}`");
        let catalog = check_worker(&text, ("schedule-expression", ERROR, 3, 11, &hint));
        let shown = super::show(&catalog.problems);
        let said = format!("a cron expression has five fields, `{name}` has 1");
        assert!(shown.contains(&said), "{shown}");
    }
}

#[test]
fn a_missing_script_is_to_be_created() {
    let text = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: {script: a.sh}}\n";
    let hint = "create it, or correct the path, which is relative to worker.yaml";
    check_worker(text, ("file-missing", WARNING, 3, 43, hint));
}

#[test]
fn a_missing_first_line_of_a_frontmatter_is_an_error_that_says_so() {
    let path = ".claude/skills/a/SKILL.md";
    let keys = "name: a\ndescription: >\n  One\nallowed-tools:\n- Read\n---\n\n# A\n\nDo it.\n";
    let catalog = Workspace::new(&[(path, keys)]).load();
    expect(
        &catalog,
        path,
        &(
            "no-frontmatter",
            ERROR,
            1,
            1,
            "begin the file with a line `---`",
        ),
    );
    let prose = "name: a\nDo this first.\n\n---\n\nThen that.\n";
    let catalog = Workspace::new(&[(path, prose)]).load();
    expect(
        &catalog,
        path,
        &(
            "no-frontmatter",
            WARNING,
            1,
            1,
            "begin it with the lines `---`",
        ),
    );
}

#[test]
fn a_misspelt_tool_is_answered_with_the_tool() {
    for (tool, meant) in [
        ("Raed", "Read"),
        ("WebSerch", "WebSearch"),
        ("Bsh(git:*)", "Bash"),
        ("read_fle", "read_file"),
    ] {
        let text = format!(
            "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date, allowed-tools: [\"{tool}\"]}}\n"
        );
        let hint = format!("did you mean `{meant}`?");
        check_worker(&text, ("restriction-malformed", ERROR, 3, 55, &hint));
    }
}
