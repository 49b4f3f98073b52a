//! One turn with a language model, done so that it can be trusted.
//!
//! [`Client::turn`] sends a conversation to a model, streams the answer, and returns it once its end was
//! seen. It blocks; nothing of the outside is asynchronous.
//!
//! [`tools`] is the other half of a conversation: the built-in file tools that a model may call, and which
//! calls a skill allows it.
//!
//! # Guarantees
//!
//! - **A turn counts only if its stream ended with a stop reason.** A stream that just stops, a malformed
//!   frame and half a tool call are cuts: the try is repeated, and in the end the turn is `incomplete`. An
//!   answer with neither text nor calls, one that hit its token limit, and a refusal are failures too.
//! - **All retries happen here**: at most three tries, after failures that a retry may fix. `retry-after` is
//!   honoured up to a minute; a longer one ends the turn with the time to come back.
//! - **Everything is bounded**: connecting, response headers, silence, the whole turn, and the bytes kept.
//! - **Keys and prompts never appear in errors.** Redirects are not followed, because the key would go along.
//!
//! # Why the dialects are implemented here
//!
//! `genai` 0.7, which covers all five dialects, was the first choice and was tried. It is in the way of these
//! guarantees, here in one dialect and there in another:
//!
//! - the index of a tool call is taken from the server and a list is resized to it, so that one number can
//!   exhaust the memory;
//! - a frame, and the body of an error, have no size limit;
//! - malformed frames are skipped, and logged with their content;
//! - the reason of an incomplete answer is dropped in the Responses dialect, and refusals in words in both
//!   dialects of OpenAI: limit and filter, and refusal and success, look alike;
//! - errors within a stream lose their kind;
//! - a page of HTML with status 200 looks like a cut stream.
//!
//! Each dialect is 150 to 400 lines on top of `reqwest`, and the dependency tree is smaller.
//!
//! # Tools of others
//!
//! [`mcp`] is the other kind of connection that an agent has: servers that offer tools.
//!
//! # Programs of others
//!
//! [`cli`] reads what agent programs such as Claude Code and Codex print while they carry out a skill themselves.
//!
//! # Messages to others
//!
//! [`Client::post`] sends one message to a webhook, bounded and without a word of its address in what it answers.
//!
//! # Threads
//!
//! A client has one I/O thread. The caller's thread writes the request, hands each try to the I/O thread,
//! runs the callback, checks the answer, and waits between tries through [`Pace`]. The queue between the two
//! has no limit of its own because the answer has one, so a slow callback stalls nobody.

mod answer;
mod attempt;
mod clean;
pub mod cli;
mod client;
mod conversation;
mod dialect;
mod error;
mod frames;
pub mod mcp;
mod model;
mod pace;
mod post;
mod request;
mod status;
mod stop;
pub mod tools;
mod turn;
mod wire;

pub use client::{Client, ClientSettings, FailedRequest, TurnHost};
pub use conversation::{ALIKE_MAX, Brief, CALLS_MAX, End, Host, Past, converse};
pub use error::{Failure, Halt, TurnError};
pub use model::{Deadlines, Dialect, Key, Model, ModelLimits};
pub use pace::{Pace, SystemPace, TRIES_MAX, WAIT_MAX};
pub use post::{POST_DEADLINE, Post, PostError, Posted};
pub use request::{
    CACHE_MARKS_MAX, CacheMark, Message, Request, RequestDigest, ToolResult, ToolSpec,
};
pub use stop::Stop;
pub use turn::{Call, Continuation, Delta, RequestUsage, Turn, Usage, estimated_tokens};

/// Begins ids of calls that a server left out.
pub(crate) const SYNTHETIC_ID: &str = "synthetic-";
