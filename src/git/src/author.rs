//! Who a run's commit is by.

use std::env;
use std::path::Path;

use chrono::{DateTime, NaiveDateTime};
use git2::{Config, Signature, Time};
use serde::{Deserialize, Serialize};

use super::open::Handle;
use workerctl_landing::error::{GitError, git};

/// Who a commit is by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

/// Why there is no usable author.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    /// Neither configured here nor in git.
    #[error("no commit author is known: git has no `{missing}`")]
    Unset {
        /// The missing setting.
        missing: &'static str,
    },
    /// A value that would corrupt the commit.
    #[error("the commit author's {what} `{value}` is not usable: {why}")]
    Invalid {
        /// `name` or `mail address`.
        what: &'static str,
        /// The value, escaped.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A date of the environment in a form that is not read.
    #[error("`{variable}` is `{value}`, which is no date")]
    Date {
        /// The variable.
        variable: &'static str,
        /// Its value, escaped.
        value: String,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl AuthorError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unset { .. } => "author_unset",
            Self::Invalid { .. } | Self::Date { .. } => "author_invalid",
            Self::Git(error) => error.code(),
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unset { .. } => Some(
                "git config --global user.name 'Your Name'\n\
                 git config --global user.email 'you@example.com'"
                    .to_owned(),
            ),
            Self::Invalid { .. } => Some("write it as `Your Name <you@example.com>`".to_owned()),
            Self::Date { variable, .. } => Some(format!(
                "write it as `2005-04-07T22:13:13+02:00` or `@1112911993 +0200`, or unset `{variable}`"
            )),
            Self::Git(error) => error.hint(),
        }
    }
}

/// Who a commit is by and who makes it, as git would write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who wrote the change.
    pub author: Author,
    /// Who commits it; the logs of references have it too.
    pub committer: Author,
    author_date: Option<GivenDate>,
    committer_date: Option<GivenDate>,
}

impl From<Author> for Identity {
    /// One who both writes and commits, when it is made.
    fn from(author: Author) -> Self {
        Self {
            committer: author.clone(),
            author,
            author_date: None,
            committer_date: None,
        }
    }
}

impl Identity {
    /// Author and committer as a commit has them; `time` is when it is made, see [`Self::author_time`].
    pub(super) fn signatures(
        &self,
        time: (i64, i32),
    ) -> Result<[Signature<'static>; 2], git2::Error> {
        let signature = |who: &Author, (time_s, offset_min)| {
            Signature::new(&who.name, &who.email, &Time::new(time_s, offset_min))
        };
        Ok([
            signature(&self.author, self.author_time(time))?,
            signature(&self.committer, self.committer_time(time))?,
        ])
    }

    /// When the change was written, in seconds since 1970, and the offset of the zone from UTC in minutes: as
    /// `GIT_AUTHOR_DATE` says, else `otherwise`.
    pub fn author_time(&self, otherwise: (i64, i32)) -> (i64, i32) {
        self.author_date
            .map_or(otherwise, |date| date.in_zone(otherwise.1))
    }

    /// When it is committed: as `GIT_COMMITTER_DATE` says, else `otherwise`.
    pub fn committer_time(&self, otherwise: (i64, i32)) -> (i64, i32) {
        self.committer_date
            .map_or(otherwise, |date| date.in_zone(otherwise.1))
    }
}

/// The author of a run's commit, see [`identity`].
pub fn author(cwd: &Path, configured: Option<&str>) -> Result<Author, AuthorError> {
    Ok(identity(cwd, configured)?.author)
}

/// The identity of a run's commit: `configured` (`Name <mail>`, from `commit.author`); else, as for git itself,
/// `GIT_AUTHOR_*` and `GIT_COMMITTER_*` of this process, `author.*` and `committer.*` of git's configuration, `user.*`,
/// and of the mail address `EMAIL`. Names that git would guess from the machine are not taken.
///
/// # Errors
/// None is known, or a value is not usable.
pub fn identity(cwd: &Path, configured: Option<&str>) -> Result<Identity, AuthorError> {
    let dates = (date("GIT_AUTHOR_DATE")?, date("GIT_COMMITTER_DATE")?);
    let (author, committer) = if let Some(text) = configured {
        let author = parsed(text)?;
        (author.clone(), author)
    } else {
        let config = configuration(cwd)?;
        (role(&config, "author")?, role(&config, "committer")?)
    };
    Ok(Identity {
        author,
        committer,
        author_date: dates.0,
        committer_date: dates.1,
    })
}

fn parsed(text: &str) -> Result<Author, AuthorError> {
    let invalid = || AuthorError::Invalid {
        what: "form",
        value: text.escape_debug().to_string(),
        why: "it is not `Name <mail>`",
    };
    let (name, rest) = text.split_once('<').ok_or_else(invalid)?;
    let email = rest.trim_end().strip_suffix('>').ok_or_else(invalid)?;
    checked(name.trim(), email.trim())
}

fn configuration(cwd: &Path) -> Result<Config, GitError> {
    let config = Handle::open(cwd)?.repo.config();
    let config = config.and_then(|mut config| config.snapshot());
    config.map_err(git("read the configuration"))
}

/// Name and mail address of an `author` or a `committer`.
fn role(config: &Config, role: &str) -> Result<Author, AuthorError> {
    let find = |what: &str, missing: &'static str| {
        let variable = format!("GIT_{}_{}", role.to_uppercase(), what.to_uppercase());
        let mut found = env::var(variable)
            .ok()
            .filter(|value| !value.trim().is_empty());
        for key in [format!("{role}.{what}"), format!("user.{what}")] {
            found = found.or_else(|| {
                let value = config.get_string(&key).ok();
                value.filter(|value| !value.trim().is_empty())
            });
        }
        if what == "email" {
            found = found.or_else(|| env::var("EMAIL").ok());
        }
        found
            .filter(|value| !value.trim().is_empty())
            .ok_or(AuthorError::Unset { missing })
    };
    let (name, email) = (find("name", "user.name")?, find("email", "user.email")?);
    checked(name.trim(), email.trim())
}

/// A date of the environment, which need not name its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GivenDate {
    /// Seconds since 1970 in UTC, or in the zone that is not named.
    seconds: i64,
    offset_min: Option<i32>,
}

impl GivenDate {
    fn in_zone(self, offset_min: i32) -> (i64, i32) {
        match self.offset_min {
            Some(offset_min) => (self.seconds, offset_min),
            None => (self.seconds - i64::from(offset_min) * 60, offset_min),
        }
    }

    /// One of the forms that git documents: its own (`@1112911993 +0200`), RFC 2822 and ISO 8601.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((seconds, zone)) = text.split_once(' ')
            && let Ok(seconds) = seconds.trim_start_matches('@').parse()
        {
            let zone = DateTime::parse_from_str(&format!("1970-01-02 00:00 {zone}"), "%F %R %z");
            let offset_min = Some(zone.ok()?.offset().local_minus_utc() / 60);
            return Some(Self {
                seconds,
                offset_min,
            });
        }
        let utc = text.strip_suffix('Z').map(|plain| format!("{plain}+0000"));
        let text = utc.as_deref().unwrap_or(text);
        let forms = ["%F %T%.f %z", "%FT%T%.f%z", "%F %T%.f%z", "%FT%T%.f %z"];
        let zoned = forms
            .iter()
            .find_map(|form| DateTime::parse_from_str(text, form).ok());
        if let Some(zoned) = zoned.or_else(|| DateTime::parse_from_rfc2822(text).ok()) {
            return Some(Self {
                seconds: zoned.timestamp(),
                offset_min: Some(zoned.offset().local_minus_utc() / 60),
            });
        }
        let forms = ["%FT%T", "%F %T"];
        let plain = forms
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
        Some(Self {
            seconds: plain?.and_utc().timestamp(),
            offset_min: None,
        })
    }
}

fn date(variable: &'static str) -> Result<Option<GivenDate>, AuthorError> {
    let Some(text) = env::var_os(variable).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    match GivenDate::parse(&text) {
        Some(date) => Ok(Some(date)),
        None => Err(AuthorError::Date {
            variable,
            value: text.escape_debug().to_string(),
        }),
    }
}

fn checked(name: &str, email: &str) -> Result<Author, AuthorError> {
    for (what, value) in [("name", name), ("mail address", email)] {
        let why = if value.is_empty() {
            "it is empty"
        } else if value.len() > 256 {
            "it is longer than 256 bytes"
        } else if value.chars().any(char::is_control) {
            "it has a line end or another control character"
        } else if value.contains(['<', '>']) {
            "it has an angle bracket"
        } else if value.chars().all(|c| ".,:;\"' \\".contains(c)) {
            "git would drop all of it"
        } else {
            continue;
        };
        return Err(AuthorError::Invalid {
            what,
            value: value.escape_debug().to_string(),
            why,
        });
    }
    Ok(Author {
        name: name.to_owned(),
        email: email.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_forms_that_git_documents() {
        let table = [
            ("@1112904793 +0200", Some((1_112_904_793, 120))),
            ("1112904793 -0330", Some((1_112_904_793, -210))),
            (
                "Thu, 07 Apr 2005 22:13:13 +0200",
                Some((1_112_904_793, 120)),
            ),
            ("2005-04-07T22:13:13+02:00", Some((1_112_904_793, 120))),
            ("2005-04-07 22:13:13 +0200", Some((1_112_904_793, 120))),
            ("2005-04-07T20:13:13Z", Some((1_112_904_793, 0))),
            ("2005-04-07T20:13:13.5Z", Some((1_112_904_793, 0))),
            // Without a zone, in that of the run.
            ("2005-04-07T22:13:13", Some((1_112_908_393, 60))),
            ("yesterday", None),
            ("1112904793", None),
        ];
        for (text, wanted) in table {
            let found = GivenDate::parse(text).map(|date| date.in_zone(60));
            assert_eq!(found, wanted, "{text}");
        }
    }
}
