//! How people are told: by a command, a webhook or a mail.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
pub use url::Url;

use super::agent::KeySource;
use super::hook::HookText;

/// Longest address of a mail in bytes, as SMTP has it.
const MAIL_BYTES_MAX: usize = 254;

/// One way to tell people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Channel {
    /// A shell command, with the event as JSON on its standard input.
    Command(HookText),
    /// A request to a web server.
    Webhook {
        /// Where its address is.
        webhook: AddressSource,
        /// What is sent.
        form: WebhookForm,
    },
    /// A mail, handed to `sendmail`.
    Mail {
        /// To whom.
        sendmail: Vec<MailAddress>,
    },
}

impl Channel {
    /// The command, where it is one.
    pub const fn command(&self) -> Option<&HookText> {
        match self {
            Channel::Command(hook) => Some(hook),
            Channel::Webhook { .. } | Channel::Mail { .. } => None,
        }
    }

    /// Where the address of its webhook is, where it has one.
    pub const fn address(&self) -> Option<&AddressSource> {
        match self {
            Channel::Webhook { webhook, .. } => Some(webhook),
            Channel::Command(_) | Channel::Mail { .. } => None,
        }
    }
}

/// As people are shown it, without what is secret.
impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Command(hook) => f.write_str(&hook.command),
            Channel::Webhook { webhook, form } => write!(f, "webhook {webhook} as {}", form.name()),
            Channel::Mail { sendmail } => {
                let to: Vec<&str> = sendmail.iter().map(MailAddress::as_str).collect();
                write!(f, "mail to {}", to.join(", "))
            }
        }
    }
}

/// What a webhook is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookForm {
    /// The event as commands get it.
    #[default]
    Json,
    /// `{"text": …}`, which Slack, Mattermost, Rocket.Chat and others take.
    Slack,
    /// A topic of ntfy: the text, with its title in headers.
    Ntfy,
    /// A ping of Healthchecks: success, failure or a line of its log.
    Healthchecks,
}

impl WebhookForm {
    /// All of them, in the order of documentation.
    pub const ALL: [WebhookForm; 4] = [
        WebhookForm::Json,
        WebhookForm::Slack,
        WebhookForm::Ntfy,
        WebhookForm::Healthchecks,
    ];

    /// Its name in definitions.
    pub const fn name(self) -> &'static str {
        match self {
            WebhookForm::Json => "json",
            WebhookForm::Slack => "slack",
            WebhookForm::Ntfy => "ntfy",
            WebhookForm::Healthchecks => "healthchecks",
        }
    }
}

/// Where the address of a webhook is. Path and query of an address are its secret: no form of this shows them, and of
/// an address that is named elsewhere not even the host.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AddressSource {
    /// The engine's environment, a credential or a file has it.
    Named(KeySource),
    /// The definition has it.
    Written(Url),
}

impl fmt::Display for AddressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressSource::Named(source) => source.fmt(f),
            AddressSource::Written(url) => {
                write!(
                    f,
                    "{}://{}",
                    url.scheme(),
                    url.host_str().unwrap_or_default()
                )?;
                if let Some(port) = url.port() {
                    write!(f, ":{port}")?;
                }
                // Plain, so that a client can read it again as the address that it is shown as.
                f.write_str("/...")
            }
        }
    }
}

impl fmt::Debug for AddressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AddressSource {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<AddressSource, AddressError> {
        if let Ok(source) = text.parse() {
            return Ok(AddressSource::Named(source));
        }
        address(text).map(AddressSource::Written)
    }
}

impl TryFrom<String> for AddressSource {
    type Error = AddressError;

    fn try_from(text: String) -> Result<AddressSource, AddressError> {
        text.parse()
    }
}

impl From<AddressSource> for String {
    fn from(source: AddressSource) -> String {
        source.to_string()
    }
}

impl JsonSchema for AddressSource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AddressSource".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Why a text is no address of a webhook. It does not repeat the text, which is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing to connect to.
    #[error("it is no address of a web server")]
    Malformed,
    /// Another protocol.
    #[error("it is neither `https://` nor `http://`")]
    Scheme,
    /// A name or a password before the host.
    #[error("it has a user or a password before its host, which is not sent")]
    Credentials,
}

/// Reads the address of a webhook.
///
/// # Errors
/// It is none that a request can be sent to.
pub fn address(text: &str) -> Result<Url, AddressError> {
    // The standard way to read one drops line ends and blanks.
    if !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(AddressError::Malformed);
    }
    let url = Url::parse(text).map_err(|_| AddressError::Malformed)?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(AddressError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    Ok(url)
}

/// Who gets a mail: `name@host`, or the name of a user of the machine. Nothing in it means anything to a mail server or
/// in a header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(String);

/// A text that is no plain address of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no mail address such as `ada@example.org`, nor the name of a user")]
pub struct MailAddressError;

impl MailAddress {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MailAddress {
    type Err = MailAddressError;

    fn from_str(text: &str) -> Result<MailAddress, MailAddressError> {
        let (name, host) = match text.split_once('@') {
            Some((name, host)) => (name, Some(host)),
            None => (text, None),
        };
        let of = |part: &str, more: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            !part.is_empty() && part.chars().all(fits) && !part.starts_with(['-', '.'])
        };
        let fits = text.len() <= MAIL_BYTES_MAX
            && of(name, "._+-='&")
            && host.is_none_or(|host| of(host, ".-") && !host.ends_with('.'));
        fits.then(|| MailAddress(text.to_owned()))
            .ok_or(MailAddressError)
    }
}

impl TryFrom<String> for MailAddress {
    type Error = MailAddressError;

    fn try_from(text: String) -> Result<MailAddress, MailAddressError> {
        text.parse()
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> String {
        address.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_an_address_shows_what_is_secret() {
        let text = "https://hooks.example.org:8443/services/T0/SECRET?token=SECRET";
        let written: AddressSource = text.parse().unwrap();
        let channel = Channel::Webhook {
            webhook: written,
            form: WebhookForm::Slack,
        };
        let shown = format!(
            "{channel} {channel:?} {}",
            serde_json::to_string(&channel).unwrap()
        );
        assert!(
            !shown.contains("SECRET") && !shown.contains("services"),
            "{shown}"
        );
        assert!(
            shown.contains("https://hooks.example.org:8443/..."),
            "{shown}"
        );
        let named: AddressSource = "credential:hook".parse().unwrap();
        assert_eq!(named.to_string(), "credential:hook");
        let read: Channel =
            serde_json::from_str(&serde_json::to_string(&channel).unwrap()).unwrap();
        assert_eq!(read.to_string(), channel.to_string());
    }

    #[test]
    fn what_is_no_address_is_told_without_repeating_it() {
        for (text, expect) in [
            ("https://ntfy.example.org/topic", None),
            ("http://[::1]:8080/", None),
            ("ftp://h/SECRET", Some(AddressError::Scheme)),
            ("mailto:a@b", Some(AddressError::Scheme)),
            ("https://u:SECRET@h/", Some(AddressError::Credentials)),
            ("https://u@h/", Some(AddressError::Credentials)),
            ("https://", Some(AddressError::Malformed)),
            ("https://h:99999/", Some(AddressError::Malformed)),
            ("https://h/a\nb", Some(AddressError::Malformed)),
            ("hooks.example.org/SECRET", Some(AddressError::Malformed)),
        ] {
            assert_eq!(address(text).err(), expect, "{text}");
            let said = expect.map_or(String::new(), |error| error.to_string());
            assert!(!said.contains("SECRET"), "{said}");
        }
    }

    #[test]
    fn a_mail_address_holds_nothing_that_a_mail_server_would_act_on() {
        for text in [
            "ada@example.org",
            "root",
            "o'neil+x@sub.example.org",
            "a@localhost",
        ] {
            assert_eq!(text.parse::<MailAddress>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "@",
            "a@",
            "@b",
            "a@b@c",
            "a b@c",
            "a@b\nBcc: c@d",
            "a@b\r",
            "a@b,c@d",
            "|cat",
            "\"|cat\"@h",
            "/etc/x",
            ":include:/x",
            "-oQ/tmp",
            "<a@b>",
            "a@b.",
            "ä@b",
        ] {
            assert_eq!(
                text.parse::<MailAddress>(),
                Err(MailAddressError),
                "{text:?}"
            );
        }
    }
}
