//! How much output a log holds, and records that move behind another one when a part of it is left out.

use serde::{Deserialize, Serialize};

use super::{Chain, Content, RecordError, Source};

/// An amount of output: what its command wrote, not what its records take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSize {
    /// Bytes, line feeds included; of a line that was rewritten those of its last form.
    pub bytes: u64,
    /// Lines; of a very long one only its last piece counts.
    pub lines: u64,
}

impl OutputSize {
    /// The size of one record: [`None`] unless it holds output.
    pub fn of_content(content: &Content) -> Option<(Source, OutputSize)> {
        match content {
            Content::Output {
                source,
                text,
                continued,
                lossy,
                ..
            } => Some((*source, OutputSize::of_text(text, *continued, *lossy))),
            Content::Spec(_)
            | Content::Event(_)
            | Content::Omitted { .. }
            | Content::Gap { .. } => None,
        }
    }

    /// The size of one line, or of a piece of it.
    pub fn of_text(text: &str, continued: bool, lossy: bool) -> OutputSize {
        // The replacement has three bytes and stands for one that the command wrote.
        let replaced = if lossy {
            2 * text.matches('\u{fffd}').count()
        } else {
            0
        };
        let bytes = text.len().saturating_sub(replaced) + usize::from(!continued);
        OutputSize {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            lines: u64::from(!continued),
        }
    }

    /// Whether it has more bytes or more lines than `limit`.
    pub fn exceeds(self, limit: OutputSize) -> bool {
        self.bytes > limit.bytes || self.lines > limit.lines
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: OutputSize) -> OutputSize {
        OutputSize {
            bytes: self.bytes.saturating_add(other.bytes),
            lines: self.lines.saturating_add(other.lines),
        }
    }

    /// What is left without the other.
    #[must_use]
    pub fn minus(self, other: OutputSize) -> OutputSize {
        OutputSize {
            bytes: self.bytes.saturating_sub(other.bytes),
            lines: self.lines.saturating_sub(other.lines),
        }
    }
}

impl Chain {
    /// Moves on to the number `next`; those in between are left out of the log.
    pub fn pass_over(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// Appends a whole line and its newline that was written behind another record: all that it holds stays, its number
    /// included, and only the hash of the line before is replaced.
    pub fn relink(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
        let unreadable = || RecordError::Unreadable {
            line: self.next,
            reason: "its hash was moved or replaced written".to_owned(),
        };
        let rest = line.strip_prefix(b"{\"line\":").ok_or_else(unreadable)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok();
        let number: u64 = number
            .and_then(|text| text.parse().ok())
            .ok_or_else(unreadable)?;
        if number < self.next {
            return Err(RecordError::Number {
                expected: self.next,
                found: number,
            });
        }
        let head = format!("{{\"line\":{number},\"prev\":\"");
        let rest = line.strip_prefix(head.as_bytes()).ok_or_else(unreadable)?;
        let old = self.prev.hex();
        let rest = rest.get(old.len()..).ok_or_else(unreadable)?;
        let begin = out.len();
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(old.as_bytes());
        out.extend_from_slice(rest);
        self.next = number;
        self.advance(&out[begin..]);
        out.push(b'\n');
        Ok(())
    }
}
