//! What each form of a webhook sends.

use std::borrow::Cow;

use serde_json::json;

use super::message::Message;
use super::words::encoded;
use crate::model::News;
use crate::model::channel::{Url, WebhookForm};

/// One request, always a POST.
pub(super) struct Request {
    /// The address, with what the form adds to it.
    pub url: Url,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: String,
}

/// The request that tells this.
pub(super) fn request(
    form: WebhookForm,
    url: Url,
    news: News,
    message: &Message,
    envelope: &serde_json::Value,
) -> Request {
    const JSON: &str = "application/json";
    const TEXT: &str = "text/plain; charset=utf-8";
    let of = |kind: &str, url, body| Request {
        url,
        headers: vec![("content-type", kind.to_owned())],
        body,
    };
    match form {
        WebhookForm::Json => of(JSON, url, envelope.to_string()),
        WebhookForm::Slack => {
            let text = format!("*{}*\n{}", message.title, message.body.trim_end());
            of(JSON, url, json!({"text": escaped(&text)}).to_string())
        }
        WebhookForm::Ntfy => {
            let mut request = of(TEXT, url, message.body.trim_end().to_owned());
            let (priority, tag) = urgency(news);
            request.headers.extend([
                ("title", encoded(&message.title)),
                ("priority", priority.to_owned()),
                ("tags", tag.to_owned()),
            ]);
            let page = envelope["url"].as_str();
            let click = page.map(|page| ("click", page.to_owned()));
            request.headers.extend(click);
            request
        }
        WebhookForm::Healthchecks => of(TEXT, pinged(url, news), message.text()),
    }
}

/// The three characters that begin something in texts of Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Priority and tag, of which ntfy makes a picture.
fn urgency(news: News) -> (&'static str, &'static str) {
    match news {
        News::Failed | News::Paused | News::PushFailed => ("high", "warning"),
        News::Missed | News::Expired => ("high", "hourglass"),
        News::Recovered | News::Pushed => ("default", "white_check_mark"),
        News::Awaiting => ("default", "raised_hand"),
    }
}

/// A ping of the address is a success.
fn pinged(mut url: Url, news: News) -> Url {
    let signal: Cow<'_, str> = match news {
        News::Recovered | News::Pushed => return url,
        News::Failed | News::Missed | News::Paused | News::Expired | News::PushFailed => {
            "fail".into()
        }
        // Neither: a line in the log of the check.
        News::Awaiting => "log".into(),
    };
    // Every address of the web has segments.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().push(&signal);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(form: WebhookForm, news: News, url: &str) -> Request {
        let message = Message {
            title: "w/s failed – ü".to_owned(),
            body: "Why: a < b & c\n".to_owned(),
        };
        request(
            form,
            url.parse().unwrap(),
            news,
            &message,
            &json!({"text": "t", "url": "http://127.0.0.1:8930/runs/R"}),
        )
    }

    #[test]
    fn each_form_is_what_its_service_takes() {
        let url = "https://h.example/topic?auth=x";
        let json = made(WebhookForm::Json, News::Failed, url);
        assert_eq!(
            (json.body.as_str(), json.url.as_str()),
            (
                "{\"text\":\"t\",\"url\":\"http://127.0.0.1:8930/runs/R\"}",
                url
            )
        );
        assert_eq!(
            json.headers,
            [("content-type", "application/json".to_owned())]
        );
        let slack = made(WebhookForm::Slack, News::Failed, url);
        assert_eq!(
            slack.body,
            "{\"text\":\"*w/s failed – ü*\\nWhy: a &lt; b &amp; c\"}"
        );
        let ntfy = made(WebhookForm::Ntfy, News::Failed, url);
        assert_eq!(ntfy.body, "Why: a < b & c");
        assert_eq!(
            ntfy.headers[1..],
            [
                ("title", "=?UTF-8?B?dy9zIGZhaWxlZCDigJMgw7w=?=".to_owned()),
                ("priority", "high".to_owned()),
                ("tags", "warning".to_owned()),
                ("click", "http://127.0.0.1:8930/runs/R".to_owned()),
            ]
        );
    }

    #[test]
    fn a_check_is_pinged_by_what_happened_with_its_query_where_it_was() {
        for (url, news, expect) in [
            ("https://hc/uuid", News::Recovered, "https://hc/uuid"),
            ("https://hc/uuid", News::Failed, "https://hc/uuid/fail"),
            ("https://hc/uuid/", News::Missed, "https://hc/uuid/fail"),
            (
                "https://hc/key/slug?create=1",
                News::Failed,
                "https://hc/key/slug/fail?create=1",
            ),
            ("https://hc/uuid", News::Awaiting, "https://hc/uuid/log"),
        ] {
            let made = made(WebhookForm::Healthchecks, news, url);
            assert_eq!(made.url.as_str(), expect);
            assert!(
                made.body.starts_with("w/s failed – ü\nWhy"),
                "{}",
                made.body
            );
        }
    }
}
