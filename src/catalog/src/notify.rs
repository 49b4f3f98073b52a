//! `notify`: how people are told how runs went.

use super::keys::{CHANNEL, KEY_REFUSED, NOTIFY, refuse_unknown, report_unknown, suggest};
use super::models::{ADDRESS, NOTIFY_FORM, WEBHOOK_LITERAL};
use super::open::Root;
use super::report::Report;
use super::settings::hook_of;
use super::texts::PendingText;
use super::tree::Data;
use super::view::View;
use crate::model::Notify;
use crate::model::channel::{AddressSource, Channel, MailAddress, WebhookForm};
use crate::model::threshold::{RUNS_MAX, Threshold};

/// Addresses that one mail may go to.
const ADDRESSES_MAX: usize = 20;

/// The ways of telling, of which each channel has one.
const WAYS: [&str; 3] = ["command", "webhook", "sendmail"];

const EXPECTED: &str = "a command, or a map with `command`, `webhook` or `sendmail`";

/// Reads a `notify` map.
pub(crate) fn notify<'a>(
    view: View<'a>,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Notify {
    let expected = "a map with keys such as `on_failure`";
    if !NOTIFY.is_map(view, "notify", expected, report) {
        return Notify::default();
    }
    let mut read = |key: &str| channel(view.written(key)?, key, texts, report);
    Notify {
        on_failure: read("on_failure"),
        on_recovery: read("on_recovery"),
        on_missed: read("on_missed"),
        on_approval: read("on_approval"),
        after: view
            .written("after")
            .and_then(|view| threshold(view, report)),
        foreground: view
            .written("foreground")
            .and_then(|view| view.flag("foreground", report)),
    }
}

/// Warns of commands of notifications, such as `./tell`, whose file is missing: skills can run without them. Returns the paths, relative to the workspace.
pub(crate) fn report_missing(
    commands: &[PendingText<'_>],
    root: &Root,
    report: &mut Report,
) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let mut paths = Vec::new();
    for command in commands {
        let program = command.text.split_whitespace().next().unwrap_or_default();
        let Some(path) = program
            .strip_prefix("./")
            .filter(|path| path.chars().all(is_plain))
        else {
            continue;
        };
        if !root.path().join(path).exists() {
            let message = format!("`{program}` does not exist: skills run, and this command fails");
            let hint = "create it, or correct the path, which is relative to the workspace";
            report.warning("command-file-missing", command.view.place(), message, hint);
        }
        paths.push(path.to_owned());
    }
    paths
}

/// Reads after how many failures people are notified.
fn threshold(view: View<'_>, report: &mut Report) -> Option<Threshold> {
    let expected =
        "failures in a row such as `3`, or failures among the last runs such as `2 of 5`";
    let (Data::Text(_) | Data::Number(_), Some(text)) = (view.data(), view.scalar_text()) else {
        view.wrong_type("after", expected, report);
        return None;
    };
    let read = text.parse::<Threshold>();
    if let Err(why) = read {
        let message = format!("`after: {}` {why}", text.escape_debug());
        let hint = format!("write {expected}; 1 to {RUNS_MAX} runs");
        report.error("out-of-range", view.place(), message, &hint);
    }
    read.ok()
}

/// Reads one way of telling: a command, or a map.
pub(crate) fn channel<'a>(
    view: View<'a>,
    key: &str,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<Channel> {
    match view.data() {
        Data::Text(text) => {
            if let Some(form) = address_form(text.trim()) {
                let message = format!("`{key}` as text is a command, and this is an address");
                let hint = format!("write `{key}: {form}`");
                report.error(NOTIFY_FORM, view.place(), message, &hint);
                return None;
            }
            hook_of(view, None, key, texts, report).map(Channel::Command)
        }
        Data::Map(_) => of_map(view, key, texts, report),
        Data::Null | Data::List(_) | Data::Bool(_) | Data::Number(_) => {
            view.wrong_type(key, EXPECTED, report);
            None
        }
    }
}

/// The form of a channel whose address is written alone. The address of a webhook may be a secret.
fn address_form(text: &str) -> Option<String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Some(
            "{webhook: URL}` with that address, or better `{webhook: env:NAME}".to_owned(),
        );
    }
    let is_mail = text.contains('@') && !text.contains('/');
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let address = address.parse::<MailAddress>().ok().filter(|_| is_mail)?;
    Some(format!("{{sendmail: {}}}", address.as_str()))
}

fn of_map<'a>(
    view: View<'a>,
    key: &str,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<Channel> {
    let before = report.errors();
    let [command, webhook, sendmail] = WAYS.map(|way| view.written(way));
    match command {
        Some(_) => report_unknown(view, &CHANNEL, report),
        // It may be `webhook` misspelt, and its line is shown to nobody then.
        None => refuse_unknown(view, &CHANNEL.names(), KEY_REFUSED, report),
    }
    let timeout = view.written("timeout");
    let form = view.written("form");
    for (name, beside, written, owner) in [
        ("timeout", "command", timeout, command),
        ("form", "webhook", form, webhook),
    ] {
        if let (Some(stray), None) = (written, owner) {
            let message = format!("`{name}` of `{key}` belongs to `{beside}`, which is not there");
            let hint = format!("remove it, or add `{beside}`");
            report.error(NOTIFY_FORM, stray.key_place(), message, &hint);
        }
    }
    let read = match (command, webhook, sendmail) {
        (Some(command), None, None) => {
            hook_of(command, timeout, key, texts, report).map(Channel::Command)
        }
        (None, Some(webhook), None) => {
            let form = form.map_or(Some(WebhookForm::Json), |view| webhook_form(view, report));
            let address = address(webhook, report);
            address
                .zip(form)
                .map(|(webhook, form)| Channel::Webhook { webhook, form })
        }
        (None, None, Some(sendmail)) => {
            addresses(sendmail, report).map(|sendmail| Channel::Mail { sendmail })
        }
        (None, None, None) => {
            let message = format!("`{key}` has no channel");
            let hint = "write a command, or one of `command`, `webhook` and `sendmail`";
            report.error(NOTIFY_FORM, view.place(), message, hint);
            None
        }
        _ => {
            let message =
                format!("`{key}` has more than one of `command`, `webhook` and `sendmail`");
            let hint = "keep one of them; a command can do several things";
            report.error(NOTIFY_FORM, view.place(), message, hint);
            None
        }
    };
    read.filter(|_| report.errors() == before)
}

/// Reads where an address is. What stands there may be a secret: it is never repeated.
fn address(view: View<'_>, report: &mut Report) -> Option<AddressSource> {
    let text = view.scalar_text().unwrap_or_default();
    match text.parse() {
        Ok(AddressSource::Written(url)) => {
            report.note(
                WEBHOOK_LITERAL,
                view.place(),
                "every reader of this file can use the address of `webhook`".to_owned(),
                "if it is a secret, refer to it with `env:NAME`, `credential:NAME` or `file:/path`",
            );
            Some(AddressSource::Written(url))
        }
        Ok(AddressSource::Named(source)) => Some(AddressSource::Named(source)),
        Err(error) => {
            let message = format!("`webhook` cannot be used: {error}");
            let hint = "write `https://host/path`, or where it is: `env:NAME`, `credential:NAME` or `file:/path`";
            report.error(ADDRESS, view.place(), message, hint);
            None
        }
    }
}

fn webhook_form(view: View<'_>, report: &mut Report) -> Option<WebhookForm> {
    let text = view.filled_text("form", report)?;
    let found = WebhookForm::ALL.into_iter().find(|one| one.name() == text);
    if found.is_none() {
        let known = WebhookForm::ALL.map(WebhookForm::name);
        let hint = suggest(&text, &known).map_or_else(
            || format!("write one of `{}`", known.join("`, `")),
            |meant| format!("did you mean `{meant}`?"),
        );
        let message = format!("`form: {}` is not known", text.escape_debug());
        report.error("unknown-value", view.place(), message, &hint);
    }
    found
}

fn addresses(view: View<'_>, report: &mut Report) -> Option<Vec<MailAddress>> {
    let before = report.errors();
    let texts = view.texts("sendmail", report)?;
    if texts.is_empty() || texts.len() > ADDRESSES_MAX {
        let message = format!("`sendmail` has {} addresses", texts.len());
        let hint = format!("name 1 to {ADDRESSES_MAX}, or a list that the mail server keeps");
        report.error("mail-address", view.place(), message, &hint);
    }
    let read = |text: &String| match text.parse() {
        Ok(address) => Some(address),
        Err(error) => {
            let message = format!("`{}` of `sendmail`: {error}", text.escape_debug());
            let hint = "write `name@host` in plain letters, without a name around it, each its own item of a list";
            report.error("mail-address", view.place(), message, hint);
            None
        }
    };
    let found: Vec<MailAddress> = texts.iter().filter_map(read).collect();
    (report.errors() == before).then_some(found)
}
