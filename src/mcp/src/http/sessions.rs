//! All sessions over HTTP: bounded in number, and ended when nobody uses them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::poll_fn;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::{Instant, sleep};

use super::session::{Events, Session, SessionWire};

/// How often it is looked for sessions that nobody uses.
const LOOK_MAX: Duration = Duration::from_mins(1);

/// Why something about a session cannot be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// It has ended.
    #[error("the session has ended")]
    Ended,
    /// No more fit in.
    #[error("the maximum number of sessions is reached")]
    Full,
    /// What is to be gone on with is not kept any more.
    #[error("the events after this one are no longer stored")]
    NotKept,
}

/// The sessions.
pub(super) struct Sessions {
    all: Arc<Mutex<BTreeMap<SessionId, Arc<Session>>>>,
    most: usize,
    idle: Duration,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Sessions {
        Sessions {
            all: Arc::default(),
            most,
            idle,
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        locked(&self.all)
    }

    /// The session, as long as it has not ended.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut all = self.all();
        end_unused(&mut all, self.idle);
        all.get(id).cloned()
    }

    /// Whether one more fits in. The one that nobody has used for longest gives way.
    pub(super) fn make_room(&self) -> bool {
        let mut all = self.all();
        end_unused(&mut all, self.idle);
        if all.len() < self.most {
            return true;
        }
        let unused = all
            .iter()
            .filter_map(|(id, session)| Some((session.unused_since()?, id.clone())))
            .min();
        let Some(session) = unused.and_then(|(_, id)| all.remove(&id)) else {
            return false;
        };
        session.close();
        true
    }

    /// Whether a request of any is under way.
    pub(super) fn answer_somebody(&self) -> bool {
        self.all().values().any(|session| session.answers())
    }

    /// Ends all of them.
    pub(super) fn close(&self) {
        for session in std::mem::take(&mut *self.all()).into_values() {
            session.close();
        }
    }

    fn known(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        self.find(id).ok_or(SessionError::Ended)
    }

    /// Looks for sessions that nobody uses, as long as there are any.
    fn watch(&self) {
        let (all, idle) = (Arc::downgrade(&self.all), self.idle);
        tokio::spawn(async move {
            loop {
                sleep(idle.min(LOOK_MAX)).await;
                let Some(all) = all.upgrade() else { return };
                let mut all = locked(&all);
                end_unused(&mut all, idle);
                if all.is_empty() {
                    return;
                }
            }
        });
    }
}

fn locked(
    all: &Mutex<BTreeMap<SessionId, Arc<Session>>>,
) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end_unused(all: &mut BTreeMap<SessionId, Arc<Session>>, idle: Duration) {
    all.retain(|_, session| {
        let unused = session.unused_since();
        let kept = unused.is_none_or(|since: Instant| since.elapsed() < idle);
        if !kept {
            session.close();
        }
        kept
    });
}

fn streamed(mut events: Events) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    poll_fn(move |context| events.poll_recv(context))
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionWire;

    async fn create_session(&self) -> Result<(SessionId, SessionWire), SessionError> {
        if !self.make_room() {
            return Err(SessionError::Full);
        }
        let id: SessionId = Arc::from(super::token::random());
        let (session, wire) = Session::open();
        let mut all = self.all();
        let first = all.is_empty();
        all.insert(Arc::clone(&id), session);
        drop(all);
        if first {
            self.watch();
        }
        Ok((id, wire))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let session = self.known(id)?;
        let events = session.stream_of(&mut message);
        let mut events = events.ok_or(SessionError::Ended)?;
        if !session.hand_over(message).await {
            return Err(SessionError::Ended);
        }
        let told = events.recv().await.and_then(|event| event.message);
        let answer = told.ok_or(SessionError::Ended)?;
        Ok(ServerJsonRpcMessage::clone(&answer))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        let found = self.find(id);
        if let Some(session) = &found {
            session.touch();
        }
        Ok(found.is_some())
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        let session = self.all().remove(id);
        if let Some(session) = session {
            session.close();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let session = self.known(id)?;
        let events = session.stream_of(&mut message).ok_or(SessionError::Ended)?;
        if !session.hand_over(message).await {
            return Err(SessionError::Ended);
        }
        Ok(streamed(events))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        if self.known(id)?.hand_over(message).await {
            Ok(())
        } else {
            Err(SessionError::Ended)
        }
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(streamed(self.known(id)?.common()))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let events = self.known(id)?.resume(&last_event_id);
        events.map(streamed).ok_or(SessionError::NotKept)
    }
}
