//! The web page of the daemon behind a socket.

use super::{ANSWER_PATIENCE, HttpControl, SILENCE_PATIENCE};
use crate::daemon::exchange::Outgoing;
use crate::daemon::sse::SseItem;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{
    WebCode, WebCodeRequest, WebControl, WebLoggedOut, WebOpenRequest, WebOpened,
};

impl WebControl for HttpControl {
    fn open(
        &self,
        request: &WebOpenRequest,
        opened: &mut dyn FnMut(WebOpened),
    ) -> Result<(), Diagnostic> {
        let request = Outgoing::post("/v1/web/open", request)?;
        let mut following = match self.line.follow(request, ANSWER_PATIENCE)? {
            Ok(following) => following,
            Err(reply) => return Err(self.misunderstood(&reply)),
        };
        while let Some(told) = following.next(SILENCE_PATIENCE)? {
            if let SseItem::Event { name, data, .. } = told
                && name == "open"
            {
                let place = serde_json::from_str(&data).map_err(|error| {
                    self.of_another_form("sent an event in an unknown format", &error)
                })?;
                opened(place);
            }
        }
        let why = "the daemon has ended, and does not serve the web page any more";
        Err(Diagnostic::new(Kind::Unreachable, "web_closed", why)
            .hint("once a daemon runs again, `workerctl web` opens it"))
    }

    fn code(&self, request: &WebCodeRequest) -> Result<WebCode, Diagnostic> {
        self.change("/v1/web/codes", request)
    }

    fn end_sessions(&self) -> Result<WebLoggedOut, Diagnostic> {
        self.change("/v1/web/logout_all", &serde_json::json!({}))
    }
}
