//! What is sent for one turn.

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::model::Dialect;

/// What goes over the wire, the same for each try.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) dialect: Dialect,
    pub(crate) name: String,
    pub(crate) url: Url,
    /// Host and port, for people.
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) key_reference: Option<String>,
}
