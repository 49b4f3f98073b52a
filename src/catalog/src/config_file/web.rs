//! `web`: where the web page is served.

use super::Reader;
use crate::http_settings;
use crate::keys::CONFIG_WEB;
use crate::report::Report;

impl Reader<'_, '_> {
    pub(super) fn web(&mut self, report: &mut Report) {
        let Some(view) = self.map.written("web") else {
            return;
        };
        let expected = "a map such as `{listen: 127.0.0.1:8930}`";
        CONFIG_WEB.is_map(view, "web", expected, report);
        let listen = self.value("web.listen", report, http_settings::listen_for_browsers);
        let read_only = self.value("web.read_only", report, |view, report| {
            view.flag("read_only", report)
        });
        self.config.web.listen = listen;
        // A restriction that cannot be read holds.
        let written = view.get("read_only").is_some_and(|view| !view.is_null());
        self.config.web.read_only = read_only.unwrap_or(written);
    }
}
