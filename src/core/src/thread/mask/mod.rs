//! The one sink's masker: replaces every known form of every secret, over bytes, across chunk borders.

mod encode;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::model::value::MASK;

/// Fewest bytes of a secret: shorter ones would mask half of every log, or could not be masked at all.
pub const SECRET_BYTES_MIN: usize = 6;

/// Most bytes of one secret.
pub const SECRET_BYTES_MAX: usize = 16 * 1024;

/// Most bytes of all secrets of one run together.
pub const SECRETS_BYTES_MAX: usize = 64 * 1024;

/// Why secrets cannot be masked. No variant holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// Fewer than [`SECRET_BYTES_MIN`] bytes.
    #[error(
        "the secret `{name}` has {bytes} bytes; fewer than {SECRET_BYTES_MIN} cannot be masked in logs"
    )]
    TooShort {
        /// Name of the variable or input.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// More than [`SECRET_BYTES_MAX`] bytes.
    #[error("the secret `{name}` has {bytes} bytes; at most {SECRET_BYTES_MAX} are accepted")]
    TooLong {
        /// Name of the variable or input.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// More than [`SECRETS_BYTES_MAX`] bytes together.
    #[error("all secrets together have more than {SECRETS_BYTES_MAX} bytes")]
    TooMany,
    /// The search structure could not be built.
    #[error("the masker could not be built: {0}")]
    Build(String),
}

/// Checks that a secret can be masked; a definition that names one that cannot is refused with this.
///
/// The empty value is accepted: a variable that is set to nothing hides nothing.
pub fn check_secret(name: &str, value: &[u8]) -> Result<(), MaskError> {
    let bytes = encode::trimmed(value).len();
    if bytes > SECRET_BYTES_MAX {
        return Err(MaskError::TooLong {
            name: name.to_owned(),
            bytes,
        });
    }
    if bytes > 0 && bytes < SECRET_BYTES_MIN {
        return Err(MaskError::TooShort {
            name: name.to_owned(),
            bytes,
        });
    }
    Ok(())
}

struct Patterns {
    automaton: AhoCorasick,
    /// In byte order, for asking whether the end of a chunk may begin one.
    sorted: Vec<Vec<u8>>,
    /// Whether any pattern begins with this byte.
    begins: [bool; 256],
    longest: usize,
}

/// Replaces every known form of every secret by `***`. Cloning shares the search structure.
#[derive(Clone, Default)]
pub struct Masker {
    patterns: Option<Arc<Patterns>>,
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.patterns.as_ref().map_or(0, |p| p.sorted.len());
        f.debug_struct("Masker").field("forms", &forms).finish()
    }
}

impl Masker {
    /// A masker that has nothing to hide and copies.
    pub fn none() -> Masker {
        Masker::default()
    }

    /// A masker of these secrets, each with the name of its variable or input.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Masker, MaskError> {
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut bytes = 0;
        for (name, value) in secrets {
            check_secret(name, value)?;
            bytes += value.len();
            if bytes > SECRETS_BYTES_MAX {
                return Err(MaskError::TooMany);
            }
            encode::forms(value, bytes <= encode::BROKEN_BYTES_MAX, &mut forms);
        }
        forms.sort_unstable();
        forms.dedup();
        if forms.is_empty() {
            return Ok(Masker::none());
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&forms)
            .map_err(|error| MaskError::Build(error.to_string()))?;
        let mut begins = [false; 256];
        for form in &forms {
            if let Some(first) = form.first() {
                begins[usize::from(*first)] = true;
            }
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Masker {
            patterns: Some(Arc::new(Patterns {
                automaton,
                sorted: forms,
                begins,
                longest,
            })),
        })
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// The bytes, masked.
    pub fn mask<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(patterns) = &self.patterns else {
            return Cow::Borrowed(bytes);
        };
        if !patterns.automaton.is_match(bytes) {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut stream = self.stream();
        stream.push(bytes, &mut out);
        stream.finish(&mut out);
        Cow::Owned(out)
    }

    /// The text, masked; where a secret cut a character in two, the rest is replaced by U+FFFD.
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }

    /// Masks one stream that arrives in chunks.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            patterns: self.patterns.clone(),
            held: Vec::new(),
            covered: 0,
            inside: false,
        }
    }
}

/// The state of masking one stream. What it writes does not depend on how the stream was cut.
///
/// Every run of bytes that belong to some form of some secret becomes one `***`, so that of two secrets
/// that overlap no rest is left. Only bytes that may still turn out to begin a secret are held back.
#[derive(Clone)]
pub struct MaskStream {
    patterns: Option<Arc<Patterns>>,
    /// Bytes that were read and not written yet.
    held: Vec<u8>,
    /// How many of the held bytes belong to a secret that was found already.
    covered: usize,
    /// Whether the last byte written belonged to a secret, so that its `***` stands already.
    inside: bool,
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskStream")
            .field("held_bytes", &self.held.len())
            .finish_non_exhaustive()
    }
}

impl MaskStream {
    /// Masks the next chunk and appends what is certain to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let Some(patterns) = self.patterns.clone() else {
            out.extend_from_slice(chunk);
            return;
        };
        self.held.extend_from_slice(chunk);
        let certain = patterns.certain(&self.held);
        self.write(&patterns, certain, out);
    }

    /// Ends the stream: what was held back can begin nothing any more.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(patterns) = self.patterns.clone() {
            let all = self.held.len();
            self.write(&patterns, all, out);
        }
        self.inside = false;
    }

    fn write(&mut self, patterns: &Patterns, certain: usize, out: &mut Vec<u8>) {
        let spans = patterns.spans(&self.held, self.covered);
        let mut at = 0;
        for (start, end) in &spans {
            let (start, end) = ((*start).min(certain), (*end).min(certain));
            if at < start {
                out.extend_from_slice(&self.held[at..start]);
                self.inside = false;
            }
            if start < end {
                if !self.inside {
                    out.extend_from_slice(MASK.as_bytes());
                }
                self.inside = true;
            }
            at = end;
        }
        if at < certain {
            out.extend_from_slice(&self.held[at..certain]);
            self.inside = false;
        }
        self.covered = spans
            .iter()
            .find(|(start, end)| *start <= certain && certain < *end)
            .map_or(0, |(_, end)| end - certain);
        self.held.drain(..certain);
    }
}

impl Patterns {
    /// The maximal runs of bytes that belong to a secret, in order; the first `covered` bytes do anyway.
    fn spans(&self, bytes: &[u8], covered: usize) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        if covered > 0 {
            found.push((0, covered));
        }
        // Only a search of another kind than the automaton was built for is refused, which cannot be here.
        if let Ok(matches) = self.automaton.try_find_overlapping_iter(bytes) {
            found.extend(matches.map(|hit| (hit.start(), hit.end())));
        }
        found.sort_unstable();
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for (start, end) in found {
            match spans.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((start, end)),
            }
        }
        spans
    }

    /// How many leading bytes cannot belong to a match that needs more bytes than these.
    fn certain(&self, bytes: &[u8]) -> usize {
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        (first..bytes.len())
            .find(|at| self.may_begin(&bytes[*at..]))
            .unwrap_or(bytes.len())
    }

    fn may_begin(&self, tail: &[u8]) -> bool {
        let Some(first) = tail.first() else {
            return false;
        };
        if !self.begins[usize::from(*first)] {
            return false;
        }
        let at = self.sorted.partition_point(|form| form.as_slice() < tail);
        self.sorted[at..]
            .iter()
            .find(|form| form.len() > tail.len())
            .is_some_and(|form| form.starts_with(tail))
    }
}

#[cfg(test)]
mod tests;
