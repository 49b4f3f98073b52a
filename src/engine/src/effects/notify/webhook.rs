//! A notice as a request to a web server.

use super::super::Performer;
use super::{Told, Undelivered};
use crate::model::channel::{AddressSource, WebhookForm};

#[cfg(not(feature = "llm"))]
impl Performer {
    #[expect(clippy::unused_self, reason = "the same as where there is a client")]
    pub(super) fn post_told(
        &self,
        _told: &Told<'_>,
        _source: &AddressSource,
        _form: WebhookForm,
    ) -> Result<String, Undelivered> {
        let why = "this build has no client for the web: build it with the feature `llm`";
        Err(why.to_owned().into())
    }
}

#[cfg(feature = "llm")]
impl Performer {
    /// Sends one request; answered by 2xx, it was told.
    pub(super) fn post_told(
        &self,
        told: &Told<'_>,
        source: &AddressSource,
        form: WebhookForm,
    ) -> Result<String, Undelivered> {
        use super::{SAID_BYTES_MAX, forms};
        use crate::model::schedule::cut;
        use workerctl_agent::{POST_DEADLINE, Post, PostError, Stop};

        // The first words of an answer tell, of a command it is the last.
        let told_of = |what: &str| cut(what, 2 * SAID_BYTES_MAX).to_owned();
        let url = self.address(source)?;
        let request = forms::request(form, url, told.notice.news, &told.message, &told.envelope);
        let post = Post {
            url: request.url.into(),
            hides_host: matches!(source, AddressSource::Named(_)),
            headers: request.headers,
            body: request.body,
            deadline: POST_DEADLINE,
        };
        let client = self.client()?;
        let stop = Stop::new();
        let asked = stop.clone();
        told.telling.stop.when_asked(Box::new(move || asked.stop()));
        match client.post(&post, &stop) {
            Ok(posted) if posted.text.is_empty() => Ok(format!("status {}", posted.status)),
            Ok(posted) => Ok(told_of(&format!(
                "status {}: {}",
                posted.status, posted.text
            ))),
            Err(error) => {
                let wait = match &error {
                    PostError::Refused { retry_after, .. } => *retry_after,
                    _ => None,
                };
                Err(Undelivered {
                    why: told_of(&error.to_string()),
                    wait_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
                })
            }
        }
    }

    /// The address itself, looked up anew each time.
    fn address(&self, source: &AddressSource) -> Result<crate::model::channel::Url, String> {
        match source {
            AddressSource::Written(url) => Ok(url.clone()),
            AddressSource::Named(named) => {
                let text = super::super::super::model_keys::value(named, &self.parts.environment)?;
                crate::model::channel::address(text.expose()).map_err(|error| error.to_string())
            }
        }
    }
}
