//! `limits`: which level counts, and what is refused.

use super::*;
use crate::model::ResourceLimits;

#[test]
fn of_each_key_the_innermost_level_counts() {
    let workspace = Workspace::of_worker(
        "worker: {id: w}\nlimits: {processes: 20}\nskills:\n  - {id: a, description: d, run: date}\n  \
         - {id: b, description: d, run: date, limits: {processes: 5, written: 1GiB}}\n",
    );
    workspace.write("workerctl.yaml", b"limits:\n  written: 2MiB\n");
    let catalog = load(workspace.path(), Options::default());
    assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
    let limits = |processes, written_bytes| ResourceLimits {
        processes,
        written_bytes,
    };
    assert_eq!(catalog.config.limits, limits(1_000, 2 << 20));
    let origins = &catalog.config.origins;
    assert_eq!(origins["limits.written"], "workerctl.yaml:2");
    assert_eq!(origins["limits.processes"], "default");
    let skills = &catalog.workers[0].skills;
    assert_eq!(skills[0].limits, limits(20, 2 << 20));
    assert_eq!(skills[1].limits, limits(5, 1 << 30));
    assert_eq!(ResourceLimits::default(), limits(1_000, 32 << 30));
}

#[test]
fn what_limits_nothing_that_is_known_is_refused_with_its_place() {
    for (text, code, hint) in [
        ("processes: 0", "out-of-range", "from 1 to"),
        ("processes: -1", "out-of-range", "from 1 to"),
        ("processes: 4194305", "out-of-range", "from 1 to"),
        ("processes: many", "wrong-type", ""),
        ("written: 0", "out-of-range", "`512MiB`"),
        ("written: 1023", "out-of-range", "`512MiB`"),
        ("written: 1025TiB", "out-of-range", "`512MiB`"),
        ("written: -1", "size-invalid", "`512MiB`"),
        ("written: 1.5GiB", "size-invalid", "`512MiB`"),
        ("written: [1GiB]", "wrong-type", ""),
        ("process: 5", "restriction-malformed", "`processes`"),
        ("memory: 5", "restriction-malformed", "`processes`"),
    ] {
        let skill = format!(
            "worker: {{id: w}}\nskills:\n  - id: a\n    description: d\n    run: date\n    limits:\n      {text}\n"
        );
        let worker = format!(
            "worker: {{id: w}}\nskills: [{{id: a, description: d, run: date}}]\n\n\n\nlimits:\n  {text}\n"
        );
        for yaml in [skill, worker] {
            let catalog = load(Workspace::of_worker(&yaml).path(), Options::default());
            let found = catalog.problems.iter().find(|one| one.code == code);
            let found = found.unwrap_or_else(|| panic!("{text}: {}", show(&catalog.problems)));
            assert_eq!((found.severity, found.place.line), (ERROR, 7), "{text}");
            let said = found.hint.clone().unwrap_or_default();
            assert!(said.contains(hint), "{text}: {said}");
            assert!(catalog.skills().next().is_none(), "{text}");
        }
        let workspace = Workspace::of_worker("worker: {id: w}\n");
        workspace.write("workerctl.yaml", format!("limits:\n  {text}\n").as_bytes());
        let catalog = load(workspace.path(), Options::default());
        let mut own = catalog.problems.iter().filter(|one| one.code == code);
        assert!(own.any(|one| one.place.line == 2), "{text}");
        assert_eq!(catalog.config.limits, ResourceLimits::default(), "{text}");
    }
    let yaml = "worker: {id: w}\nlimits: 5\nskills: [{id: a, description: d, run: date}]\n";
    check_worker(yaml, ("wrong-type", ERROR, 2, 9, "a map such as"));
}
