//! What a server does with its requests, in no dialect.

/// One reply.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// An answer of a model.
    Say(Say),
    /// Frames as they are, in the dialect of whoever asks.
    Frames { frames: Vec<String>, end: End },
    /// A stream of one piece, in the type of whoever asks.
    Bytes { body: Vec<u8> },
    /// A failure, with an error body in the dialect. `echo` repeats the request and its headers in it.
    Status {
        status: u16,
        headers: Vec<(&'static str, String)>,
        echo: bool,
    },
    /// Success with a body of any kind.
    Raw {
        content_type: &'static str,
        body: String,
    },
    /// No head of an answer, ever.
    Nothing,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: Vec::new(),
            echo: false,
        }
    }

    pub(crate) fn status_with(status: u16, name: &'static str, value: &str) -> Self {
        Self::Status {
            status,
            headers: vec![(name, value.to_owned())],
            echo: false,
        }
    }

    pub(super) fn resets(&self) -> bool {
        match self {
            Self::Say(say) => matches!(say.end, End::Reset(_)),
            Self::Frames { end, .. } => matches!(end, End::Reset(_)),
            Self::Bytes { .. } | Self::Status { .. } | Self::Raw { .. } | Self::Nothing => false,
        }
    }
}

impl From<Say> for Reply {
    fn from(say: Say) -> Self {
        Self::Say(say)
    }
}

/// How a stream ends, with the number of frames before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Whole,
    /// As if it were whole.
    Early(usize),
    Reset(usize),
    /// Never.
    Silent(usize),
}

impl End {
    pub(super) fn after(self) -> Option<usize> {
        match self {
            Self::Whole => None,
            Self::Early(after) | Self::Reset(after) | Self::Silent(after) => Some(after),
        }
    }
}

/// Why the model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Whatever the dialect says after text or calls.
    Usual,
    Length,
    Refusal,
}

/// An answer of a model.
#[derive(Debug, Clone)]
pub(crate) struct Say {
    /// A frame each.
    pub(crate) texts: Vec<String>,
    /// Names, and arguments as they stand on the wire: they may be no JSON, or half of it.
    pub(crate) calls: Vec<(String, String)>,
    /// Input without what the cache gave, output, read from the cache, written to it.
    pub(crate) usage: Option<[u64; 4]>,
    pub(crate) ending: Ending,
    /// An error in the middle of the stream instead of the end.
    pub(crate) error: Option<&'static str>,
    /// A frame of broken JSON before the end.
    pub(crate) malformed: bool,
    pub(crate) end: End,
    /// Frames after the first wait for [`super::ModelServer::let_through`].
    pub(crate) gated: bool,
}

impl Say {
    pub(crate) fn nothing() -> Self {
        Self {
            texts: Vec::new(),
            calls: Vec::new(),
            usage: None,
            ending: Ending::Usual,
            error: None,
            malformed: false,
            end: End::Whole,
            gated: false,
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::nothing().and(text)
    }

    pub(crate) fn and(mut self, text: &str) -> Self {
        self.texts.push(text.to_owned());
        self
    }

    pub(crate) fn call(mut self, name: &str, arguments: &str) -> Self {
        self.calls.push((name.to_owned(), arguments.to_owned()));
        self
    }

    pub(crate) fn usage(
        mut self,
        input: u64,
        output: u64,
        cache_read: u64,
        cache_write: u64,
    ) -> Self {
        self.usage = Some([input, output, cache_read, cache_write]);
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    pub(crate) fn error(mut self, kind: &'static str) -> Self {
        self.error = Some(kind);
        self
    }

    pub(crate) fn malformed(mut self) -> Self {
        self.malformed = true;
        self
    }

    pub(crate) fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    pub(crate) fn gated(mut self) -> Self {
        self.gated = true;
        self
    }
}
