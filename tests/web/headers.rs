//! What every answer says, and what is there.

use workerctl::web::{DIGEST, asset, names};

use crate::web::host::Host;
use crate::web::wire::{Answer, Request};

const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Asserts that nothing can be made of an answer but what it is for.
fn is_guarded(answer: &Answer, what: &str) {
    for (name, value) in HEADERS {
        assert_eq!(answer.header(name), Some(value), "{what}: {answer:?}");
    }
    let kept = answer.header("cache-control").unwrap();
    let is_asset = answer.status == 200 && what.contains("/assets/");
    let expected = if is_asset {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    assert_eq!(kept, expected, "{what}");
    assert_eq!(answer.header("set-cookie"), None, "{what}");
    assert_eq!(answer.header("access-control-allow-origin"), None, "{what}");
}

#[test]
fn every_kind_of_answer_is_guarded() {
    let host = Host::start("");
    let token = host.token(&[]);
    let main = format!("/assets/{DIGEST}/main.js");
    let get = Request::get;
    let asked = [
        (200, get("/")),
        (200, get("/runs/01ABC?tab=log")),
        (200, get(&main)),
        (200, Request::method("HEAD", &main)),
        (200, get("/v1/version")),
        (200, get("/v1/status").token(&token)),
        (200, get("/v1/metrics").token(&token)),
        (200, get("/v1/openapi.json").token(&token)),
        (400, get("/v1/runs?limit=x").token(&token)),
        (400, get("/runs//x")),
        (400, get("/?token=x")),
        (401, get("/v1/status")),
        (401, Request::post("/v1/web/login", r#"{"code": "x"}"#)),
        (403, get("/").host("evil.example")),
        (403, get("/v1/status").token(&token).header("Origin: null")),
        (404, get("/nothing")),
        (404, get("/assets/0000/main.js")),
        (404, get("/v1/nothing").token(&token)),
        (404, get("/v1/runs/ZZZZZ").token(&token)),
        (405, Request::method("DELETE", "/v1/runs").token(&token)),
        (405, Request::post("/v1/status", "{}").token(&token)),
        (405, Request::post("/", "{}")),
        (
            415,
            Request::post("/v1/reload", "{}")
                .token(&token)
                .of_kind(None),
        ),
        (200, Request::post("/v1/reload", "{}").token(&token)),
    ];
    for (status, request) in asked {
        let answer = host.ask(&request);
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
        is_guarded(&answer, &format!("{request:?}"));
        if status == 401 {
            assert_eq!(
                answer.header("www-authenticate"),
                Some("Bearer"),
                "{request:?}"
            );
        }
    }
    host.daemon.stop();
}

#[test]
fn the_page_is_at_its_addresses_and_its_files_at_their_digest() {
    let host = Host::start("");
    let page = host.ask(&Request::get("/"));
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.text(), workerctl::web::INDEX);
    for path in [
        "/runs",
        "/runs/01ABC",
        "/skills",
        "/skills/w/s",
        "/schedules",
        "/schedules/w/s",
        "/trends",
    ] {
        assert_eq!(host.ask(&Request::get(path)).body, page.body, "{path}");
    }
    for name in names() {
        let answer = host.ask(&Request::get(&format!("/assets/{DIGEST}/{name}")));
        let asset = asset(name).unwrap();
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.body, asset.bytes, "{name}");
        assert_eq!(answer.header("content-type"), Some(asset.content_type));
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
    }
    let version = host.ask(&Request::get("/v1/version")).value();
    assert_eq!(version["web"], DIGEST);
    host.daemon.stop();
}

#[test]
fn no_path_leads_to_anything_else() {
    let host = Host::start("");
    let old = "0".repeat(DIGEST.len());
    for (status, path) in [
        (404, format!("/assets/{old}/main.js")),
        (404, format!("/assets/{DIGEST}/absent.js")),
        (404, format!("/assets/{DIGEST}/index.html")),
        (404, format!("/assets/{DIGEST}/main.js/")),
        (404, format!("/assets/{DIGEST}/a/main.js")),
        (404, format!("/assets/{DIGEST}")),
        (404, "/assets/".to_owned()),
        (404, "/mcp".to_owned()),
        (404, "/favicon.ico".to_owned()),
        (404, "/runsx".to_owned()),
        (400, format!("/assets/{DIGEST}/main.js?x=1")),
        (400, format!("/assets/{DIGEST}/../{DIGEST}/main.js")),
        (400, format!("/assets/{DIGEST}/%2e%2e/main.js")),
        (400, format!("/assets/{DIGEST}/..%2fmain.js")),
        (400, format!("/assets//{DIGEST}/main.js")),
        (400, format!("/assets/{DIGEST}/main.js%00")),
        (400, format!("/assets/{DIGEST}/%5cmain.js")),
        (400, "/../../etc/passwd".to_owned()),
        (400, "/runs/%2E%2E/%2e%2e/etc/passwd".to_owned()),
        (400, "//evil.example/".to_owned()),
        (403, "http://evil.example/".to_owned()),
    ] {
        let answer = host.ask(&Request::get(&path));
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_ne!(answer.code(), "", "{path}");
    }
    // What the server of HTTP itself refuses has no body that could do anything.
    for path in ["/runs\\..\\x", "/a\u{0}b", "/a b"] {
        let answer = host.ask(&Request::get(path));
        assert_eq!(answer.status, 400, "{path:?}: {answer:?}");
    }
    host.daemon.stop();
}
