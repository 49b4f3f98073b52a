//! Splitting a body into frames: server-sent events, or lines of JSON.

/// What a body is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>
    Events,
    /// One JSON value on each line.
    Lines,
}

/// A frame is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameTooLong;

/// Collects pieces of a body and gives out the data of each whole frame.
///
/// Names of events are dropped: every dialect repeats them within the data.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    limit: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Lines of data of the event that has not ended yet.
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    at_start: bool,
}

impl Frames {
    /// Frames of at most `limit` bytes.
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        Self {
            framing,
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Takes a piece; `out` gets the data of each frame that it ends.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), FrameTooLong> {
        let mut rest = piece;
        while !rest.is_empty() {
            // A line ends with LF, CR or both; the LF of both may come with the next piece.
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let taken = end.unwrap_or(rest.len());
            if self.line.len() + self.data.len() + taken > self.limit {
                return Err(FrameTooLong);
            }
            self.line.extend_from_slice(&rest[..taken]);
            let Some(end) = end else { break };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(out);
        }
        Ok(())
    }

    /// The body has ended. What was left of an event whose last line is whole is given out, because some
    /// servers leave out the empty line at the end; half a line is not.
    pub(crate) fn finish(&mut self, out: &mut Vec<Vec<u8>>) {
        match self.framing {
            Framing::Events => self.end_event(out),
            // Half a line is no JSON, and a whole one without its end is.
            Framing::Lines => self.end_line(out),
        }
    }

    fn end_line(&mut self, out: &mut Vec<Vec<u8>>) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        match self.framing {
            Framing::Lines => {
                if !line.trim_ascii().is_empty() {
                    out.push(line);
                }
            }
            Framing::Events if line.is_empty() => self.end_event(out),
            Framing::Events => {
                if let Some(data) = line.strip_prefix(b"data:") {
                    if self.has_data {
                        self.data.push(b'\n');
                    }
                    self.has_data = true;
                    let data = data.strip_prefix(b" ").unwrap_or(data);
                    self.data.extend_from_slice(data);
                }
            }
        }
    }

    fn end_event(&mut self, out: &mut Vec<Vec<u8>>) {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) && !data.is_empty() {
            out.push(data);
        }
    }
}

/// Whether these first bytes can begin such a body.
pub(crate) fn may_begin(framing: Framing, piece: &[u8]) -> bool {
    let start = piece
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(piece)
        .trim_ascii_start();
    let fields: &[&[u8]] = match framing {
        Framing::Events => &[b"data", b"event", b"id", b"retry", b":"],
        Framing::Lines => &[b"{"],
    };
    // A piece may be shorter than the word it begins with.
    fields.iter().any(|field| {
        let both = field.len().min(start.len());
        field[..both] == start[..both]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, body: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::new(framing, 100);
        let mut out = Vec::new();
        for piece in body.as_bytes().chunks(size) {
            frames.push(piece, &mut out).unwrap();
        }
        frames.finish(&mut out);
        out.into_iter()
            .map(|data| String::from_utf8(data).unwrap())
            .collect()
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        for (framing, body, expect) in [
            (Framing::Events, "data: a\n\ndata:b\n\n", vec!["a", "b"]),
            (
                Framing::Events,
                "event: x\r\ndata: a\r\ndata: b\r\n\r\n",
                vec!["a\nb"],
            ),
            (Framing::Events, "data: a\r\rdata: b\r\r", vec!["a", "b"]),
            (Framing::Events, "\u{feff}data: a\n\n", vec!["a"]),
            (
                Framing::Events,
                ": ping\n\n\n\nid: 1\n\ndata\n\ndata: ä€\n\n",
                vec!["ä€"],
            ),
            (Framing::Events, "data: whole\n", vec!["whole"]),
            (Framing::Events, "data: a\n\ndata: hal", vec!["a"]),
            (
                Framing::Lines,
                "{\"a\":1}\r\n\n {}\n{\"b\"",
                vec!["{\"a\":1}", " {}", "{\"b\""],
            ),
        ] {
            for size in 1..=body.len() {
                assert_eq!(split(framing, body, size), expect, "{body:?} by {size}");
            }
        }
    }

    #[test]
    fn a_frame_is_bounded() {
        let mut out = Vec::new();
        let mut frames = Frames::new(Framing::Events, 16);
        assert_eq!(frames.push(b"data: 12345678\n\n", &mut out), Ok(()));
        assert_eq!(
            frames.push(b"data: 12345678901", &mut out),
            Err(FrameTooLong)
        );
        let mut frames = Frames::new(Framing::Events, 16);
        let many = b"data: 1\n".repeat(10);
        assert_eq!(frames.push(&many, &mut out), Err(FrameTooLong));
    }

    #[test]
    fn other_bodies_are_recognized_by_their_first_bytes() {
        for (framing, start, expect) in [
            (Framing::Events, "da", true),
            (Framing::Events, "\n: hello", true),
            (Framing::Events, "<html>", false),
            (Framing::Events, "{\"a\":1}", false),
            (Framing::Lines, " {", true),
            (Framing::Lines, "data: {", false),
        ] {
            assert_eq!(may_begin(framing, start.as_bytes()), expect, "{start}");
        }
    }
}
