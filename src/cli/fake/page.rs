//! The web page of the fake engine.

use super::{Fake, NOW};
use crate::model::{Diagnostic, Kind};
use crate::protocol::{
    WebCode, WebCodeRequest, WebControl, WebLoggedOut, WebOpenRequest, WebOpened,
};

impl WebControl for Fake {
    fn open(
        &self,
        request: &WebOpenRequest,
        opened: &mut dyn FnMut(WebOpened),
    ) -> Result<(), Diagnostic> {
        self.note(format!("open {:?}", request.port));
        let port = request.port.unwrap_or(8_930);
        opened(WebOpened {
            address: format!("http://127.0.0.1:{port}/"),
            port,
            persistent: self.condition == "stays",
        });
        match self.signals.first() {
            // Until the command is told to end.
            Some(_) => loop {
                std::thread::park();
            },
            None => Err(Diagnostic::new(Kind::Unreachable, "web_closed", "over")),
        }
    }

    fn code(&self, request: &WebCodeRequest) -> Result<WebCode, Diagnostic> {
        self.note(format!("code read_only={}", request.read_only));
        for signal in &self.signals {
            (self.told.lock().unwrap().as_ref().unwrap())(*signal);
        }
        Ok(WebCode {
            code: "c0de".to_owned(),
            address: match self.condition {
                "elsewhere" => "http://203.0.113.9:8930/".to_owned(),
                _ => "http://127.0.0.1:8930/".to_owned(),
            },
            expires_at: NOW,
        })
    }

    fn end_sessions(&self) -> Result<WebLoggedOut, Diagnostic> {
        self.note("end_sessions");
        Ok(WebLoggedOut { sessions: 2 })
    }
}
