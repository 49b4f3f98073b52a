//! How much a message comes to, without writing it anywhere.

use std::io::{self, Write};

use serde::Serialize;

#[derive(Default)]
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of the JSON of `message`.
pub(super) fn of(message: &impl Serialize) -> usize {
    let mut counter = Counter::default();
    // What cannot be written is never sent, so that it counts nothing.
    let written = serde_json::to_writer(&mut counter, message);
    written.map_or(0, |()| counter.0)
}
