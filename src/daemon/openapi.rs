//! The OpenAPI document, made from the types that are read and written.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::json_schema;
use serde_json::{Map, Value, json};

use super::answer::{Nothing, VersionReply};
use super::operation::Operation;
use crate::model::Diagnostic;
use crate::protocol::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, DenyRequest, Discarded, Landed,
    LogLine, LogsQuery, PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered, ResolveRequest,
    ResumeRequest, RunDetail, RunSummary, RunsQuery, ScheduleView, SchedulesQuery, SlotView,
    SlotsQuery, Status, SubmitRequest, Submitted, TriggerRequest, WatchEvent, WorkerView,
};

/// Statuses that any request may be answered with, and what they mean.
const REFUSALS: [(&str, &str); 14] = [
    ("400", "the request is wrong"),
    (
        "403",
        "it may not start: unavailable or denied; or the asker has not the role that it needs",
    ),
    ("404", "nothing of that name"),
    ("405", "this path does not take this method"),
    ("408", "the body did not arrive in time"),
    ("409", "someone else holds it, or it is too late"),
    ("413", "the body is too large"),
    ("415", "the body is not JSON"),
    ("422", "a definition or the configuration is wrong"),
    ("431", "the head is too large"),
    ("500", "our own fault or the machine's"),
    (
        "503",
        "refused for now; the same request can succeed after `Retry-After` seconds",
    ),
    (
        "504",
        "it did not end in time; what it asked for may still happen",
    ),
    ("507", "no space is left for the store"),
];

/// The document of this version.
pub fn document() -> Value {
    // OpenAPI 3.1 takes JSON Schema of 2020-12 as it is.
    let settings = || {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings
    };
    // Requests are described as they are read, replies as they are written; no type is both.
    let mut requests = settings().for_deserialize().into_generator();
    let mut replies = settings().for_serialize().into_generator();
    let refusal = replies.subschema_for::<Diagnostic>();
    let mut paths = Map::new();
    for operation in Operation::ALL {
        let described = describe(operation, &mut requests, &mut replies, &json!(refusal));
        let path = paths
            .entry(operation.path().to_owned())
            .or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method().as_str().to_ascii_lowercase(), described);
        }
    }
    let mut schemas = requests.take_definitions(true);
    schemas.extend(replies.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "workerctl",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Control of an engine over its Unix socket. Unknown fields are refused in requests; \
                readers of replies must ignore fields that they do not know. Every connection carries one request; \
                heard are the engine's own user, root, and those who have a role. `x-role` says which role an operation needs.",
            "license": {"name": "MIT OR Apache-2.0"}
        },
        "servers": [{"url": "/", "description": "HTTP/1.1 over the Unix socket"}],
        "paths": paths,
        "components": {"schemas": schemas}
    })
}

fn describe(
    operation: Operation,
    requests: &mut SchemaGenerator,
    replies: &mut SchemaGenerator,
    refusal: &Value,
) -> Value {
    let mut parameters = Vec::new();
    if operation.names_run() {
        parameters.push(json!({
            "name": "run", "in": "path", "required": true,
            "description": "A run's id, or a unique prefix or suffix of it.",
            "schema": {"type": "string", "pattern": "^[0-9A-Za-z]{1,26}$"}
        }));
    }
    match operation {
        Operation::ListRuns => parameters.extend(in_query::<RunsQuery>(requests)),
        Operation::Schedules => parameters.extend(in_query::<SchedulesQuery>(requests)),
        Operation::Slots => parameters.extend(in_query::<SlotsQuery>(requests)),
        Operation::Backfill => parameters.extend(in_query::<BackfillQuery>(requests)),
        Operation::Logs => parameters.extend(in_query::<LogsQuery>(requests)),
        Operation::SubmitRun => parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same key within 24 h answers the same run.",
            "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"}
        })),
        Operation::Events => parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "Number of the first line that has not been told yet; 18446744073709551615 for no lines at all.",
            "schema": {"type": "integer", "minimum": 0}
        })),
        _ => {}
    }
    let mut responses = successes(operation, replies);
    for (status, meaning) in REFUSALS {
        responses.insert(
            status.to_owned(),
            json!({
                "description": meaning,
                "content": {"application/json": {"schema": refusal}}
            }),
        );
    }
    let mut described = json!({
        "operationId": operation.id(),
        "summary": operation.summary(),
        "x-role": operation.role().name(),
        "parameters": parameters,
        "responses": responses
    });
    if let (Some((schema, required)), Some(described)) =
        (request_body(operation, requests), described.as_object_mut())
    {
        described.insert(
            "requestBody".to_owned(),
            json!({"required": required, "content": {"application/json": {"schema": schema}}}),
        );
    }
    described
}

fn request_body(operation: Operation, requests: &mut SchemaGenerator) -> Option<(Value, bool)> {
    Some(match operation {
        Operation::SubmitRun | Operation::Render => {
            (json!(requests.subschema_for::<SubmitRequest>()), true)
        }
        Operation::PauseSchedule => (json!(requests.subschema_for::<PauseRequest>()), true),
        Operation::ResumeSchedule => (json!(requests.subschema_for::<ResumeRequest>()), true),
        Operation::TriggerSchedule => (json!(requests.subschema_for::<TriggerRequest>()), true),
        Operation::Probe => (json!(requests.subschema_for::<ProbeRequest>()), false),
        Operation::CancelRun => (json!(requests.subschema_for::<CancelRequest>()), false),
        Operation::ApproveRun => (json!(requests.subschema_for::<ApproveRequest>()), true),
        Operation::DenyRun => (json!(requests.subschema_for::<DenyRequest>()), true),
        Operation::ResolveRun => (json!(requests.subschema_for::<ResolveRequest>()), true),
        Operation::RetryRun
        | Operation::LandRun
        | Operation::DiscardRun
        | Operation::Reload
        | Operation::Drain => (json!(requests.subschema_for::<Nothing>()), false),
        Operation::Version
        | Operation::Openapi
        | Operation::Status
        | Operation::Metrics
        | Operation::Workers
        | Operation::Schedules
        | Operation::Slots
        | Operation::Backfill
        | Operation::ListRuns
        | Operation::ShowRun
        | Operation::Diff
        | Operation::Logs
        | Operation::Events => return None,
    })
}

/// What a successful reply holds; null: nothing.
fn content(operation: Operation, replies: &mut SchemaGenerator) -> Value {
    let schema = match operation {
        Operation::Version => replies.subschema_for::<VersionReply>(),
        Operation::Openapi => json_schema!({"type": "object"}),
        Operation::Status => replies.subschema_for::<Status>(),
        Operation::Metrics => return json!({"text/plain": {"schema": {"type": "string"}}}),
        Operation::Workers => replies.subschema_for::<Vec<WorkerView>>(),
        Operation::Schedules => replies.subschema_for::<Vec<ScheduleView>>(),
        Operation::Slots => replies.subschema_for::<Vec<SlotView>>(),
        Operation::TriggerSchedule => replies.subschema_for::<SlotView>(),
        Operation::Backfill => replies.subschema_for::<Vec<BackfillSlot>>(),
        Operation::PauseSchedule | Operation::ResumeSchedule => {
            replies.subschema_for::<ScheduleView>()
        }
        Operation::ListRuns => replies.subschema_for::<Vec<RunSummary>>(),
        Operation::SubmitRun | Operation::RetryRun => replies.subschema_for::<Submitted>(),
        Operation::ShowRun => replies.subschema_for::<RunDetail>(),
        Operation::CancelRun
        | Operation::ApproveRun
        | Operation::DenyRun
        | Operation::ResolveRun => replies.subschema_for::<RunSummary>(),
        Operation::LandRun => replies.subschema_for::<Landed>(),
        Operation::DiscardRun => replies.subschema_for::<Discarded>(),
        Operation::Diff => return json!({"text/x-diff": {"schema": {"type": "string"}}}),
        Operation::Logs => replies.subschema_for::<Vec<LogLine>>(),
        Operation::Events => {
            // The schema is that of the data of the events `line`, `partial`, `changed` and `lagged`; `end` has `{}`,
            // `error` a refusal.
            let data = json!(replies.subschema_for::<WatchEvent>());
            return json!({"text/event-stream": {"schema": {"type": "string"}, "x-data": data}});
        }
        Operation::Render => replies.subschema_for::<Rendered>(),
        Operation::Probe => replies.subschema_for::<Vec<Probe>>(),
        Operation::Reload => replies.subschema_for::<ReloadReport>(),
        Operation::Drain => return Value::Null,
    };
    json!({"application/json": {"schema": schema}})
}

fn successes(operation: Operation, replies: &mut SchemaGenerator) -> Map<String, Value> {
    let status = match operation {
        Operation::SubmitRun | Operation::RetryRun => "201",
        Operation::Drain => "204",
        _ => "200",
    };
    let content = content(operation, replies);
    let mut responses = Map::new();
    let mut success = json!({"description": operation.summary()});
    if let (Some(success), false) = (success.as_object_mut(), content.is_null()) {
        success.insert("content".to_owned(), content);
    }
    if status == "201" {
        let mut existing = success.clone();
        existing["description"] = json!("An earlier request with the same key had made the run");
        responses.insert("200".to_owned(), existing);
    }
    responses.insert(status.to_owned(), success);
    responses
}

/// The fields of a query's type as parameters.
fn in_query<T: schemars::JsonSchema>(requests: &mut SchemaGenerator) -> Vec<Value> {
    let schema = T::json_schema(requests);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|(name, schema)| {
            json!({
                "name": name, "in": "query",
                "required": required.contains(&name.as_str()),
                "description": schema.get("description").cloned().unwrap_or_default(),
                "schema": schema
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_covers_every_operation_and_refers_to_nothing_that_is_missing() {
        let document = document();
        for operation in Operation::ALL {
            let method = operation.method().as_str().to_ascii_lowercase();
            let described = &document["paths"][operation.path()][&method];
            assert_eq!(described["operationId"], operation.id());
            assert_eq!(described["x-role"], operation.role().name());
            assert!(described["responses"]["400"].is_object(), "{operation:?}");
        }
        let text = document.to_string();
        let mut references = 0;
        for part in text.split("\"$ref\":\"").skip(1) {
            let pointer = part.split('"').next().unwrap_or_default();
            let pointer = pointer.strip_prefix('#').expect("a local reference");
            assert!(
                document.pointer(pointer).is_some(),
                "{pointer} leads nowhere"
            );
            references += 1;
        }
        assert!(references > 20, "{references}");
        assert!(
            !text.contains("$defs"),
            "definitions belong to the components"
        );
    }

    #[test]
    fn requests_refuse_unknown_fields_and_replies_allow_them() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        for request in [
            "SubmitRequest",
            "CancelRequest",
            "ResolveRequest",
            "Nothing",
        ] {
            assert_eq!(schemas[request]["additionalProperties"], false, "{request}");
        }
        for reply in ["Submitted", "RunDetail", "Status", "Diagnostic"] {
            assert!(
                schemas[reply].get("additionalProperties").is_none(),
                "{reply}"
            );
        }
    }
}
