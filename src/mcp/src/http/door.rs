//! Who is let in: nobody's page but those that are allowed, and over TCP nobody without the token.

use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, HOST, HeaderMap,
    HeaderName, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};

use super::reply::{self, Answer, ErrorResponse};
use super::token::Token;

/// Where a request came in.
#[derive(Debug, Clone)]
pub enum Door {
    /// The socket, whose permissions say who is let in.
    Socket,
    /// TCP, where a token does.
    Tcp(Token),
}

/// Characters of a header that are told of.
const SHOWN_MAX: usize = 80;

/// What a page may send, beside what every page may.
const HEADERS: &str = "authorization, content-type, last-event-id, mcp-method, mcp-name, \
    mcp-protocol-version, mcp-session-id";

/// Lets a request in, or says why not. Over TCP the token is asked for last, so that a page that may not ask
/// learns nothing about it.
pub(super) fn admit(door: &Door, parts: &Parts, origins: &[String]) -> Result<(), ErrorResponse> {
    let headers = &parts.headers;
    if let Door::Tcp(_) = door
        && !names_this_machine(headers)
    {
        tell(headers, &HOST, "a request for another host was refused");
        let why = "Forbidden: `Host` must name the loopback address that this is served at";
        return Err(reply::refusal(StatusCode::FORBIDDEN, why).into());
    }
    if headers.contains_key(ORIGIN) && allowed_origin(headers, origins).is_none() {
        tell(
            headers,
            &ORIGIN,
            "a request of a page that may not ask was refused",
        );
        let why = "Forbidden: this origin is not allowed; `mcp: {http: {origins: […]}}` lists those that are";
        return Err(reply::refusal(StatusCode::FORBIDDEN, why).into());
    }
    if parts.method == Method::OPTIONS && headers.contains_key(ORIGIN) {
        // Browsers ask this without a token, before they send one.
        return Err(preflight().into());
    }
    match door {
        Door::Socket => Ok(()),
        Door::Tcp(token) => has_token(token, headers),
    }
}

/// Whether a refusal has been told of. Whoever may not ask does not fill the log.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Tells of the first refusal, and of the others to whoever looks for them.
fn tell(headers: &HeaderMap, name: &HeaderName, what: &str) {
    let value = headers.get(name).map(HeaderValue::as_bytes);
    let shown = String::from_utf8_lossy(value.unwrap_or_default());
    let shown: String = shown.chars().take(SHOWN_MAX).collect();
    if TOLD.swap(true, Ordering::Relaxed) {
        tracing::debug!(%name, value = ?shown, what);
    } else {
        tracing::warn!(%name, value = ?shown, "{what}; further ones are logged at level `debug`");
    }
}

/// The one value of a header; several are none.
pub fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// Whether `Host` is what a program on this machine writes. A page of another host that was made to resolve to
/// this machine names that host.
pub fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = only(headers, &HOST).and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|authority| {
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        !authority.as_str().contains('@')
            && (host.eq_ignore_ascii_case("localhost")
                || address.is_ok_and(|address| address.is_loopback()))
    })
}

fn allowed_origin<'h>(headers: &'h HeaderMap, origins: &[String]) -> Option<&'h HeaderValue> {
    let origin = only(headers, &ORIGIN)?;
    let allowed = origins.iter().any(|one| one.eq_ignore_ascii_case(origin));
    headers.get(ORIGIN).filter(|_| allowed)
}

/// The token that a request carries.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

fn has_token(token: &Token, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let (why, challenge) = match bearer(headers) {
        Some(given) if token.is(given) => return Ok(()),
        Some(_) => (
            "Unauthorized: this is not the token",
            r#"Bearer realm="workerctl", error="invalid_token""#,
        ),
        None => (
            "Unauthorized: `Authorization: Bearer TOKEN` is needed",
            r#"Bearer realm="workerctl""#,
        ),
    };
    let mut answer = reply::refusal(StatusCode::UNAUTHORIZED, why);
    let challenge = HeaderValue::from_static(challenge);
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    Err(answer.into())
}

fn preflight() -> Answer {
    let mut answer = reply::empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(HEADERS),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

/// Lets the page read the answer, where it may ask.
pub(super) fn let_read(asked: &HeaderMap, origins: &[String], answer: &mut Answer) {
    let Some(origin) = allowed_origin(asked, origins) else {
        return;
    };
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, www-authenticate"),
    );
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_token_is_a_bearer_and_one() {
        for (values, expected) in [
            (&[][..], None),
            (&["Bearer a"], Some("a")),
            (&["bearer  b"], Some("b")),
            (&["Basic a"], None),
            (&["a"], None),
            (&["Bearer a", "Bearer a"], None),
        ] {
            assert_eq!(bearer(&of(&AUTHORIZATION, values)), expected, "{values:?}");
        }
    }

    #[test]
    fn a_host_is_this_machine_or_it_is_not() {
        let own: [&[&str]; 6] = [
            &["localhost"],
            &["LOCALHOST:80"],
            &["127.0.0.1:8931"],
            &["127.9.9.9:1"],
            &["[::1]:8931"],
            &["[::1]"],
        ];
        for values in own {
            assert!(names_this_machine(&of(&HOST, values)), "{values:?}");
        }
        let others: [&[&str]; 9] = [
            &[],
            &[""],
            &["evil.example"],
            &["localhost.evil.example:8931"],
            &["127.0.0.1.evil.example"],
            &["192.168.0.1:8931"],
            &["localhost@evil.example"],
            &["user@localhost"],
            &["localhost", "evil.example"],
        ];
        for values in others {
            assert!(!names_this_machine(&of(&HOST, values)), "{values:?}");
        }
    }

    #[test]
    fn an_origin_is_allowed_as_it_is_written() {
        let allowed = ["http://localhost:6274".to_owned()];
        let may = |values: &[&str]| allowed_origin(&of(&ORIGIN, values), &allowed).is_some();
        assert!(may(&["http://localhost:6274"]));
        for refused in [
            "null",
            "http://localhost",
            "https://localhost:6274",
            "http://localhost:62740",
            "",
        ] {
            assert!(!may(&[refused]), "{refused}");
        }
        assert!(!may(&["http://localhost:6274", "http://evil.example"]));
    }
}
