//! Git's settings as text, and those that the environment gives (`git -c`, `GIT_CONFIG_COUNT`).

use std::ffi::OsString;

/// Most settings that the environment may give.
const COUNT_MAX: usize = 10_000;

/// A variable or setting that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingError {
    pub(crate) name: String,
    pub(crate) why: String,
}

fn refused<T>(name: &str, why: impl Into<String>) -> Result<T, SettingError> {
    let (name, why) = (name.to_owned(), why.into());
    Err(SettingError { name, why })
}

/// The settings of the environment in the form of git's files, the later of which win.
pub(crate) fn of_environment(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<String, SettingError> {
    let text_of = |name: &str| match variable(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => refused(name, "is not UTF-8"),
    };
    let mut text = String::new();
    let count = text_of("GIT_CONFIG_COUNT")?.filter(|count| !count.is_empty());
    if let Some(count) = count {
        let count = match count.parse() {
            Ok(count) if count <= COUNT_MAX => count,
            _ => {
                return refused(
                    "GIT_CONFIG_COUNT",
                    format!("is `{count}`, not a number of settings"),
                );
            }
        };
        for number in 0..count {
            let pair = ["KEY", "VALUE"].map(|of| format!("GIT_CONFIG_{of}_{number}"));
            let mut values = Vec::new();
            for name in &pair {
                match text_of(name)? {
                    Some(value) => values.push(value),
                    None => return refused(name, "is missing"),
                }
            }
            if let [key, value] = values.as_slice() {
                add(&mut text, &pair[0], key, Some(value))?;
            }
        }
    }
    let name = "GIT_CONFIG_PARAMETERS";
    if let Some(parameters) = text_of(name)? {
        let mut rest = parameters.trim_start();
        while !rest.is_empty() {
            let Some((first, after)) = unquoted(rest) else {
                return refused(name, "is not as `git -c` writes it");
            };
            let (key, value, after) = match after.strip_prefix('=') {
                // `'key'='value'`, and `'key'=` for one without a value.
                Some(after) if after.starts_with('\'') => match unquoted(after) {
                    Some((value, after)) => (first, Some(value), after),
                    None => return refused(name, "is not as `git -c` writes it"),
                },
                Some(after) => (first, None, after),
                // `'key=value'`, as older versions write it.
                None => match first.split_once('=') {
                    Some((key, value)) => (key.to_owned(), Some(value.to_owned()), after),
                    None => (first, None, after),
                },
            };
            add(&mut text, name, &key, value.as_deref())?;
            rest = after.trim_start();
        }
    }
    Ok(text)
}

/// A word in single quotes as git's `sq_quote` writes it, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut word = String::new();
    loop {
        let (plain, after) = rest.split_once('\'')?;
        word.push_str(plain);
        let escaped = after.strip_prefix('\\').and_then(|after| {
            let mut chars = after.chars();
            let escaped = chars.next().filter(|c| matches!(c, '\'' | '!'))?;
            Some((escaped, chars.as_str().strip_prefix('\'')?))
        });
        match escaped {
            Some((escaped, after)) => {
                word.push(escaped);
                rest = after;
            }
            None => return Some((word, after)),
        }
    }
}

fn add(
    text: &mut String,
    variable: &str,
    name: &str,
    value: Option<&str>,
) -> Result<(), SettingError> {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let fits = name.split_once('.').is_some_and(|(section, rest)| {
        let (inner, key) = rest.rsplit_once('.').unwrap_or(("", rest));
        is_word(section)
            && is_word(key)
            && key.starts_with(|c: char| c.is_ascii_alphabetic())
            && !inner.contains(['\n', '\0'])
    });
    if !fits {
        return refused(
            variable,
            format!("gives `{}`, which is no setting", name.escape_debug()),
        );
    }
    setting(text, name, value);
    Ok(())
}

/// Appends one setting in the form of git's files.
pub fn setting(text: &mut String, name: &str, value: Option<&str>) {
    let escaped = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        text.replace('\n', "\\n").replace('\t', "\\t")
    };
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    match rest.rsplit_once('.') {
        Some((subsection, key)) => {
            let subsection = subsection.replace('\\', "\\\\").replace('"', "\\\"");
            text.extend(["[", section, " \"", &subsection, "\"]\n\t", key]);
        }
        None => text.extend(["[", section, "]\n\t", rest]),
    }
    match value {
        Some(value) => text.extend([" = \"", &escaped(value), "\"\n"]),
        None => text.push('\n'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<String, SettingError> {
        of_environment(|wanted| {
            let mut found = variables.iter().filter(|(name, _)| *name == wanted);
            found.next().map(|(_, value)| value.into())
        })
    }

    #[test]
    fn settings_of_the_environment_are_read_as_git_reads_them() {
        let counted = [
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "A \"B\""),
            ("GIT_CONFIG_KEY_1", "url.git@x:.insteadOf"),
            ("GIT_CONFIG_VALUE_1", ""),
            (
                "GIT_CONFIG_PARAMETERS",
                r"'core.eol'='lf' 'a.b'= 'user.name=O'\''Neil'",
            ),
        ];
        let wanted = "[user]\n\tname = \"A \\\"B\\\"\"\n[url \"git@x:\"]\n\tinsteadOf = \"\"\n\
                      [core]\n\teol = \"lf\"\n[a]\n\tb\n[user]\n\tname = \"O'Neil\"\n";
        assert_eq!(read(&counted).unwrap(), wanted);
        assert_eq!(read(&[]).unwrap(), "");
        assert_eq!(read(&[("GIT_CONFIG_COUNT", "")]).unwrap(), "");
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_its_name() {
        let table: [(&[(&str, &str)], &str); 4] = [
            (&[("GIT_CONFIG_COUNT", "many")], "GIT_CONFIG_COUNT"),
            (&[("GIT_CONFIG_COUNT", "1")], "GIT_CONFIG_KEY_0"),
            (
                &[
                    ("GIT_CONFIG_COUNT", "1"),
                    ("GIT_CONFIG_KEY_0", "user"),
                    ("GIT_CONFIG_VALUE_0", "x"),
                ],
                "GIT_CONFIG_KEY_0",
            ),
            (
                &[("GIT_CONFIG_PARAMETERS", "user.name=x")],
                "GIT_CONFIG_PARAMETERS",
            ),
        ];
        for (variables, name) in table {
            assert_eq!(read(variables).unwrap_err().name, name, "{variables:?}");
        }
    }
}
