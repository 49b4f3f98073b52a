//! The log of a run: some of its lines, or all of it as text.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::daemon::checks::LogTextQuery;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{Query, RunFragment};
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::daemon::wire::LINES_HEADER;
use crate::daemon::{paths, pieces};
use crate::model::legible::legible;
use crate::protocol::{Control, LogLine, LogsPage, LogsQuery};
use crate::thread::sgr::without_sgr;

/// Some lines, how many there are, and where further ones are.
pub(crate) async fn lines(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Query(mut query): Query<LogsQuery>,
) -> Result<(HeaderMap, Json<Vec<LogLine>>), HttpRefusal> {
    let (asked, of) = (query.clone(), run.clone());
    let page = state.read(move |c| c.logs_page(&of, &asked)).await?;
    let path = format!("/v1/runs/{run}/logs");
    let next = page.next.map(|next| {
        query.from = next;
        // Those that are left of the last lines begin there.
        query.tail = None;
        paths::link_to_next(&path, &query)
    });
    let mut headers = reply::linked(next);
    headers.insert(LINES_HEADER, HeaderValue::from(page.total));
    Ok((headers, Json(page.lines)))
}

/// The whole log as text, masked as it is stored; without colours, and with nothing in it that a terminal would obey.
pub(crate) async fn text(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Query(query): Query<LogTextQuery>,
) -> Result<LogText, HttpRefusal> {
    let place = state.download()?;
    let mut query = LogsQuery {
        stream: query.stream,
        ..LogsQuery::default()
    };
    let asked = query.clone();
    let read = move |control: &dyn Control| {
        let run = control.run(&run)?.summary.run.to_string();
        let page = control.logs_page(&run, &asked)?;
        Ok((run, page))
    };
    let (run, mut page) = state.read(read).await?;
    let control = state.control()?;
    let name = format!("{run}.log");
    let is_one_stream = query.stream.as_ref().is_some_and(|one| !one.contains(','));
    let body = pieces::body(place, move |out| {
        loop {
            write_page(out, &page, is_one_stream)?;
            let Some(next) = page.next else {
                return Ok(());
            };
            query.from = next;
            let read = control.logs_page(&run, &query);
            page = read.map_err(|error| io::Error::other(error.message))?;
        }
    })?;
    Ok(LogText { name, body })
}

/// Of one stream the text alone, as its command wrote it; of several with time and stream before each line.
fn write_page(out: &mut dyn Write, page: &LogsPage, is_one_stream: bool) -> io::Result<()> {
    for line in &page.lines {
        let text = without_sgr(&line.text);
        let text = legible(&text);
        match (is_one_stream, line.continued) {
            (true, true) => write!(out, "{text}")?,
            (true, false) => writeln!(out, "{text}")?,
            (false, continued) => {
                let (at, stream) = (line.at.rfc3339(), line.stream.name());
                let end = if continued { " …" } else { "" };
                writeln!(out, "{at} {stream:6} {text}{end}")?;
            }
        }
    }
    Ok(())
}

/// A log as text.
pub(crate) struct LogText {
    name: String,
    body: Body,
}

impl IntoResponse for LogText {
    fn into_response(self) -> Response {
        let kind = "text/plain; charset=utf-8";
        let mut response = reply::answer_of(StatusCode::OK, kind, self.body);
        reply::as_attachment(&mut response, &self.name);
        response
    }
}

impl Output for LogText {
    fn describe(operation: &mut Description<'_>) {
        let content = json!({"text/plain": {"schema": {"type": "string"}}});
        operation.reply("200", operation.summary, &content);
    }
}
