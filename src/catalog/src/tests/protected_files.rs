//! `protected_files`, and outputs that could never be written.

use super::{Workspace, codes, show};

#[test]
fn patterns_are_read_and_those_that_mean_nothing_are_errors() {
    let text = "protected_files: ['*.tf', '!CLAUDE.md']\n";
    let catalog = Workspace::new(&[("workerctl.yaml", text)]).load();
    assert_eq!(codes(&catalog), [""; 0], "{}", show(&catalog.problems));
    let matcher = catalog.config.protected_files.matcher();
    assert!(matcher.protect("a/x.tf") && matcher.protect("AGENTS.md"));
    assert!(!matcher.protect("CLAUDE.md"));
    for (text, code) in [
        ("protected_files: ['a**']", "protected-pattern"),
        ("protected_files: ['../x']", "protected-pattern"),
        ("protected_files: ['[ab]']", "protected-pattern"),
        ("protected_files: AGENTS.md", "wrong-type"),
        ("protected_file: [AGENTS.md]", "key-misspelled"),
    ] {
        let catalog = Workspace::new(&[("workerctl.yaml", text)]).load();
        let first = &catalog.problems[0];
        assert!(
            first.code.contains(code),
            "{text}: {}",
            show(&catalog.problems)
        );
        assert_eq!(first.place.line, 1, "{text}");
        assert!(first.hint.is_some(), "{text}");
    }
}

#[test]
fn an_output_that_nobody_approves_is_not_written_to_a_protected_file() {
    let skill = |more: &str, destination: &str| {
        let text = format!(
            "worker: {{id: w, name: W}}\nskills:\n  - {{id: a, description: d, run: 'true'{more}, interface: {{inputs: [{{name: n, type: string}}], \
             outputs: [{{name: o, destination: '{destination}'}}]}}}}\n"
        );
        let catalog = Workspace::new(&[("workers/w/worker.yaml", &text)]).load();
        let found = catalog
            .problems
            .iter()
            .find(|one| one.code == "destination-protected");
        found.map(|problem| problem.place.line)
    };
    for destination in [
        "AGENTS.md",
        "docs/claude.md",
        ".claude/{n}.md",
        "workers/x/{n}",
        "workerctl.yaml",
        "./workspace/skills/x.md",
    ] {
        assert_eq!(skill("", destination), Some(3), "{destination}");
        assert_eq!(
            skill(", mutating: true", destination),
            Some(3),
            "{destination}"
        );
        for more in [
            ", sandbox: off",
            ", mutating: true, approval_required: true",
        ] {
            assert_eq!(skill(more, destination), None, "{more} {destination}");
        }
    }
    for destination in ["report.md", "{n}/AGENTS.md", "docs/{n}.md"] {
        assert_eq!(skill("", destination), None, "{destination}");
    }
}
