//! The Unix socket as a way in.
//!
//! A connection is closed unheard unless its peer is the user whom the engine belongs to, root, or somebody whom the
//! configuration gives a role.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use axum::http::Extensions;
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::access_control::AccessControl;
use super::connections::{Acceptor, Introduced};
use super::peer::{Groups, Peer};
use crate::model::AccessRole;
use crate::process::{groups_of_peer, pidfd_of_peer};

/// The socket of an engine.
pub(super) struct OwnSocket {
    /// The newest listener is the one that counts.
    pub(super) listeners: watch::Receiver<Arc<UnixListener>>,
    /// The user whose requests are heard, beside root's.
    pub(super) uid: u32,
    pub(super) access: Arc<AccessControl>,
}

/// Who is behind a connection of the socket, as the kernel knows them.
#[derive(Debug, Clone)]
pub(super) struct Known {
    peer: Peer,
    groups: Groups,
}

impl Introduced for Known {
    fn introduce(self, extensions: &mut Extensions) {
        extensions.insert(self.peer);
        extensions.insert(self.groups);
    }
}

impl Acceptor for OwnSocket {
    type Stream = UnixStream;
    type Peer = Known;

    async fn accept(&self) -> io::Result<UnixStream> {
        let mut listeners = self.listeners.clone();
        loop {
            let listener = Arc::clone(&listeners.borrow_and_update());
            tokio::select! {
                accepted = listener.accept() => return accepted.map(|(stream, _)| stream),
                Ok(()) = listeners.changed() => {}
            }
        }
    }

    fn admit(&self, stream: &UnixStream) -> Option<Known> {
        let peer = stream.peer_cred();
        let process = peer.as_ref().ok().and_then(UCred::pid);
        let known = peer.as_ref().ok().and_then(|peer| {
            let is_own = [0, self.uid].contains(&peer.uid());
            let own = is_own.then_some(AccessRole::Admin);
            let groups = groups_of(stream, *peer);
            let role = own.or_else(|| self.access.role_of(peer.uid(), &groups))?;
            Some((peer.uid(), role, groups))
        });
        let Some((uid, role, groups)) = known else {
            tracing::warn!(?peer, "a connection of another user was refused");
            refuse(
                stream,
                "403 Forbidden",
                r#"{"kind":"usage","code":"not_your_engine","message":"this engine belongs to another user","hints":["`access` in its `workerctl.yaml` names who else may ask"]}"#,
            );
            return None;
        };
        let pid = process.and_then(|pid| u32::try_from(pid).ok());
        // Whoever has been reaped by now is known by no id.
        let pidfd = pidfd_of_peer(stream);
        let process = pid.zip(pidfd.as_ref().ok());
        let process = process.map(|(pid, pidfd)| (pid, pidfd.as_ref().map(AsFd::as_fd)));
        let peer = Peer::new(uid, process, role)
            .inspect_err(|refused| {
                tracing::warn!(?pid, why = refused.message, "a connection was refused");
                let body = serde_json::to_string(refused).unwrap_or_default();
                refuse(stream, "403 Forbidden", &body);
            })
            .ok()?;
        let groups = Groups(groups.into());
        Some(Known { peer, groups })
    }

    fn send_away(&self, stream: &UnixStream, connected: usize) {
        tracing::warn!(
            connected,
            "every connection is in use; a client was sent away"
        );
        refuse(
            stream,
            "503 Service Unavailable\r\nretry-after: 1",
            r#"{"kind":"conflict","code":"busy","message":"every connection is in use","hints":["try again in a second"]}"#,
        );
    }
}

/// The groups of whoever is behind a connection, their own first.
fn groups_of(stream: &UnixStream, peer: UCred) -> Vec<u32> {
    let mut groups = vec![peer.gid()];
    match groups_of_peer(stream) {
        Ok(found) => groups.extend(found),
        Err(error) => tracing::warn!(%error, "the groups of a connection are not known"),
    }
    groups
}

/// Tells a peer why it is not heard, as far as that is possible without waiting for it.
fn refuse(stream: &UnixStream, status: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // It is about to be closed either way.
    let _ = stream.try_write(text.as_bytes());
}
