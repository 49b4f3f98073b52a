//! What is refused of a request that came in at the page's door, before anybody looks who sent it.
//!
//! A browser sends requests for every page that it shows. So a request has to name this machine, come from our own page,
//! and carry its login where no other page can make a browser put it.

use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};

use crate::daemon::reply::HttpRefusal;
use crate::mcp::{names_this_machine, only};

/// Parameters that would hold a token or a code; addresses are kept by browsers and logged by servers.
const SECRETS: [&str; 8] = [
    "access_token",
    "auth",
    "authorization",
    "bearer",
    "code",
    "login",
    "password",
    "token",
];

/// What every request is held to, whatever it asks for.
pub(super) fn admit(parts: &Parts) -> Result<(), HttpRefusal> {
    // An address with a host in it names another one than `Host` may.
    if parts.uri.authority().is_some() || !names_this_machine(&parts.headers) {
        return Err(forbidden(
            "foreign_host",
            "`Host` must name the loopback address that this is served at",
        ));
    }
    own_origin(&parts.headers)?;
    plain_path(parts.uri.path())?;
    no_secret(&parts.uri)?;
    if [Method::GET, Method::HEAD, Method::POST].contains(&parts.method) {
        return Ok(());
    }
    Err(HttpRefusal::of_transport(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path does not take this method".to_owned(),
    ))
}

/// What requests to the API are held to beside that.
pub(super) fn admit_to_api(parts: &Parts) -> Result<(), HttpRefusal> {
    let site = parts.headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(of_another_page());
    }
    if parts.method == Method::POST && !is_json(&parts.headers) {
        // A page of another origin can send a body of another type without asking first.
        return Err(HttpRefusal::of_transport(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "a body must be `application/json`".to_owned(),
        )
        .hint("send the header `Content-Type: application/json`"));
    }
    Ok(())
}

/// `Origin` has to be the address that the request was sent to: a page of another port of this machine is another one.
fn own_origin(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let origin = only(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    let own = only(headers, &HOST);
    if origin.is_some() && origin == own {
        return Ok(());
    }
    Err(of_another_page())
}

/// A path means what it says: nothing in it is undone, climbed or hidden.
fn plain_path(path: &str) -> Result<(), HttpRefusal> {
    let small = path.to_ascii_lowercase();
    let hides = ["//", "\\", "\0", "%00", "%2e", "%2f", "%5c", "%25"]
        .iter()
        .any(|trick| small.contains(trick));
    let climbs = path.split('/').any(|part| part == "." || part == "..");
    if path.starts_with('/') && !hides && !climbs {
        return Ok(());
    }
    Err(HttpRefusal::bad_request(
        "bad_path",
        "this path is not in canonical form",
    ))
}

/// What is refused says nothing of the secret, not even which parameter held it.
fn no_secret(uri: &Uri) -> Result<(), HttpRefusal> {
    let query = uri.query().unwrap_or_default();
    let names = query.split(['&', ';']).filter_map(|one| {
        let name = one.split('=').next()?;
        percent_encoding::percent_decode_str(name)
            .decode_utf8()
            .ok()
    });
    for name in names {
        if SECRETS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(HttpRefusal::bad_request(
                "secret_in_address",
                "a URL must not contain a token or a code",
            )
            .hint("a token goes into the header `Authorization: Bearer …`, a code into the body of `POST /v1/web/login`"));
        }
    }
    Ok(())
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = only(headers, &CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn of_another_page() -> HttpRefusal {
    forbidden(
        "foreign_origin",
        "requests from other origins are not allowed",
    )
}

fn forbidden(code: &str, message: &str) -> HttpRefusal {
    HttpRefusal::of_transport(StatusCode::FORBIDDEN, code, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(checked: Result<(), HttpRefusal>) -> String {
        checked.map_or_else(|refused| refused.diagnostic.code, |()| String::new())
    }

    #[test]
    fn an_origin_is_the_address_that_was_asked_and_no_other() {
        let table = [
            ("127.0.0.1:8930", "http://127.0.0.1:8930", true),
            ("localhost:9000", "http://localhost:9000", true),
            ("127.0.0.1:8930", "http://127.0.0.1:8931", false),
            ("127.0.0.1:8930", "http://localhost:8930", false),
            ("127.0.0.1:8930", "https://127.0.0.1:8930", false),
            ("127.0.0.1:8930", "http://127.0.0.1:8930/", false),
            ("127.0.0.1:8930", "null", false),
            ("127.0.0.1:8930", "", false),
        ];
        for (host, origin, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            assert!(own_origin(&headers).is_ok());
            headers.insert(ORIGIN, origin.parse().unwrap());
            assert_eq!(own_origin(&headers).is_ok(), expected, "{host} {origin}");
            headers.append(ORIGIN, origin.parse().unwrap());
            assert!(own_origin(&headers).is_err(), "twice");
        }
    }

    #[test]
    fn paths_and_addresses_hide_nothing() {
        for plain in [
            "/",
            "/runs/01ABC",
            "/assets/0a/main.js",
            "/v1/runs",
            "/a%20b",
            "/a..b",
        ] {
            assert_eq!(code(plain_path(plain)), "", "{plain}");
        }
        for trick in [
            "",
            "*",
            "//",
            "/a//b",
            "/..",
            "/a/../b",
            "/./a",
            "/%2e%2E/a",
            "/a%2Fb",
            "/a\\b",
            "/a%5cb",
            "/a%00",
            "/a%252e",
        ] {
            assert_eq!(code(plain_path(trick)), "bad_path", "{trick}");
        }
        for query in [
            "token=1",
            "a=b&Token=1",
            "access_token=",
            "code=1",
            "a=1;login=2",
            "%74oken=1",
            "bearer",
        ] {
            let uri = format!("/?{query}").parse().unwrap();
            assert_eq!(code(no_secret(&uri)), "secret_in_address", "{query}");
        }
        let uri = "/runs?outcome=failed&text=token".parse().unwrap();
        assert_eq!(code(no_secret(&uri)), "");
    }

    #[test]
    fn a_body_is_json() {
        let mut headers = HeaderMap::new();
        assert!(!is_json(&headers));
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/json-x", false),
        ] {
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
    }
}
