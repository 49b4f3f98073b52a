//! A notice as a mail.

use super::message::Message;
use super::words::encoded;
use crate::model::Timestamp;
use crate::model::channel::MailAddress;

/// Hands standard input to the mail server. Administrators' directories are often in no `PATH` of a service.
pub(super) const SENDMAIL: &str = r#"PATH="$PATH:/usr/sbin:/usr/lib"; exec sendmail -t -i"#;

/// The whole mail. The server adds who it is from, and its id.
pub(super) fn mail(to: &[MailAddress], message: &Message, now: Timestamp) -> String {
    let to: Vec<&str> = to.iter().map(MailAddress::as_str).collect();
    // Lines of headers end at 78 characters where they can.
    let (to, subject) = (
        to.join(",\n "),
        encoded(&message.title).replace("?= =?", "?=\n =?"),
    );
    format!(
        "To: {to}\nSubject: {subject}\nDate: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}",
        now.rfc2822(),
        message.body
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_has_its_headers_and_nothing_that_it_tells_becomes_one() {
        let message = Message {
            title: "wörker failed".to_owned(),
            body: "Why: ü\n".to_owned(),
        };
        let to = ["a@b.org".parse().unwrap(), "root".parse().unwrap()];
        let made = mail(&to, &message, Timestamp::from_millis(1_800_000_000_000));
        assert_eq!(
            made,
            "To: a@b.org,\n root\nSubject: =?UTF-8?B?d8O2cmtlciBmYWlsZWQ=?=\n\
             Date: Fri, 15 Jan 2027 08:00:00 +0000\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n\
             Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nWhy: ü\n"
        );
    }
}
