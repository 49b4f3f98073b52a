//! Cuts a stream of bytes into lines of bounded length.

/// Splits one stream at line feeds; a line above the cap comes in several pieces, and so does one with
/// carriage returns: a progress bar is to be seen while it moves.
#[derive(Debug)]
pub(super) struct LineSplitter {
    pending: Vec<u8>,
    /// Whether the last piece said that its line goes on.
    open: bool,
    line_bytes_max: usize,
}

impl LineSplitter {
    /// A splitter that never hands out, nor keeps, more than `line_bytes_max` bytes (at least 1).
    pub(super) fn new(line_bytes_max: usize) -> Self {
        Self {
            pending: Vec::new(),
            open: false,
            line_bytes_max: line_bytes_max.max(1),
        }
    }

    /// Takes the next bytes of the stream; calls `emit(bytes, more)` for each piece that is ready.
    pub(super) fn push(&mut self, mut chunk: &[u8], mut emit: impl FnMut(&[u8], bool)) {
        while let Some(at) = chunk.iter().position(|byte| *byte == b'\n') {
            let line = &chunk[..at];
            chunk = &chunk[at + 1..];
            self.open = false;
            if self.pending.is_empty() && line.len() <= self.line_bytes_max {
                emit(line, false);
                continue;
            }
            self.keep(line, &mut emit);
            emit(&self.pending, false);
            self.pending.clear();
        }
        self.keep(chunk, &mut emit);
        if self.pending.contains(&b'\r') {
            emit(&self.pending, true);
            self.pending.clear();
            self.open = true;
        }
    }

    /// Hands out the rest: a last line without line feed, or one that was `cut` off.
    pub(super) fn finish(&mut self, cut: bool, emit: impl FnOnce(&[u8], bool)) {
        if !self.pending.is_empty() || std::mem::take(&mut self.open) {
            emit(&self.pending, cut);
            self.pending = Vec::new();
        }
    }

    fn keep(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(&[u8], bool)) {
        while bytes.len() > self.line_bytes_max - self.pending.len() {
            let (fits, rest) = bytes.split_at(self.line_bytes_max - self.pending.len());
            self.pending.extend_from_slice(fits);
            emit(&self.pending, true);
            self.pending.clear();
            bytes = rest;
        }
        self.pending.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::LineSplitter;

    fn split(cap: usize, chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut splitter = LineSplitter::new(cap);
        let mut pieces = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |bytes, more| pieces.push((bytes.to_vec(), more)));
        }
        splitter.finish(false, |bytes, more| pieces.push((bytes.to_vec(), more)));
        pieces
    }

    fn piece(text: &str, more: bool) -> (Vec<u8>, bool) {
        (text.as_bytes().to_vec(), more)
    }

    #[test]
    fn lines_are_split_wherever_the_reads_fall() {
        let want = vec![piece("ab", false), piece("", false), piece("c", false)];
        assert_eq!(split(10, &[b"ab\n\nc"]), want);
        assert_eq!(split(10, &[b"a", b"b", b"\n", b"\n", b"c"]), want);
        assert_eq!(split(10, &[b"ab\n\nc\n"]), want);
    }

    #[test]
    fn a_line_of_exactly_the_cap_is_one_piece() {
        assert_eq!(split(3, &[b"abc\n"]), [piece("abc", false)]);
        assert_eq!(
            split(3, &[b"ab", b"c", b"\nd"]),
            [piece("abc", false), piece("d", false)]
        );
    }

    #[test]
    fn a_longer_line_comes_in_pieces_that_say_so() {
        let want = [piece("abc", true), piece("def", true), piece("g", false)];
        assert_eq!(split(3, &[b"abcdefg\n"]), want);
        assert_eq!(split(3, &[b"a", b"bcdef", b"g"]), want);
        assert_eq!(split(0, &[b"ab"]), [piece("a", true), piece("b", false)]);
    }

    #[test]
    fn a_line_that_is_rewritten_is_handed_out_while_it_is() {
        let chunks: &[&[u8]] = &[b"10%\r", b"20%", b"\r30%", b"\n", b"40%\r"];
        let want = [
            piece("10%\r", true),
            piece("20%\r30%", true),
            piece("", false),
            piece("40%\r", true),
            piece("", false),
        ];
        assert_eq!(split(10, chunks), want);
        assert_eq!(
            split(10, &[b"a\r\nb\r\n"]),
            [piece("a\r", false), piece("b\r", false)]
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_or_invented(
            chunks in proptest::collection::vec(proptest::collection::vec(0_u8..20, 0..40), 0..20),
            cap in 1_usize..9,
        ) {
            let refs: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let mut joined = Vec::new();
            for (bytes, more) in split(cap, &refs) {
                proptest::prop_assert!(bytes.len() <= cap);
                joined.extend_from_slice(&bytes);
                if !more {
                    joined.push(b'\n');
                }
            }
            let mut whole = chunks.concat();
            if whole.last().is_some_and(|last| *last != b'\n') {
                whole.push(b'\n');
            }
            proptest::prop_assert_eq!(joined, whole);
        }
    }
}
