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
    /// How often the line was begun anew; the text is what stood there last.
    pub carriage_returns: u64,
}

/// Cuts one stream into lines. A carriage return begins the line anew, as on a terminal: only the last form of
/// a progress bar is a line. Before a newline it is a part of the line's end.
#[derive(Debug, Clone, Default)]
pub struct LineSplitter {
    partial: Vec<u8>,
    carriage_returns: u64,
    /// Whether a carriage return ended what stands in `partial`: text that follows takes its place.
    returned: bool,
}

impl LineSplitter {
    /// Takes the next bytes and appends every line that they end.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        while let Some(end) = bytes.iter().position(ends) {
            self.extend(&bytes[..end], out);
            if bytes[end] == b'\r' {
                self.returned = true;
            } else {
                let line = std::mem::take(&mut self.partial);
                out.push(self.piece(line, false));
            }
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, out);
    }

    /// Ends the stream: what stands without a newline is a line too.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            out.push(self.piece(line, false));
        }
    }

    /// The line that waits for its newline, where it was begun anew or is about to be.
    pub fn rewritten(&self) -> Option<Piece> {
        let is_rewritten = self.returned || self.carriage_returns > 0;
        is_rewritten.then(|| self.clone().piece(self.partial.clone(), false))
    }

    fn extend(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) {
        if self.returned && !bytes.is_empty() {
            self.partial.clear();
            self.returned = false;
            self.carriage_returns += 1;
        }
        while self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            let room = LINE_BYTES_MAX - self.partial.len();
            self.partial.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
            let rest = self.partial.split_off(char_border(&self.partial));
            let line = std::mem::replace(&mut self.partial, rest);
            out.push(self.piece(line, true));
        }
        self.partial.extend_from_slice(bytes);
    }

    /// The line with what is known of it, which is forgotten where it ends.
    fn piece(&mut self, bytes: Vec<u8>, continued: bool) -> Piece {
        let carriage_returns = if continued {
            0
        } else {
            self.returned = false;
            std::mem::take(&mut self.carriage_returns)
        };
        let (text, lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        Piece {
            text,
            continued,
            lossy,
            carriage_returns,
        }
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
        assert_eq!(texts, ["ab", "", "c", "d"]);
    }

    #[test]
    fn a_line_that_is_rewritten_is_its_last_form_however_it_arrives() {
        let table: [(&str, &[(&str, u64)]); 8] = [
            ("10%\r20%\r100%\n", &[("100%", 2)]),
            ("\r10%\r20%\rdone", &[("done", 3)]),
            ("10%\r100%\r\nnext\n", &[("100%", 1), ("next", 0)]),
            (
                "plain\r\n\r\nend\r\r\n",
                &[("plain", 0), ("", 0), ("end", 0)],
            ),
            ("left\r", &[("left", 0)]),
            ("a\r\rb\n", &[("b", 1)]),
            ("wide text\rx\n", &[("x", 1)]),
            ("\r\n", &[("", 0)]),
        ];
        for (text, expected) in table {
            for size in 1..=text.len() {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let lines: Vec<(String, u64)> = split(&chunks)
                    .into_iter()
                    .map(|piece| (piece.text, piece.carriage_returns))
                    .collect();
                let lines: Vec<(&str, u64)> = lines
                    .iter()
                    .map(|(text, count)| (text.as_str(), *count))
                    .collect();
                assert_eq!(lines, expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_progress_bar_of_an_hour_takes_one_line_of_memory() {
        let (mut splitter, mut out) = (LineSplitter::default(), Vec::new());
        for percent in 0..100_000 {
            splitter.push(format!("\r{percent:>70}").as_bytes(), &mut out);
            assert!(splitter.partial.len() <= 80 && out.is_empty());
        }
        let now = splitter.rewritten().unwrap();
        assert_eq!((now.text.trim(), now.carriage_returns), ("99999", 100_000));
        splitter.push(b"\n", &mut out);
        assert_eq!(out, [now]);
        assert_eq!(splitter.rewritten(), None);
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
