//! Who a worker is: the `worker` map, or keys at the top level where people write it flat.

use super::ids::check_id;
use super::instances;
use super::keys::IDENTITY;
use super::report::Report;
use super::view::View;
use crate::model::Place;
use crate::model::config::Instance;
use crate::model::definition::Input;

/// Who a worker is.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) place: Place,
    /// Whether the id holds a placeholder.
    pub(crate) template: bool,
    /// Id of the template that it is made from.
    pub(crate) instance_of: Option<String>,
    /// What its skills take as inputs: the placeholders of that id.
    pub(crate) placeholders: Vec<Input>,
}

/// Reads a worker's identity, or that of an instance of it; `None` when an error was reported.
pub(crate) fn read(
    root: View<'_>,
    instance: Option<&Instance>,
    report: &mut Report,
) -> Option<Identity> {
    let wrapper = root.written("worker");
    if let Some(wrapper) = wrapper
        && !IDENTITY.is_map(wrapper, "worker", "a map with `id`", report)
    {
        return None;
    }
    let map = wrapper.unwrap_or(root);
    let text = |key: &str, report: &mut Report| {
        map.written(key)
            .and_then(|view| view.filled_text(key, report))
    };
    let id_key = if wrapper.is_some() || map.written("id").is_some() {
        "id"
    } else {
        "name"
    };
    let Some(view) = map.written(id_key) else {
        report.error(
            "worker-id-missing",
            wrapper.unwrap_or(root).place(),
            "the worker has no id".to_owned(),
            "add `worker: {id: my-worker}`; quote ids such as `null`",
        );
        return None;
    };
    let id = view.filled_text(id_key, report)?;
    let before = report.errors();
    check_id(&id, "worker", &view.place(), report);
    if wrapper.is_none() {
        report.warning(
            "worker-flat",
            view.key_place(),
            format!("the worker's keys are at the top level; `{id_key}` is used as its id"),
            "put them below `worker:`",
        );
    }
    let name = text("name", report).unwrap_or_else(|| id.clone());
    if wrapper.is_some() {
        check_conflict(root, &id, &name, report);
    }
    let template = instance.is_none() && id.contains('{');
    if template {
        report.note(
            "worker-template",
            view.place(),
            format!("`{id}` contains a placeholder, so this worker is a template, which is listed and checked but never run"),
            "to run it, list its instances in workerctl.yaml (`instances: {…}`), or copy it and give the copy an id without placeholders",
        );
    }
    let placeholders = instances::inputs(&id, instance);
    let told = |text: String| instances::told(&text, &placeholders);
    let identity = Identity {
        name: told(name),
        kind: text("type", report),
        version: text("version", report),
        description: text("description", report).map(told),
        place: view.place(),
        template,
        instance_of: instance.map(|_| id.clone()),
        id: instance.map_or(id, |instance| instance.id.clone()),
        placeholders,
    };
    (report.errors() == before).then_some(identity)
}

/// Keys at the top level must not name another worker than `worker` does.
fn check_conflict(root: View<'_>, id: &str, name: &str, report: &mut Report) {
    for key in ["id", "name"] {
        let Some(view) = root.written(key) else {
            continue;
        };
        let other = view.scalar_text().unwrap_or_default();
        if other != id && other != name {
            report.error(
                "worker-id-conflict",
                view.place(),
                format!("`worker` says `{id}`, the top level says `{other}`"),
                "keep one of them",
            );
        }
    }
}
