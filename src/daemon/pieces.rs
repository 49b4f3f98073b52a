//! Bodies that are written piece by piece, on a thread of their own and no faster than the client reads.

use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::reply::HttpRefusal;

/// Bytes of one piece.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that wait for a slow client.
const PENDING_MAX: usize = 4;
/// Stack of a writer's thread in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// Writes a body for as long as the client reads it; an error breaks the answer off, so that it is not taken for whole.
pub(super) fn body(
    place: OwnedSemaphorePermit,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Result<Body, HttpRefusal> {
    let (pieces, receiver) = mpsc::channel(PENDING_MAX);
    std::thread::Builder::new()
        .name("download".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let mut writer = BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces.clone()));
            let written = write(&mut writer).and_then(|()| writer.flush());
            if let Err(error) = written {
                tracing::debug!(%error, "an answer was broken off");
                // Who has left is told nothing.
                let _ = pieces.blocking_send(Err(error));
            }
        })
        .map_err(|error| HttpRefusal::busy(format!("no thread could be started: {error}")))?;
    Ok(Body::new(Written {
        pieces: receiver,
        _place: place,
    }))
}

/// Where the writer's thread hands its pieces over.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body.
struct Written {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    /// The client's place among those who download; free again when it has left.
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Written {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.pieces.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
