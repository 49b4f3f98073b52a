//! The page and its files. They are the same for everybody and hold nothing of the workspace.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use crate::daemon::extract::no_query;
use crate::daemon::reply::{self, HttpRefusal};
use crate::model::{Diagnostic, Kind};
use crate::web::{DIGEST, INDEX, asset};

/// Where the files of the page are, below their digest.
const ASSETS: &str = "/assets/";

/// Addresses of the page, beside `/`; it reads them itself.
const PAGES: [&str; 4] = ["runs", "skills", "schedules", "trends"];

/// Answers a request to anything but the API.
pub(super) fn answer(parts: &Parts) -> Result<Response, HttpRefusal> {
    let path = parts.uri.path();
    let found = if let Some(named) = path.strip_prefix(ASSETS) {
        no_query(&parts.uri)?;
        file(named)?
    } else if is_page(path) {
        reply::answer_of(
            StatusCode::OK,
            "text/html; charset=utf-8",
            Body::from(INDEX),
        )
    } else {
        return Err(HttpRefusal::no_such_path());
    };
    if parts.method == Method::POST {
        return Err(HttpRefusal::of_transport(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not take this method".to_owned(),
        ));
    }
    Ok(found)
}

fn is_page(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    match parts.next() {
        Some("") => parts.next().is_none(),
        Some(first) => PAGES.contains(&first),
        None => false,
    }
}

/// A file as the browser keeps it: its address changes whenever any of them does.
fn file(named: &str) -> Result<Response, HttpRefusal> {
    let (digest, name) = named.split_once('/').unwrap_or((named, ""));
    let Some(asset) = asset(name).filter(|_| digest == DIGEST) else {
        let why = "there is no such file of the page";
        let refused = Diagnostic::new(Kind::NotFound, "no_such_file", why);
        return Err(HttpRefusal::from(refused)
            .hint("the page may be of another version by now: load it again"));
    };
    let body = Body::from(asset.bytes);
    let mut response = reply::answer_of(StatusCode::OK, asset.content_type, body);
    let headers = response.headers_mut();
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, kept);
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(response)
}
