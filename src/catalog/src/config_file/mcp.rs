//! `mcp`: what clients of the Model Context Protocol may do.

use super::Reader;
use crate::bounds::LIST_BYTES_MAX;
use crate::http_settings;
use crate::keys::CONFIG_MCP_HTTP;
use crate::model::duration::show_millis;
use crate::report::Report;
use crate::view::View;

/// Longest that a call over the Model Context Protocol may wait for its run.
const WAIT_MS_MAX: u64 = 24 * 3_600_000;

/// Changed definitions are found within this time at the latest, as the skill tool promises.
const REFRESH_MS_MAX: u64 = 30_000;

impl Reader<'_, '_> {
    pub(super) fn mcp(&mut self, report: &mut Report) {
        if let Some(allowed) = self.value("mcp.mutating", report, allowed) {
            self.config.mcp.mutating = allowed;
        }
        let bytes = self.value("mcp.list_bytes", report, |view, report| {
            view.whole("list_bytes", 1_024..=LIST_BYTES_MAX, report)
        });
        if let Some(bytes) = bytes {
            self.config.mcp.list_bytes = bytes;
        }
        for (path, longest) in [("mcp.wait", WAIT_MS_MAX), ("mcp.refresh", REFRESH_MS_MAX)] {
            let millis = self.value(path, report, |view, report| {
                let millis = view.millis(path, report)?;
                if (1..=longest).contains(&millis) {
                    return Some(millis);
                }
                let message = format!("`{path}` is more than {}", show_millis(longest));
                report.error("out-of-range", view.place(), message, "write less");
                None
            });
            match (path, millis) {
                ("mcp.wait", Some(millis)) => self.config.mcp.wait_ms = millis,
                (_, Some(millis)) => self.config.mcp.refresh_ms = millis,
                (_, None) => {}
            }
        }
    }

    pub(super) fn mcp_over_http(&mut self, report: &mut Report) {
        let view = self.map.get("mcp").and_then(|view| view.get("http"));
        let Some(view) = view.filter(|view| !view.is_null()) else {
            return;
        };
        let expected = "a map such as `{listen: 127.0.0.1:8931}`";
        CONFIG_MCP_HTTP.is_map(view, "http", expected, report);
        let origins = self.value("mcp.http.origins", report, http_settings::origins);
        let listen = self.value("mcp.http.listen", report, http_settings::listen);
        let token_file = self.value("mcp.http.token_file", report, http_settings::token_file);
        let sessions = self.value("mcp.http.sessions", report, http_settings::sessions);
        let idle = self.value("mcp.http.idle", report, http_settings::idle);
        let http = &mut self.config.mcp.http;
        http.origins = origins.unwrap_or_default();
        http.sessions = sessions.unwrap_or(http.sessions);
        http.idle_ms = idle.unwrap_or(http.idle_ms);
        http.token_file = token_file;
        // Served with another token than the one that was meant, it would be served to nobody or to others.
        let unread = view
            .get("token_file")
            .is_some_and(|view| !view.is_null() && http.token_file.is_none());
        http.listen = listen.filter(|_| !unread);
    }
}

/// Reads whether something is allowed.
fn allowed(view: View<'_>, report: &mut Report) -> Option<bool> {
    match view.filled_text("mutating", report)?.as_str() {
        "allow" => Some(true),
        "refuse" => Some(false),
        other => {
            let message = format!("`mutating: {}` is not known", other.escape_debug());
            report.error(
                "unknown-value",
                view.place(),
                message,
                "write `allow` or `refuse`",
            );
            None
        }
    }
}
