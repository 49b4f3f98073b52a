//! `mcp`: what clients of the Model Context Protocol may do.

use super::Reader;
use crate::bounds::{LIST_BYTES_MAX, LIST_BYTES_MIN};
use crate::http_settings;
use crate::keys::CONFIG_MCP_HTTP;
use crate::model::duration::show_millis;
use crate::model::{MCP_TOOLS, MCP_TOOLS_NOT_SMALL, MCP_TYPED_MAX, McpMutating};
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Longest that a call over the Model Context Protocol may wait for its run.
const WAIT_MS_MAX: u64 = 24 * 3_600_000;

/// Changed definitions are found within this time at the latest, as the skill tool promises.
const REFRESH_MS_MAX: u64 = 30_000;

impl Reader<'_, '_> {
    pub(super) fn mcp(&mut self, report: &mut Report) {
        // What cannot be read allows nothing.
        let written = self.map.get("mcp").and_then(|view| view.get("mutating"));
        if written.is_some_and(|view| !view.is_null()) {
            let mutating = self.value("mcp.mutating", report, mutating);
            self.config.mcp.mutating = mutating.unwrap_or(McpMutating::Refuse);
        }
        if let Some(tools) = self.value("mcp.tools", report, tools) {
            self.config.mcp.tools = tools;
        }
        let typed = self.value("mcp.typed", report, |view, report| {
            view.whole("typed", 0..=MCP_TYPED_MAX, report)
        });
        self.config.mcp.typed = typed.unwrap_or_default();
        let bytes = self.value("mcp.list_bytes", report, |view, report| {
            view.whole("list_bytes", LIST_BYTES_MIN..=LIST_BYTES_MAX, report)
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

fn mutating(view: View<'_>, report: &mut Report) -> Option<McpMutating> {
    let all = [McpMutating::Allow, McpMutating::Ask, McpMutating::Refuse];
    let word = view.filled_text("mutating", report)?;
    let known = all.into_iter().find(|one| one.name() == word);
    if known.is_none() {
        let message = format!("`mutating: {}` is not known", word.escape_debug());
        let hint = "write `ask`, `allow` or `refuse`";
        report.error("unknown-value", view.place(), message, hint);
    }
    known
}

/// Reads which tools are listed: `all`, `small`, or their names.
fn tools(view: View<'_>, report: &mut Report) -> Option<Vec<String>> {
    let unknown = |view: View<'_>, word: &str, report: &mut Report| {
        let message = format!("`tools`: `{}` is not known", word.escape_debug());
        let hint = format!(
            "write `all`, `small`, or some of [{}]",
            MCP_TOOLS.join(", ")
        );
        report.error("unknown-value", view.place(), message, &hint);
    };
    let all = MCP_TOOLS.iter().copied();
    let Data::List(_) = view.data() else {
        let word = view.filled_text("tools", report)?;
        return match word.as_str() {
            "all" => Some(all.map(str::to_owned).collect()),
            "small" => {
                let small = all.filter(|one| !MCP_TOOLS_NOT_SMALL.contains(one));
                Some(small.map(str::to_owned).collect())
            }
            other => {
                unknown(view, other, report);
                None
            }
        };
    };
    let named = view.texts("tools", report)?;
    for one in named
        .iter()
        .filter(|one| !MCP_TOOLS.contains(&one.as_str()))
    {
        unknown(view, one, report);
    }
    let listed = all.filter(|one| named.iter().any(|named| named == one));
    Some(listed.map(str::to_owned).collect())
}
