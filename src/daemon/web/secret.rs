//! Codes and tokens: random text that is given away once and known by its digest only.

use sha2::{Digest as _, Sha256};

use crate::model::legible::hex;

/// Letters of a code: 128 bits.
const CODE_LETTERS: usize = 32;

/// A code that nobody can guess.
pub(super) fn code() -> String {
    let mut code = crate::mcp::random_secret();
    code.truncate(CODE_LETTERS);
    code
}

/// A token of 256 bits.
pub(super) fn token() -> String {
    crate::mcp::random_secret()
}

/// SHA-256 of a code or token. Secrets are looked for by it, so that how long that takes tells nothing about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Of this secret.
    pub(super) fn of(secret: &str) -> Digest {
        Digest(Sha256::digest(secret.as_bytes()).into())
    }

    /// As it is stored.
    pub(super) fn hex(self) -> String {
        hex(&self.0)
    }

    /// Of a text that [`Digest::hex`] gave.
    pub(super) fn parse(hex: &str) -> Option<Digest> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn secrets_differ_and_digests_come_back_as_they_were() {
        let secrets: BTreeSet<String> = (0..100).flat_map(|_| [code(), token()]).collect();
        assert_eq!(secrets.len(), 200);
        for secret in secrets {
            assert!(secret.len() == 32 || secret.len() == 64);
            let digest = Digest::of(&secret);
            assert_eq!(Digest::parse(&digest.hex()), Some(digest));
        }
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
    }
}
