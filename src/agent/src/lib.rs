//! One turn with a language model, done so that it can be trusted.
//!
//! [`Client::turn`] sends a conversation to a model, streams the answer, and returns it once its end was
//! seen. It blocks; nothing of the outside is asynchronous.
//!
//! # What is promised
//!
//! - **A turn counts only when its stream ended with a stop reason.** A stream that just stops, a malformed
//!   part and half a tool call are a cut: the try is repeated, and in the end the turn is `incomplete`. An
//!   answer with neither text nor calls, one that reached its limit and a refusal are failures too.
//! - **Retries are only here**: three tries at most, after failures that a repetition may mend. Servers may
//!   ask for waits up to a minute; longer ones end the turn with the time to come back.
//! - **Everything has a bound**: connecting, the head of an answer, its silences, the whole turn, and the
//!   bytes that are kept.
//! - **Keys and prompts are in no error.** Redirects are not followed, since the key would go along.
//!
//! # Why the dialects are written here
//!
//! `genai` 0.7, which knows the five dialects, was the first choice, and was tried. These promises cannot be
//! kept on top of it, in one dialect or another: the place of a call in a list is taken from the server and
//! the list made that long, so that one number ends the process; a frame, and the body of a failure, may be
//! of any size; malformed parts are passed over with a line in the log that holds them; why an answer of the
//! Responses dialect is incomplete is dropped, and so are refusals in words, so that limit, filter and
//! success look alike; errors within a stream lose their kind; and success with a page of HTML cannot be
//! told from a cut. Each dialect here is 150 to 350 lines on top of `reqwest`, and the tree is smaller.
//!
//! # How it works
//!
//! A client has one thread, which drives all connections. The caller's thread makes the request, hands a try
//! over, passes on what it is told, judges the answer, and waits between tries through [`Pace`]. What a try
//! tells is queued without a bound of its own, because an answer has one: so a slow consumer holds up
//! nobody.

mod answer;
mod attempt;
mod clean;
mod client;
mod dialect;
mod error;
mod frames;
mod model;
mod pace;
mod request;
mod status;
mod stop;
mod turn;

pub use client::{Client, ClientSettings};
pub use error::{Failure, TurnError};
pub use model::{Deadlines, Dialect, Key, Model, ModelLimits};
pub use pace::{Pace, SystemPace, TRIES_MAX, WAIT_MAX};
pub use request::{CACHE_MARKS_MAX, CacheMark, Message, Request, ToolResult, ToolSpec};
pub use stop::Stop;
pub use turn::{Call, Continuation, Delta, Turn, Usage};

/// Begins ids of calls that a server left out.
pub(crate) const MADE_UP_ID: &str = "made-up-";
