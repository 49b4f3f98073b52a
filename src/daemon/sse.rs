//! Reads server-sent events as they arrive in pieces.

/// Longest event in bytes: a line of a log with its envelope is far shorter.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a stream told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SseItem {
    /// An event.
    Event {
        /// Its name.
        name: String,
        /// Its id, where it has one.
        id: Option<String>,
        /// Its data.
        data: String,
    },
    /// A comment: the other side is alive.
    Quiet,
}

/// Something that is not a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    /// No end of an event within the limit.
    #[error("an event exceeds {EVENT_BYTES_MAX} bytes")]
    TooLong,
    /// Bytes that are not UTF-8.
    #[error("an event is not UTF-8")]
    NotText,
}

/// Puts events together from pieces.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pending: Vec<u8>,
    /// Where the search for the end of the event goes on.
    searched: usize,
}

impl Assembler {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.pending.len() + piece.len() > EVENT_BYTES_MAX {
            return Err(SseError::TooLong);
        }
        self.pending.extend_from_slice(piece);
        Ok(())
    }

    /// The next event that is there whole.
    pub(super) fn next(&mut self) -> Result<Option<SseItem>, SseError> {
        let rest = self.pending.get(self.searched..).unwrap_or_default();
        let Some(found) = rest.windows(2).position(|pair| pair == b"\n\n") else {
            self.searched = self.pending.len().saturating_sub(1);
            return Ok(None);
        };
        let end = self.searched + found;
        let event: Vec<u8> = self.pending.drain(..end + 2).collect();
        self.searched = 0;
        let text = String::from_utf8(event).map_err(|_| SseError::NotText)?;
        Ok(Some(read(&text)))
    }
}

fn read(text: &str) -> SseItem {
    let (mut name, mut id, mut data) = (None, None, None::<String>);
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "id" => id = Some(value.to_owned()),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    match data {
        Some(data) => SseItem::Event {
            name: name.unwrap_or_else(|| "message".to_owned()),
            id,
            data,
        },
        None => SseItem::Quiet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_any_pieces() {
        let stream = "id: 1\nevent: line\ndata: {\"a\":\"ü\"}\n\n: quiet\n\ndata: x\ndata: y\n\n";
        let expected = [
            SseItem::Event {
                name: "line".into(),
                id: Some("1".into()),
                data: "{\"a\":\"ü\"}".into(),
            },
            SseItem::Quiet,
            SseItem::Event {
                name: "message".into(),
                id: None,
                data: "x\ny".into(),
            },
        ];
        for size in 1..=stream.len() {
            let mut assembler = Assembler::default();
            let mut told = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                assembler.push(piece).expect("short");
                while let Some(event) = assembler.next().expect("UTF-8") {
                    told.push(event);
                }
            }
            assert_eq!(told, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn endless_and_foreign_bytes_are_refused() {
        let mut assembler = Assembler::default();
        let piece = vec![b'x'; EVENT_BYTES_MAX];
        assert_eq!(assembler.push(&piece), Ok(()));
        assert_eq!(assembler.next(), Ok(None));
        assert_eq!(assembler.push(b"x"), Err(SseError::TooLong));
        let mut assembler = Assembler::default();
        assembler.push(b"\xff\xfe\n\n").expect("short");
        assert_eq!(assembler.next(), Err(SseError::NotText));
    }
}
