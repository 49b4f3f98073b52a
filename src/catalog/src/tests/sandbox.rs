//! `sandbox`: what is understood, and what is refused.

use super::*;
use crate::model::sandbox::{Level, NetworkChoice, Sandbox};

fn of_skill(worker: &str, skill: &str) -> Option<Sandbox> {
    within("", worker, skill)
}

fn within(configuration: &str, worker: &str, skill: &str) -> Option<Sandbox> {
    let yaml = format!(
        "worker: {{id: w}}\n{worker}skills:\n  - {{id: a, description: d, run: date{skill}}}\n"
    );
    let workspace = Workspace::of_worker(&yaml);
    workspace.write("workerctl.yaml", configuration.as_bytes());
    let catalog = load(workspace.path(), Options::default());
    assert!(
        catalog.problems.is_empty(),
        "{yaml}{}",
        show(&catalog.problems)
    );
    catalog.workers[0].skills[0].sandbox.clone()
}

#[test]
fn words_and_maps_are_walls_and_no_level_lowers_one_that_is_insisted_on() {
    assert_eq!(of_skill("", ""), Some(Sandbox::default()));
    assert_eq!(of_skill("", ", sandbox: auto"), Some(Sandbox::default()));
    let levels = [
        ("", "", "off", Level::Off),
        ("off", "", "", Level::Off),
        ("off", "auto", "", Level::Auto),
        ("off", "required", "auto", Level::Required),
        ("", "off", "required", Level::Required),
        ("", "auto", "off", Level::Off),
        ("required", "", "", Level::Required),
        ("required", "auto", "auto", Level::Required),
        ("private", "required", "auto", Level::Private),
        ("", "", "private", Level::Private),
        ("required", "", "{network: none}", Level::Required),
        ("off", "", "{network: none}", Level::Auto),
    ];
    let line = |level: &str, rest: &str| match level {
        "" => String::new(),
        _ => format!("sandbox: {level}{rest}"),
    };
    for (workspace, worker, skill, level) in levels {
        let skill = match skill {
            "" => String::new(),
            _ => format!(", sandbox: {skill}"),
        };
        let found = within(&line(workspace, "\n"), &line(worker, "\n"), &skill);
        let found = found.map_or(Level::Off, |found| found.level);
        assert_eq!(found, level, "{workspace:?} {worker:?} {skill:?}");
    }
    let required = of_skill("execution: {sandbox: required}\n", "").unwrap();
    assert_eq!(required.level, Level::Required);
    let inherited = within("sandbox: {write: [/srv/x], network: none}\n", "", "").unwrap();
    assert_eq!(inherited.write, ["/srv/x"]);
    assert_eq!(inherited.network, NetworkChoice::None);
    let both = of_skill(
        "sandbox: {write: /srv/w, network: {tcp: [53, 443]}}\n",
        ", sandbox: {level: required, write: [~/.cache/t, data/], reads: [/usr], network: {tcp: [443, 80]}, unix_sockets: true}",
    );
    let wanted = Sandbox {
        level: Level::Required,
        write: ["~/.cache/t", "data/", "/srv/w"]
            .map(str::to_owned)
            .to_vec(),
        reads: Some(vec!["/usr".to_owned()]),
        network: NetworkChoice::Tcp(vec![443]),
        unix_sockets: true,
    };
    assert_eq!(both, Some(wanted));
    let none = of_skill("sandbox: {network: none}\n", ", sandbox: {network: any}");
    assert_eq!(none.unwrap().network, NetworkChoice::None);
}

#[test]
fn what_is_never_granted_and_what_contradicts_is_refused() {
    for (line, code, hint) in [
        ("{write: [.git/hooks]}", "sandbox-grant", "/srv/backup"),
        ("{write: [workers/w]}", "sandbox-grant", "/srv/backup"),
        ("{write: .}", "sandbox-grant", "/srv/backup"),
        ("{write: [../other]}", "sandbox-grant", "/srv/backup"),
        ("{reads: [~other/x]}", "sandbox-grant", "/srv/backup"),
        ("{write: ['/srv/*']}", "sandbox-grant", "/srv/backup"),
        ("{level: loose}", "unknown-value", "`required`"),
        ("{network: tcp}", "unknown-value", "tcp: [53, 443]"),
        ("off", "sandbox-contradiction", "remove one"),
        (
            "{level: off, network: none}",
            "sandbox-contradiction",
            "the others",
        ),
        ("{nework: none}", "restriction-malformed", "`network`"),
        ("{write: [$HOME/x]}", "sandbox-grant", "/srv/backup"),
    ] {
        let yaml = format!(
            "worker: {{id: w}}\nsandbox: required\nskills:\n  - id: a\n    description: d\n    run: date\n    sandbox: {line}\n"
        );
        let catalog = load(Workspace::of_worker(&yaml).path(), Options::default());
        let found = catalog.problems.iter().find(|one| one.code == code);
        let found = found.unwrap_or_else(|| panic!("{line}: {}", show(&catalog.problems)));
        assert_eq!((found.severity, found.place.line), (ERROR, 7), "{line}");
        assert!(
            found.hint.as_ref().is_some_and(|text| text.contains(hint)),
            "{line}: {found:?}"
        );
        assert!(catalog.skills().next().is_none(), "{line}");
    }
}
