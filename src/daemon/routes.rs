//! The routes of the API, and the router that is made of them.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::any;
use serde_json::{Map, Value};

use super::handlers::{changes, engine, events, logs, mcp, results, runs, schedules, web};
use super::openapi;
use super::reply::{HttpRefusal, Json};
use super::route::{Route, operation};
use super::state::ApiState;
use crate::model::AccessRole::{Admin, Read};

const GET: Method = Method::GET;
const POST: Method = Method::POST;

/// Every route of the API, in the order of the document. What changes anything is for admins; commands of runs may ask
/// only for what says so.
#[expect(clippy::too_many_lines, reason = "one table, read from top to bottom")]
pub fn routes() -> Vec<Route> {
    vec![
        operation(GET, "/v1/version", "version")
            .for_runs()
            .summary("Get the versions of the engine and of its API")
            .for_anybody()
            .handler(Read, engine::version),
        operation(GET, "/v1/openapi.json", "openapi")
            .for_runs()
            .summary("Give this document")
            .handler(Read, openapi),
        operation(GET, "/v1/status", "status")
            .for_runs()
            .summary("Get the current status of the engine")
            .handler(Read, engine::status),
        operation(GET, "/v1/metrics", "metrics")
            .for_runs()
            .summary("Get metrics of the engine and its schedules in the Prometheus text format")
            .handler(Read, engine::metrics),
        operation(GET, "/v1/events", "follow")
            .for_runs()
            .summary("Follow everything that changes, and the logs of a few runs, as server-sent events")
            .handler(Read, changes::follow),
        operation(GET, "/v1/workers", "workers")
            .for_runs()
            .summary("List workers with their skills")
            .handler(Read, engine::workers),
        operation(GET, "/v1/skills", "skills")
            .for_runs()
            .summary("List skills of workers and roots with their newest runs and next slots")
            .handler(Read, engine::skills),
        operation(GET, "/v1/problems", "problems")
            .for_runs()
            .summary("List problems in the definitions")
            .handler(Read, engine::problems),
        operation(GET, "/v1/doctor", "doctor")
            .by_person("workerctl doctor")
            .summary("Check the prerequisites of skills in the environment of the engine")
            .handler(Read, engine::doctor),
        operation(GET, "/v1/schedules", "schedules")
            .for_runs()
            .summary("List schedules with what is due next")
            .handler(Read, schedules::list),
        operation(GET, "/v1/schedules/calendar", "calendar")
            .for_runs()
            .summary("Count the outcomes of past slots, and upcoming slots, by hour or day")
            .handler(Read, schedules::calendar),
        operation(GET, "/v1/schedules/next", "next_slots")
            .for_runs()
            .summary("List the next slots of a schedule, or of all")
            .handler(Read, schedules::next),
        operation(GET, "/v1/schedules/explain", "explain_schedule")
            .for_runs()
            .summary("Explain a schedule in words")
            .handler(Read, schedules::explain),
        operation(GET, "/v1/slots", "slots")
            .for_runs()
            .summary("List past slots with their outcomes, newest first")
            .handler(Read, schedules::slots),
        operation(GET, "/v1/stats", "stats")
            .for_runs()
            .summary("Count the runs that ended in some days")
            .handler(Read, engine::stats),
        operation(POST, "/v1/forget", "forget")
            .by_person("workerctl store gc")
            .summary("Delete data that `retention` does not keep, or list it")
            .handler(Admin, engine::forget),
        operation(POST, "/v1/schedules/pause", "pause_schedule")
            .by_person("workerctl schedule pause")
            .summary("Pause a schedule")
            .handler(Admin, schedules::pause),
        operation(POST, "/v1/schedules/resume", "resume_schedule")
            .by_person("workerctl schedule resume")
            .summary("Resume a paused schedule")
            .handler(Admin, schedules::resume),
        operation(POST, "/v1/schedules/trigger", "trigger_schedule")
            .by_person("workerctl schedule trigger")
            .summary("Run a schedule now, or for a past slot")
            .handler(Admin, schedules::trigger),
        operation(GET, "/v1/schedules/backfill", "backfill")
            .for_runs()
            .summary("List past slots that may be run after all, oldest first")
            .handler(Read, schedules::backfill),
        operation(GET, "/v1/runs", "list_runs")
            .for_runs()
            .summary("List runs, newest first")
            .handler(Read, runs::list),
        operation(POST, "/v1/runs", "submit_run")
            .for_runs()
            .summary("Accept a run; it is durable when the answer arrives")
            .handler(Admin, runs::submit),
        operation(GET, "/v1/runs/{run}", "show_run")
            .for_runs()
            .summary("Show one run in full")
            .handler(Read, runs::show),
        operation(POST, "/v1/runs/{run}/cancel", "cancel_run")
            .for_runs()
            .summary("Ask to end a run")
            .handler(Admin, runs::cancel),
        operation(POST, "/v1/runs/{run}/retry", "retry_run")
            .by_person("workerctl retry")
            .summary("Accept a new run with the same inputs and the present definition")
            .handler(Admin, runs::retry),
        operation(POST, "/v1/runs/{run}/approve", "approve_run")
            .by_person("workerctl approve")
            .summary("Approve a pending run, as it was shown")
            .handler(Admin, runs::approve),
        operation(POST, "/v1/runs/{run}/deny", "deny_run")
            .by_person("workerctl deny")
            .summary("Deny a pending run")
            .handler(Admin, runs::deny),
        operation(POST, "/v1/runs/{run}/resolve", "resolve_run")
            .by_person("workerctl resolve")
            .summary("Settle a run whose outcome is unknown")
            .handler(Admin, runs::resolve),
        operation(POST, "/v1/runs/{run}/land", "land_run")
            .by_person("workerctl land")
            .summary("Land the saved commit of a run")
            .handler(Admin, runs::land),
        operation(POST, "/v1/runs/{run}/discard", "discard_run")
            .by_person("workerctl discard")
            .summary("Discard the saved result of a run that has not landed")
            .handler(Admin, runs::discard),
        operation(GET, "/v1/runs/{run}/diff", "diff")
            .for_runs()
            .summary("Give what a run changed as a patch")
            .handler(Read, results::diff),
        operation(GET, "/v1/runs/{run}/changes", "changes")
            .for_runs()
            .summary("List the paths that a run changed; the header `Workerctl-Paths` says how many there are")
            .handler(Read, results::changes),
        operation(GET, "/v1/runs/{run}/outputs/{output}", "output")
            .for_runs()
            .summary("Give the file of a declared output of a run; the header `Workerctl-Source` says where it was read")
            .handler(Read, results::output),
        operation(GET, "/v1/runs/{run}/thread", "thread")
            .for_runs()
            .summary("Give the summary of a run's thread")
            .handler(Read, results::thread),
        operation(GET, "/v1/runs/{run}/logs", "logs")
            .for_runs()
            .summary("Read lines of a run's log; the header `Workerctl-Lines` says how many it has")
            .handler(Read, logs::lines),
        operation(GET, "/v1/runs/{run}/logs/raw", "log_text")
            .for_runs()
            .summary("Give a run's log as text")
            .handler(Read, logs::text),
        operation(GET, "/v1/runs/{run}/events", "events")
            .for_runs()
            .summary("Follow a run from a line of its log until it has ended, as server-sent events")
            .handler(Read, events::follow),
        operation(POST, "/v1/render", "render")
            .for_runs()
            .summary("Check and render everything without accepting anything")
            .handler(Read, engine::render),
        operation(POST, "/v1/probe", "probe")
            .by_person("workerctl doctor")
            .summary("Check the prerequisites of skills in the environment of the engine; `notify` and `model` require the role `admin`")
            .handler(Read, engine::probe),
        operation(POST, "/v1/reload", "reload")
            .by_person("workerctl daemon reload")
            .summary("Read definitions and configuration again")
            .handler(Admin, engine::reload),
        operation(POST, "/v1/drain", "drain")
            .by_person("workerctl daemon drain")
            .summary("Start no new runs, wait for active runs, then end the engine")
            .handler(Admin, engine::drain),
        operation(POST, "/v1/web/open", "web_open")
            .by_person("workerctl web")
            .summary("Serve the web page for as long as the answer is read; at the socket only")
            .handler(Read, web::open),
        operation(POST, "/v1/web/codes", "web_code")
            .by_person("workerctl web")
            .summary("Give a code that logs in to the web page once; at the socket only")
            .handler(Read, web::code),
        operation(POST, "/v1/web/logout_all", "web_logout_all")
            .by_person("workerctl web --logout")
            .summary("End sessions of the web page: one's own, or all for the engine's own user and root; at the socket only")
            .handler(Read, web::logout_all),
        operation(POST, "/v1/web/login", "web_login")
            .summary("Trade a code for the token of a session; where the web page is served only")
            .for_anybody()
            .handler(Read, web::login),
        operation(GET, "/v1/web/session", "web_session")
            .summary("Tell who is logged in with this token; where the web page is served only")
            .handler(Read, web::session),
        operation(POST, "/v1/web/logout", "web_logout")
            .summary("End the session of this token; where the web page is served only")
            .handler(Read, web::logout),
    ]
}

/// The router of all routes and of the Model Context Protocol.
pub(super) fn router(state: Arc<ApiState>) -> Router {
    all_routes()
        .route(crate::mcp::PATH, any(mcp::serve))
        .with_state(state)
}

/// The router of all routes alone.
pub(super) fn router_of_api(state: Arc<ApiState>) -> Router {
    all_routes().with_state(state)
}

fn all_routes() -> Router<Arc<ApiState>> {
    let mut router = Router::new();
    for route in routes() {
        router = router.route(route.path, route.handler);
    }
    router
        .method_not_allowed_fallback(|| async {
            HttpRefusal::of_transport(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this path does not take this method".to_owned(),
            )
        })
        .fallback(|| async { HttpRefusal::no_such_path() })
}

/// The OpenAPI document.
async fn openapi() -> Json<Map<String, Value>> {
    Json(openapi::document(&routes()))
}
