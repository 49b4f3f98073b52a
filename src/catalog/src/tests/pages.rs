//! The tables of keys in the documentation are those of the declarations.
//!
//! `WORKERCTL_WRITE_PAGES=1 cargo test -p workerctl-catalog pages` writes them.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Workspace, codes, show, yaml_to_json};
use crate::keys::{CONFIG, DefaultValue, Form, Key, Role, SKILL_FILE, Table, WORKER_FILE};
use crate::model::Config;

/// Before a table: `keys` of these maps, or all `values` of one with its inner maps; each may stand `below` a key.
const BEGINS: &str = "<!-- declared ";
const ENDS: &str = "<!-- end -->";

/// Reference pages with such tables.
const PAGES: [&str; 10] = [
    "worker.md",
    "skill.md",
    "inputs-outputs.md",
    "checks-retries.md",
    "sandbox.md",
    "schedule.md",
    "notifications.md",
    "models-agents.md",
    "skill-files.md",
    "configuration.md",
];

/// Every map of the definition files, by its name in the schemas.
pub(crate) fn tables() -> BTreeMap<&'static str, &'static Table> {
    fn add(form: Form, found: &mut BTreeMap<&'static str, &'static Table>) {
        match form {
            Form::Map(table) if !found.contains_key(table.name) => {
                found.insert(table.name, table);
                table.keys.iter().for_each(|key| add(key.form, found));
            }
            Form::Named(inner) | Form::List(inner) | Form::Filled(inner) => add(*inner, found),
            Form::AnyOf(forms) => forms.iter().for_each(|form| add(*form, found)),
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    for file in [&WORKER_FILE, &SKILL_FILE, &CONFIG] {
        add(Form::Map(file), &mut found);
    }
    found
}

fn row(page: &str, path: &str, key: &Key) -> String {
    let see = key.see.map(|(words, place)| {
        let place = place.strip_prefix(page).unwrap_or(place);
        format!("; see [{words}]({place})")
    });
    let default = match key.default.shown() {
        _ if key.required => "required".to_owned(),
        Some(default) => default,
        None => "–".to_owned(),
    };
    let (what, see) = (key.what, see.unwrap_or_default());
    format!("| `{path}` | {what}{see} | {default} |\n")
}

/// The rows that `keys A, B below b` or `values C` ask for.
fn rows(page: &str, asked: &str) -> String {
    let (kind, names) = asked.split_once(' ').expect("a kind and names");
    let mut text = "| key | means | default |\n|---|---|---|\n".to_owned();
    for name in names.split(", ") {
        let (name, above) = name.split_once(" below ").unwrap_or((name, ""));
        let table = tables()[name];
        let of_map = || table.keys.iter().map(|key| (key.name.to_owned(), key));
        let found: Vec<(String, &Key)> = match kind {
            "values" => table.paths(),
            _ => of_map().collect(),
        };
        let at = |path: &str| match above {
            "" => path.to_owned(),
            above => format!("{above}.{path}"),
        };
        let (kept, evaluated): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|(_, key)| key.role == Role::Kept);
        text.extend(
            evaluated
                .iter()
                .map(|(path, key)| row(page, &at(path), key)),
        );
        let kept: Vec<_> = kept
            .iter()
            .map(|(path, _)| format!("`{}`", at(path)))
            .collect();
        if !kept.is_empty() {
            text.extend([
                "| ",
                &kept.join(", "),
                " | kept and shown, not evaluated | – |\n",
            ]);
        }
    }
    text
}

/// The page with each table as it is declared.
fn rendered(name: &str, page: &str) -> String {
    let mut parts = page.split(BEGINS);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (asked, rest) = part.split_once(" -->").expect("the end of a mark");
        let (_, rest) = rest.split_once(ENDS).expect("the end of a table");
        text.extend([
            BEGINS,
            asked,
            " -->\n\n",
            &rows(name, asked),
            "\n",
            ENDS,
            rest,
        ]);
    }
    text
}

#[test]
fn pages_hold_the_tables_of_the_declarations() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for name in PAGES {
        let path = docs.join(name);
        let page = std::fs::read_to_string(&path).expect("a page");
        let rendered = rendered(name, &page);
        if std::env::var_os("WORKERCTL_WRITE_PAGES").is_some() {
            std::fs::write(&path, &rendered).expect("the page is written");
        } else {
            assert!(
                page == rendered,
                "{name}: write it with WORKERCTL_WRITE_PAGES=1"
            );
        }
    }
}

#[test]
fn every_key_that_is_evaluated_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let pages = PAGES.map(|name| std::fs::read_to_string(docs.join(name)).expect("a page"));
    for table in tables().into_values() {
        for key in table.keys.iter().filter(|key| key.role != Role::Kept) {
            let documented = pages.iter().any(|page| page.contains(key.name));
            assert!(documented, "{}.{}", table.name, key.name);
        }
    }
}

/// The defaults stand in the type of the configuration; what the tables tell of them is held to it.
#[test]
fn declared_defaults_of_the_configuration_are_those_that_hold() {
    let mut written = serde_json::json!({});
    for (path, key) in CONFIG.paths() {
        let DefaultValue::Value(value) = key.default else {
            continue;
        };
        let place = path.split('.').fold(&mut written, |map, key| &mut map[key]);
        *place = yaml_to_json(value);
    }
    let text = written.to_string();
    let catalog = Workspace::new(&[("workerctl.yaml", &text)]).load();
    assert_eq!(codes(&catalog), [""; 0], "{}", show(&catalog.problems));
    let origins = catalog.config.origins.clone();
    let expected = Config {
        origins,
        ..Config::default()
    };
    assert_eq!(catalog.config, expected);
}
