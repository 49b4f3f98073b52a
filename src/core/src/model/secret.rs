//! Values of secrets, and where each is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The value of a secret, on its way from where it is kept to the environment of a command and to the masker.
///
/// It can neither be shown nor stored by accident:
///
/// ```compile_fail,E0277
/// println!("{:?}", workerctl_core::model::SecretText::new("hunter2-hunter2"));
/// ```
/// ```compile_fail,E0277
/// println!("{}", workerctl_core::model::SecretText::new("hunter2-hunter2"));
/// ```
/// ```compile_fail,E0277
/// let _ = serde_json::to_string(&workerctl_core::model::SecretText::new("hunter2-hunter2"));
/// ```
/// Who needs the value asks for it by name:
///
/// ```
/// assert_eq!(workerctl_core::model::SecretText::new("hunter2-hunter2").expose(), "hunter2-hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// A value that was just read.
    pub fn new(value: impl Into<String>) -> SecretText {
        SecretText(value.into())
    }

    /// The value itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    /// Overwrites the value, as far as that goes without unsafe code: copies that others made stay.
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        std::hint::black_box(&bytes);
    }
}

/// Where the value of a secret variable is kept; never the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// A credential of the service manager: a file in `$CREDENTIALS_DIRECTORY`.
    Credential(String),
    /// A file: absolute, or below `~/`.
    File(String),
    /// What a command prints.
    Command {
        /// Program and arguments; no shell is between.
        argv: Vec<String>,
        /// Its limit in milliseconds.
        timeout_ms: u64,
    },
}

/// How a secret variable comes to its value, and what the command is given of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct SecretUse {
    /// Where the value is; absent: the engine's variable of the name, else the credential that is called so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SecretSource>,
    /// Whether the variable holds the path of a private file with the value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_file: bool,
    /// Where the definition says so, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// How each secret variable comes to its value that is more than a name.
pub type SecretUses = BTreeMap<String, SecretUse>;

/// As specifications hold it; older ones hold the name of a credential.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Credential(String),
    Use {
        #[serde(default)]
        source: Option<SecretSource>,
        #[serde(default)]
        as_file: bool,
        #[serde(default)]
        place: String,
    },
}

impl From<Stored> for SecretUse {
    fn from(stored: Stored) -> SecretUse {
        match stored {
            Stored::Credential(name) => SecretUse {
                source: Some(SecretSource::Credential(name)),
                ..SecretUse::default()
            },
            Stored::Use {
                source,
                as_file,
                place,
            } => SecretUse {
                source,
                as_file,
                place,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a type lacks that has none of its own.
    trait Lacks {
        const DEBUG: bool = false;
        const DISPLAY: bool = false;
        const SERIALIZE: bool = false;
    }
    impl<T> Lacks for T {}
    struct Has<T>(std::marker::PhantomData<T>);
    impl<T: std::fmt::Debug> Has<T> {
        const DEBUG: bool = true;
    }
    impl<T: std::fmt::Display> Has<T> {
        const DISPLAY: bool = true;
    }
    impl<T: Serialize> Has<T> {
        const SERIALIZE: bool = true;
    }

    #[test]
    fn a_value_has_no_form_that_could_be_shown_or_stored() {
        const { assert!(Has::<String>::DEBUG && Has::<String>::DISPLAY && Has::<String>::SERIALIZE) };
        const { assert!(!Has::<SecretText>::DEBUG && !Has::<SecretText>::DISPLAY) };
        const { assert!(!Has::<SecretText>::SERIALIZE) };
    }

    #[test]
    fn specifications_hold_where_a_value_is_and_older_ones_are_read() {
        let command = SecretSource::Command {
            argv: vec!["pass".to_owned(), "show".to_owned(), "x".to_owned()],
            timeout_ms: 30_000,
        };
        for source in [
            None,
            Some(SecretSource::Credential("stripe-key".to_owned())),
            Some(SecretSource::File("~/.key".to_owned())),
            Some(command),
        ] {
            let one = SecretUse {
                source,
                as_file: true,
                place: "workers/w/worker.yaml:3:7".to_owned(),
            };
            let text = serde_json::to_string(&one).unwrap();
            assert_eq!(serde_json::from_str::<SecretUse>(&text).unwrap(), one);
        }
        let older: SecretUse = serde_json::from_str("\"stripe-key\"").unwrap();
        let credential = SecretSource::Credential("stripe-key".to_owned());
        assert_eq!(older.source, Some(credential));
        assert!(!older.as_file);
    }
}
