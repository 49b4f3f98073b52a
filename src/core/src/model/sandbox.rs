//! What the commands of a skill may touch.

use std::fmt;

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

/// How firmly walls around commands are asked for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// None.
    Off,
    /// Those of the kernel where it has them.
    #[default]
    Auto,
    /// Those of the kernel, or nothing starts.
    Required,
    /// Those of a container with a home and a `/tmp` of its own, or nothing starts.
    Private,
}

impl Level {
    /// Its name in definitions and views.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Auto => "auto",
            Level::Required => "required",
            Level::Private => "private",
        }
    }
}

/// What the commands of a skill may touch besides what they have by themselves: their tree, or the place of their
/// outputs, and a directory for temporary files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// How firmly it is asked for.
    pub level: Level,
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

/// In a line, for people.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        if !self.write.is_empty() {
            write!(f, "; writes {}", self.write.join(", "))?;
        }
        if let Some(reads) = &self.reads {
            write!(f, "; reads {}", reads.join(", "))?;
        }
        match &self.network {
            NetworkChoice::Any => {}
            NetworkChoice::None => f.write_str("; no network")?,
            NetworkChoice::Tcp(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                write!(f, "; TCP to {}", ports.join(", "))?;
            }
        }
        if self.unix_sockets {
            f.write_str("; Unix sockets")?;
        }
        Ok(())
    }
}
