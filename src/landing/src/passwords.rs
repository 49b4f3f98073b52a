//! Settings of a repository that hold a password or a token.

/// Ends of the names of settings whose values are secrets, such as `http.<address>.extraHeader`.
const SECRETS: [&str; 4] = ["extraheader", "password", "smtppass", "token"];

/// The length from which the name of a user in an address is taken for a token.
const TOKEN_LENGTH_MIN: usize = 16;

/// Returns whether a setting holds a password or a token: by its name, or in an address of its name or value.
#[must_use]
pub fn holds_password(name: &str, value: &str) -> bool {
    let lower = name.trim().to_ascii_lowercase();
    let is_secret = SECRETS.iter().any(|end| lower.ends_with(end));
    // A credential helper may be a shell function that prints one.
    is_secret || value.contains("password=") || in_address(name) || in_address(value)
}

/// Returns an address without its user and password.
#[must_use]
pub fn without_user(address: &str) -> String {
    match user_of(address) {
        Some(user) => address.replacen(&format!("{user}@"), "", 1),
        None => address.to_owned(),
    }
}

fn in_address(text: &str) -> bool {
    let is_web = text.contains("http");
    // A user alone is no secret, but tokens are written in its place too.
    user_of(text)
        .is_some_and(|user| user.contains(':') || (is_web && user.len() >= TOKEN_LENGTH_MIN))
}

fn user_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let host = rest.split(['/', '?', '#', '"', ' ']).next()?;
    host.rsplit_once('@').map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_a_password_are_told_from_others() {
        for (name, value) in [
            ("remote.o.url", "https://user:secret@example.com/r.git"),
            (
                "remote.o.url",
                "https://ghp_abcdefghijklmnop@github.com/r.git",
            ),
            (
                "http.https://github.com/.extraHeader",
                "AUTHORIZATION: basic eA==",
            ),
            (
                "url.https://oauth2:secret@example.com/.insteadOf",
                "https://example.com/",
            ),
            ("[url \"https://oauth2:secret@example.com/\"]", ""),
            ("credential.helper", "!f() { echo password=secret; }; f"),
            ("\textraheader ", " AUTHORIZATION: basic eA=="),
        ] {
            assert!(holds_password(name, value), "{name}");
        }
        for (name, value) in [
            ("core.bare", "false"),
            ("remote.o.url", "git@github.com:a/b.git"),
            ("remote.o.url", "ssh://git@example.com:22/r.git"),
            ("remote.o.url", "https://user@example.com/a:b@c.git"),
        ] {
            assert!(!holds_password(name, value), "{name} {value}");
        }
        let stripped = without_user("https://user:secret@example.com/r.git");
        assert_eq!(stripped, "https://example.com/r.git");
        assert_eq!(without_user("../r.git"), "../r.git");
    }
}
