//! Whether a regular expression admits nothing but inert text.
//!
//! Intake holds the whole value to it, with anchors or without. Read conservatively: only literals, plain
//! classes, groups, alternatives and repetitions are understood, everything else counts as admitting
//! anything. `\d` and `\w` stand for Unicode classes: letters and digits of any script mean no more to a program
//! than ASCII letters do.

/// Deepest nesting of groups that is followed.
const GROUPS_MAX: usize = 16;

/// What a part of an expression can match.
#[derive(Clone, Copy)]
struct Part {
    /// It can match nothing at all.
    empty: bool,
    /// Whatever it matches begins with a letter, a digit or one of `_./`.
    first: bool,
}

/// Whether every text that `pattern` matches is of `[\w./:@%+,-]` and begins with one of `[\w./]`.
pub(super) fn allows_only_inert_text(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let mut reader = Reader {
        bytes: inner.as_bytes(),
        at: 0,
    };
    match reader.alternatives(0) {
        Some(part) => reader.at == inner.len() && part.first,
        None => false,
    }
}

fn inert(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte)
}

fn inert_first(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./".contains(&byte)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn alternatives(&mut self, depth: usize) -> Option<Part> {
        let mut all = self.sequence(depth)?;
        while self.peek() == Some(b'|') {
            self.at += 1;
            let part = self.sequence(depth)?;
            all = Part {
                empty: all.empty || part.empty,
                first: all.first && part.first,
            };
        }
        Some(all)
    }

    fn sequence(&mut self, depth: usize) -> Option<Part> {
        let mut all = Part {
            empty: true,
            first: true,
        };
        while self.peek().is_some_and(|b| b != b'|' && b != b')') {
            let atom = self.atom(depth)?;
            let empty = self.repetition()? || atom.empty;
            if all.empty {
                all.first &= atom.first;
                all.empty = empty;
            }
        }
        Some(all)
    }

    fn atom(&mut self, depth: usize) -> Option<Part> {
        let literal = |byte: u8| {
            inert(byte).then_some(Part {
                empty: false,
                first: inert_first(byte),
            })
        };
        match self.next()? {
            b'(' if depth < GROUPS_MAX => {
                if self.bytes[self.at..].starts_with(b"?:") {
                    self.at += 2;
                }
                let part = self.alternatives(depth + 1)?;
                (self.next()? == b')').then_some(part)
            }
            b'[' => self.class(),
            b'\\' if self.word_class() => Some(Part {
                empty: false,
                first: true,
            }),
            // An escaped letter is a class or an anchor; an escaped mark is itself.
            b'\\' => literal(self.next().filter(|b| !b.is_ascii_alphanumeric())?),
            b'.' | b'+' | b'(' => None,
            byte => literal(byte),
        }
    }

    /// Passes over the letter of `\d` or `\w`.
    fn word_class(&mut self) -> bool {
        let is_one = matches!(self.peek(), Some(b'd' | b'w'));
        self.at += usize::from(is_one);
        is_one
    }

    fn class(&mut self) -> Option<Part> {
        let mut first = true;
        let mut members = 0;
        loop {
            let low = match self.next()? {
                b']' if members > 0 => {
                    return Some(Part {
                        empty: false,
                        first,
                    });
                }
                b'\\' if self.word_class() => {
                    members += 1;
                    continue;
                }
                b'\\' => self.next().filter(|b| !b.is_ascii_alphanumeric())?,
                b'[' | b'^' | b'&' | b'~' | b']' => return None,
                byte => byte,
            };
            members += 1;
            let range = self.peek() == Some(b'-')
                && self.bytes.get(self.at + 1).is_some_and(|&b| b != b']');
            let high = if range {
                self.at += 1;
                match self.next()? {
                    b'\\' => self.next().filter(|b| !b.is_ascii_alphanumeric())?,
                    b'[' => return None,
                    byte => byte,
                }
            } else {
                low
            };
            if !(low..=high).all(inert) {
                return None;
            }
            first &= (low..=high).all(inert_first);
        }
    }

    /// Passes over a repetition; whether it admits none at all.
    fn repetition(&mut self) -> Option<bool> {
        let mut none = false;
        match self.peek() {
            Some(b'*' | b'?') => {
                none = true;
                self.at += 1;
            }
            Some(b'+') => self.at += 1,
            Some(b'{') => {
                let rest = &self.bytes[self.at + 1..];
                let length = rest.iter().position(|&b| b == b'}')?;
                let counts = &rest[..length];
                if counts.is_empty() || !counts.iter().all(|b| b.is_ascii_digit() || *b == b',') {
                    return None;
                }
                none = counts[0] == b'0' || counts[0] == b',';
                self.at += length + 2;
            }
            _ => {}
        }
        if self.peek() == Some(b'?') {
            self.at += 1; // a lazy repetition matches the same texts
        }
        Some(none)
    }
}

#[cfg(test)]
mod tests {
    use super::allows_only_inert_text;

    #[test]
    fn only_patterns_of_the_inert_alphabet_are_trusted() {
        let inert = [
            "^[a-z0-9-]+$".replace("a-z0-9-", "a-z0-9"),
            "^[a-z][a-z0-9-]*$".to_owned(),
            "^(main|release/[0-9]+\\.[0-9]+)$".to_owned(),
            "^v?[0-9]{1,3}(?:\\.[0-9]+){2}$".to_owned(),
            "^[A-Za-z0-9_./][A-Za-z0-9_./:@%+,-]*$".to_owned(),
            "[a-z]+".to_owned(),
            "^[a-z]+".to_owned(),
            "[a-z]+$".to_owned(),
            "^a|b$".to_owned(),
            r"\d{4}-\d\d-\d\d".to_owned(),
            r"\w[\w.-]*".to_owned(),
        ];
        for pattern in inert {
            assert!(allows_only_inert_text(&pattern), "{pattern}");
        }
        let unsafe_ones = [
            "^.*$",
            "^\\W+$",
            "^[\\w-]+$",
            "^[\\w~]+$",
            "^[\\s]+$",
            "^[^a]+$",
            "-a|b",
            "^-a$",
            "^[a-z-]+$",
            "^-?[0-9]+$",
            "^[a-z ]+$",
            "^(a$",
            "^a)$",
            "^[a$",
            "^[$",
            "^a{$",
            "^[a-~]$",
            "^é$",
            "^(?i)a$",
            "^[[:alpha:]]+$",
            "^\\x20$",
            "^a\\n$",
            "^(-|a)$",
            "^$|^[a-z]$",
            "^+$",
        ];
        for pattern in unsafe_ones {
            assert!(!allows_only_inert_text(pattern), "{pattern}");
        }
        assert!(!allows_only_inert_text(&format!(
            "^{}{}$",
            "(".repeat(9000),
            ")".repeat(9000)
        )));
    }
}
