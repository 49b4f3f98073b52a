//! What the commands of a skill may touch.

use serde::{Deserialize, Serialize};

/// What commands may reach over networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkChoice {
    /// Everything.
    #[default]
    Any,
    /// These ports over TCP.
    Tcp(Vec<u16>),
    /// Nothing.
    None,
}

impl NetworkChoice {
    /// What both of two let pass.
    #[must_use]
    pub fn and(self, other: NetworkChoice) -> NetworkChoice {
        match (self, other) {
            (NetworkChoice::None, _) | (_, NetworkChoice::None) => NetworkChoice::None,
            (NetworkChoice::Any, rest) | (rest, NetworkChoice::Any) => rest,
            (NetworkChoice::Tcp(mut ports), NetworkChoice::Tcp(others)) => {
                ports.retain(|port| others.contains(port));
                NetworkChoice::Tcp(ports)
            }
        }
    }
}

/// What the commands of a skill may touch besides what they have by themselves: their tree, or the place of their
/// outputs, and a directory for temporary files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether nothing starts where the kernel cannot enforce it.
    pub required: bool,
    /// What they may change and read: absolute, below `~/`, or relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// What they may read, in the same form; absent: all but secrets and what is the engine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// Networks.
    #[serde(default)]
    pub network: NetworkChoice,
    /// Whether they may use Unix sockets.
    #[serde(default)]
    pub unix_sockets: bool,
}
