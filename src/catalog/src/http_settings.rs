//! `mcp.http` and `web` of workerctl.yaml: what is served over TCP, where, and to whom.

use std::net::SocketAddr;

use super::report::Report;
use super::view::View;
use crate::bounds::SESSIONS_MAX;
use crate::model::duration::show_millis;

/// Longest that a session may be kept which nobody uses.
const IDLE_MS_MAX: u64 = 24 * 3_600_000;

/// Origins that may be allowed.
const ORIGINS_MAX: usize = 32;

/// What a token file may be below.
const BELOW: [&str; 3] = ["/", "~/", "$CREDENTIALS_DIRECTORY/"];

/// Reads the address of the Model Context Protocol; other machines must not reach it.
pub(crate) fn listen(view: View<'_>, report: &mut Report) -> Option<String> {
    const HINT: &str =
        "write a loopback address with a port, such as `127.0.0.1:8931` or `\"[::1]:8931\"`";
    loopback(view, HINT, report)
}

/// Reads the address of the web page; other machines must not reach it.
pub(crate) fn listen_for_browsers(view: View<'_>, report: &mut Report) -> Option<String> {
    const HINT: &str = "write a loopback address with a port, such as `127.0.0.1:8930`; from another machine \
        `ssh -L 8930:127.0.0.1:8930 HOST` leads to it";
    loopback(view, HINT, report)
}

fn loopback(view: View<'_>, hint: &str, report: &mut Report) -> Option<String> {
    let text = view.filled_text("listen", report)?;
    let shown = text.escape_debug();
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => return Some(address.to_string()),
        Ok(_) => {
            let message = format!("`listen: {shown}` could be reached by other machines");
            report.error("listen-address", view.place(), message, hint);
        }
        Err(_) => {
            let message = format!("`listen: {shown}` is no address with a port");
            report.error("listen-address", view.place(), message, hint);
        }
    }
    None
}

/// Reads where the token is.
pub(crate) fn token_file(view: View<'_>, report: &mut Report) -> Option<String> {
    let path = view.filled_text("token_file", report)?;
    let known = BELOW.iter().any(|start| path.starts_with(start));
    if known && !path.ends_with('/') && !path.chars().any(char::is_control) {
        return Some(path);
    }
    // A token in the workspace would be committed some day.
    report.error(
        "token-file",
        view.place(),
        format!(
            "`token_file: {}` is not found from here",
            path.escape_debug()
        ),
        "write an absolute path, or one below `~/` or `$CREDENTIALS_DIRECTORY/`",
    );
    None
}

/// Reads the origins that are allowed.
pub(crate) fn origins(view: View<'_>, report: &mut Report) -> Option<Vec<String>> {
    let before = report.errors();
    let found = view.texts("origins", report)?;
    if found.len() > ORIGINS_MAX {
        let message = format!("more than {ORIGINS_MAX} origins");
        report.error("too-many", view.place(), message, "allow fewer");
    }
    for origin in found.iter().filter(|origin| !is_origin(origin)) {
        report.error(
            "origin",
            view.place(),
            format!("`{}` is no origin", origin.escape_debug()),
            "write scheme, host and port in small letters, such as `http://localhost:6274`, and no path",
        );
    }
    (report.errors() == before).then_some(found)
}

/// Whether a browser would name a page's origin so.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let plain = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
    };
    plain(scheme, "+.-") && plain(authority, ".-:[]_")
}

/// Reads how many sessions there may be.
pub(crate) fn sessions(view: View<'_>, report: &mut Report) -> Option<u32> {
    let sessions = view.whole("sessions", 1..=SESSIONS_MAX, report)?;
    u32::try_from(sessions).ok()
}

/// Reads how long a session is kept that nobody uses, in milliseconds.
pub(crate) fn idle(view: View<'_>, report: &mut Report) -> Option<u64> {
    let millis = view.millis("idle", report)?;
    if (1..=IDLE_MS_MAX).contains(&millis) {
        return Some(millis);
    }
    let message = format!("`idle` is more than {}", show_millis(IDLE_MS_MAX));
    report.error("out-of-range", view.place(), message, "write less");
    None
}
