//! `instances` of workerctl.yaml.

use super::contract::INLINE;
use super::*;
use crate::model::{Skill, Worker};
use crate::{Lookup, reload};

const TWO: &str = "instances:\n  cfo-{company}:\n    - {company: acme}\n    - {company: globex}\n";

const CONFIG: &str = "workerctl.yaml";
const TEMPLATE: &str = "workers/cfo/worker.yaml";

fn workspace(config: &str, yaml: &str) -> Workspace {
    Workspace::new(&[(CONFIG, config), (TEMPLATE, yaml)])
}

/// A template with one skill that has these keys besides.
fn with_skill(keys: &str) -> String {
    format!("worker: {{id: \"cfo-{{company}}\"}}\nskills:\n- {{id: s, description: d, {keys}}}\n")
}

fn ids(catalog: &Catalog) -> Vec<&str> {
    catalog.workers.iter().map(|one| one.id.as_str()).collect()
}

fn worker<'c>(catalog: &'c Catalog, id: &str) -> &'c Worker {
    catalog.worker(id).unwrap()
}

fn skill<'c>(catalog: &'c Catalog, id: &str) -> &'c Skill {
    &worker(catalog, id).skills[0]
}

#[test]
fn each_item_is_a_worker_of_its_own_and_the_template_stays_one() {
    let catalog = workspace(TWO, INLINE).load();
    assert_eq!(ids(&catalog), ["cfo-acme", "cfo-globex", "cfo-{company}"]);
    assert_eq!(
        codes(&catalog),
        ["worker-template", "no-executor"],
        "{}",
        show(&catalog.problems)
    );
    let acme = worker(&catalog, "cfo-acme");
    assert_eq!(acme.instance_of.as_deref(), Some("cfo-{company}"));
    assert_eq!((acme.template, acme.name.as_str()), (false, "cfo-acme"));
    assert_eq!(&*acme.place.path, "workers/cfo/worker.yaml");
    let mrr = skill(&catalog, "cfo-acme");
    assert_eq!(mrr.address.to_string(), "cfo-acme/mrr");
    let codes: Vec<&str> = mrr.unavailable.iter().map(|one| &*one.code).collect();
    assert_eq!(codes, ["no-executor"]);
    let company = &mrr.inputs[1];
    assert_eq!(company.name, "company");
    assert_eq!(company.default, Some("acme".into()));
    assert_eq!(company.allowed, ["acme"]);
    let template = worker(&catalog, "cfo-{company}");
    assert!(template.template && template.instance_of.is_none());
    let unfilled = &template.skills[0].inputs[1];
    assert!(
        unfilled.required && unfilled.default.is_none(),
        "{unfilled:?}"
    );
    assert_eq!(
        catalog.config.origins["instances.cfo-{company}"],
        "workerctl.yaml:2"
    );
}

#[test]
fn names_for_people_hold_the_values_and_foreign_braces_stay() {
    let yaml = "worker: {id: \"{a}-{b-c}\", name: \"{a} of {other}\", description: \"for {b-c} {\"}\nskills: [{id: s, name: \"s {a}\", description: \"d {b-c}{a}\", run: 'true'}]\n";
    let config = "instances: {\"{a}-{b-c}\": [{a: 1, b-c: x}]}\n";
    let catalog = workspace(config, yaml).load();
    let made = worker(&catalog, "1-x");
    assert_eq!(made.name, "1 of {other}");
    assert_eq!(made.description.as_deref(), Some("for x {"));
    assert_eq!(
        (&*made.skills[0].name, &*made.skills[0].description),
        ("s 1", "d x1")
    );
}

#[test]
fn a_bare_name_is_that_of_instances() {
    let one = "instances: {\"cfo-{company}\": [{company: acme}]}\n";
    let found = |config: &str, name: &str| workspace(config, INLINE).load().find(name);
    for (config, name, expected) in [
        (one, "mrr", "cfo-acme/mrr"),
        (one, "cfo-{company}/mrr", "cfo-{company}/mrr"),
        ("", "mrr", "cfo-{company}/mrr"),
    ] {
        let Lookup::Found(_, skill) = found(config, name) else {
            panic!("{name}: {:?}", found(config, name));
        };
        assert_eq!(skill.address.to_string(), expected, "{config}");
    }
    let both = ["cfo-acme/mrr", "cfo-globex/mrr"].map(str::to_owned);
    assert_eq!(found(TWO, "mrr"), Lookup::Ambiguous(both.to_vec()));
}

#[test]
fn schedules_are_those_of_each_instance() {
    let yaml = with_skill("schedule: '@daily', run: 'true'");
    let catalog = workspace(TWO, &yaml).load();
    let ids: Vec<&str> = catalog.schedules.iter().map(|one| &*one.id).collect();
    assert_eq!(ids, ["cfo-acme/s", "cfo-globex/s", "cfo-{company}/s"]);
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
}

/// What `instances` is; the code, the column and a part of the hint; and a part of the message.
const WRONG: &str = r#"
[a] | wrong-type | 12 | | `instances` must be
{cfo: [{company: a}]} | instances-template | 13 | name a worker | `cfo` is no id with placeholders
{"cfo-{}": [{company: a}]} | instances-template | 13 | name a worker | `cfo-{}` is no id
{"cfo-{company}": {company: a}} | wrong-type | 30 | | a list of maps with `company`
{"cfo-{company}": [acme]} | wrong-type | 31 | | a map with `company`
{"cfo-{company}": [{}]} | instances-placeholder | 31 | add `company: …` | `company` of `cfo-{company}` has no value
{"cfo-{company}": [{company: a, year: 1}]} | instances-placeholder | 44 | its placeholders are `company` | `year` is no placeholder of `cfo-{company}`
{"cfo-{company}": [{company: [a]}]} | wrong-type | 41 | | `company` must be text
{"cfo-{company}": [{company: ../x}]} | id-invalid | 31 | lower-case letters | the worker's id is refused
{"cfo-{company}": [{company: "{x}"}]} | id-invalid | 31 | without braces | `cfo-{x}` still holds a placeholder
{"cto-{company}": [{company: a}]} | instances-template | 31 | did you mean `cfo-{company}`? | no worker has that id
"#;

#[test]
fn what_is_wrong_with_instances_is_told_with_its_place() {
    for row in WRONG.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [value, code, column, hint, message] = cells[..] else {
            panic!("{row}");
        };
        let catalog = workspace(&format!("instances: {value}"), INLINE).load();
        let column = column.parse().unwrap();
        expect(&catalog, CONFIG, &(code, ERROR, 1, column, hint));
        let told = show(&catalog.problems);
        assert!(told.contains(message), "{row}: {told}");
        assert_eq!(ids(&catalog), ["cfo-{company}"], "{row}");
    }
    let many = vec!["{company: a}"; 101].join(", ");
    let config = format!("instances: {{\"cfo-{{company}}\": [{many}]}}");
    let catalog = workspace(&config, INLINE).load();
    expect(&catalog, CONFIG, &("too-many", ERROR, 1, 30, "keep fewer"));
}

#[test]
fn an_id_that_is_taken_rejects_both_and_says_where() {
    let workspace = workspace(TWO, INLINE);
    workspace.write(
        "workers/acme/worker.yaml",
        b"worker: {id: CFO-acme}\nskills: [{id: s, description: d, run: 'true'}]\n",
    );
    let catalog = workspace.load();
    assert_eq!(ids(&catalog), ["cfo-globex", "cfo-{company}"]);
    let twice = ("worker-duplicate", ERROR, 3, 7, "its own id");
    expect(&catalog, CONFIG, &twice);
    let told = show(&catalog.problems);
    assert!(
        told.contains("also defined at `workerctl.yaml:3:7`"),
        "{told}"
    );
    let again = format!("{TWO}    - {{company: acme}}\n");
    let catalog = super::instances::workspace(&again, INLINE).load();
    expect(&catalog, CONFIG, &("worker-duplicate", ERROR, 5, 7, ""));
}

#[test]
fn an_input_of_the_same_name_rejects_the_skill_of_the_instance() {
    let yaml = with_skill("run: 'true', interface: {inputs: [{name: company}]}");
    let catalog = workspace(TWO, &yaml).load();
    let clash = ("instances-input", ERROR, 3, 68, "rename the input");
    expect(&catalog, TEMPLATE, &clash);
    assert!(worker(&catalog, "cfo-acme").skills.is_empty());
    assert_eq!(worker(&catalog, "cfo-{company}").skills.len(), 1);
    for name in ["cfo-acme/s", "cfo-globex/s"] {
        let Lookup::Rejected(_, why) = catalog.find(name) else {
            panic!("{name}: {:?}", catalog.find(name));
        };
        assert_eq!(why[0].code, "instances-input", "{name}");
    }
    let alone = workspace("", &yaml).load();
    assert!(!alone.has_errors(), "{}", show(&alone.problems));
}

#[test]
fn a_schema_of_the_input_has_no_room_for_placeholders() {
    let yaml = with_skill("instructions: Do it., input_schema: {type: object}");
    let catalog = workspace(TWO, &yaml).load();
    let schema = (
        "instances-input",
        ERROR,
        3,
        49,
        "`interface: {inputs: […]}`",
    );
    expect(&catalog, TEMPLATE, &schema);
}

#[test]
fn a_template_that_breaks_leaves_its_instances_as_they_were() {
    let workspace = workspace(TWO, INLINE);
    let before = workspace.load();
    workspace.write(TEMPLATE, b"worker: {id: [\n");
    let broken = reload(&before, Options::default());
    assert_eq!(ids(&broken), ["cfo-acme", "cfo-globex", "cfo-{company}"]);
    let told = show(&broken.problems);
    assert!(!told.contains("instances-template"), "{told}");
    // One that is no longer listed goes, broken or not.
    workspace.write(CONFIG, &TWO.as_bytes()[..TWO.rfind("    -").unwrap()]);
    let fewer = reload(&broken, Options::default());
    assert_eq!(ids(&fewer), ["cfo-acme", "cfo-{company}"]);
    workspace.write(TEMPLATE, INLINE.replace("mrr", "arr").as_bytes());
    let repaired = reload(&fewer, Options::default());
    assert_eq!(skill(&repaired, "cfo-acme").address.skill, "arr");
    assert!(!repaired.has_errors(), "{}", show(&repaired.problems));
    // A value of the wrong kind leaves the last good list.
    workspace.write(CONFIG, b"instances: {\"cfo-{company}\": [x]}\n");
    let slip = reload(&repaired, Options::default());
    assert_eq!(ids(&slip), ["cfo-acme", "cfo-{company}"]);
}

#[test]
fn a_broken_skill_keeps_its_last_good_definition_in_each_instance() {
    let page = "---\nskill: {id: s, description: d}\n---\nDo it.\n";
    let workspace = Workspace::new(&[
        (CONFIG, TWO),
        (TEMPLATE, "worker: {id: \"cfo-{company}\"}\n"),
        ("workers/cfo/skills/s.md", page),
    ]);
    let before = workspace.load();
    workspace.write("workers/cfo/skills/s.md", b"---\nskill: {id: [\n---\n");
    let broken = reload(&before, Options::default());
    for id in ["cfo-acme", "cfo-globex", "cfo-{company}"] {
        assert_eq!(skill(&broken, id).address.worker, id);
    }
}
