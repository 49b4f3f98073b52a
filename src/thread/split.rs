//! Cuts a stream of bytes into lines of text, each bounded.

/// Most bytes of text in one record; a longer line goes on in the next one.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// One line of text, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text without its newline.
    pub text: String,
    /// Whether the line goes on in the next piece.
    pub continued: bool,
    /// Whether bytes that are not UTF-8 were replaced by U+FFFD.
    pub lossy: bool,
}

/// Cuts one stream into lines.
#[derive(Debug, Clone, Default)]
pub struct LineSplitter {
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Takes the next bytes and appends every line that they end.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end], out);
            let line = std::mem::take(&mut self.partial);
            out.push(piece(line, false));
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, out);
    }

    /// Ends the stream: what stands without a newline is a line too.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        if !self.partial.is_empty() {
            out.push(piece(std::mem::take(&mut self.partial), false));
        }
    }

    /// How many bytes wait for their newline.
    pub fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    fn extend(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        while self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            let room = LINE_BYTES_MAX - self.partial.len();
            self.partial.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
            let rest = self.partial.split_off(char_border(&self.partial));
            out.push(piece(std::mem::replace(&mut self.partial, rest), true));
        }
        self.partial.extend_from_slice(bytes);
    }
}

/// Where the last character that may still be incomplete begins; the end where there is none.
fn char_border(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for (at, byte) in bytes.iter().enumerate().skip(tail) {
        let width = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        if at + width > bytes.len() {
            return at;
        }
    }
    bytes.len()
}

fn piece(bytes: Vec<u8>, continued: bool) -> Piece {
    match String::from_utf8(bytes) {
        Ok(text) => Piece {
            text,
            continued,
            lossy: false,
        },
        Err(error) => Piece {
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            continued,
            lossy: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Piece> {
        let (mut splitter, mut out) = (LineSplitter::default(), Vec::new());
        for chunk in chunks {
            splitter.push(chunk, &mut out);
        }
        splitter.finish(&mut out);
        out
    }

    #[test]
    fn lines_join_over_chunks_and_the_last_needs_no_newline() {
        let texts: Vec<String> = split(&[b"a", b"b\n\nc\r\nd"])
            .into_iter()
            .map(|piece| piece.text)
            .collect();
        assert_eq!(texts, ["ab", "", "c\r", "d"]);
    }

    #[test]
    fn a_long_line_goes_on_and_no_character_is_cut() {
        let line = "é💩x".repeat(40_000);
        let pieces = split(&[line.as_bytes(), b"\nend\n"]);
        assert!(
            pieces
                .iter()
                .all(|piece| !piece.lossy && piece.text.len() <= LINE_BYTES_MAX)
        );
        let flags: Vec<bool> = pieces.iter().map(|piece| piece.continued).collect();
        assert_eq!(flags, [true, true, true, true, false, false]);
        let joined: String = pieces[..5]
            .iter()
            .map(|piece| piece.text.as_str())
            .collect();
        assert_eq!(joined, line);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_marked() {
        let pieces = split(&[b"ok \xff\xfe\n"]);
        assert_eq!(pieces[0].text, "ok \u{fffd}\u{fffd}");
        assert!(pieces[0].lossy);
        assert!(
            split(&[&vec![0xff; 200_000]])
                .iter()
                .all(|piece| piece.lossy)
        );
    }
}
