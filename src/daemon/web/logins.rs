//! Who may log in, who is logged in, and what they may do now.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::codes::{self, Codes};
use super::secret::{self, Digest};
use super::sessions::{Now, Sessions};
use super::slowing::Failures;
use crate::clock::{Clock, SystemClock};
use crate::daemon::access_control::AccessControl;
use crate::engine::WebSessionStore;
use crate::model::{AccessRole, Diagnostic, Kind, Timestamp, WebSession, WebSessionChanges};

pub(crate) use super::codes::{Door, Grant};

/// Codes, sessions, and where the latter are kept.
pub(crate) struct Logins {
    /// The engine's own user.
    own_uid: u32,
    access: Arc<AccessControl>,
    clock: Arc<dyn Clock>,
    /// Absent until the engine has started, and for ever where no daemon hosts it.
    store: OnceLock<Arc<dyn WebSessionStore>>,
    /// Whether nobody changes anything, as the configuration says.
    read_only: AtomicBool,
    held: Mutex<Held>,
    /// Turns whenever sessions are ended, to true once nobody is served any more.
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Held {
    door: Door,
    codes: Codes,
    sessions: Sessions,
    failures: Failures,
}

/// Somebody who is logged in, as of one request.
#[derive(Debug, Clone)]
pub(crate) struct LoggedIn {
    /// The session.
    pub(crate) session: WebSession,
    /// What they may do now.
    pub(crate) role: AccessRole,
    token: Digest,
}

/// Why nobody was logged in.
#[derive(Debug)]
pub(crate) enum NoLogin {
    /// The code is not one; the answer waits for this long.
    Wrong(Duration),
    /// It is, and it cannot be done now.
    Refused(Diagnostic),
}

impl Logins {
    pub(crate) fn new(own_uid: u32, access: Arc<AccessControl>) -> Logins {
        Logins::by(own_uid, access, Arc::new(SystemClock::default()))
    }

    fn by(own_uid: u32, access: Arc<AccessControl>, clock: Arc<dyn Clock>) -> Logins {
        Logins {
            own_uid,
            access,
            clock,
            store: OnceLock::new(),
            read_only: AtomicBool::new(false),
            held: Mutex::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// Takes over the sessions that are kept there; from now on people can log in.
    pub(crate) fn keep_in(&self, store: Arc<dyn WebSessionStore>) -> Result<(), Diagnostic> {
        let stored = store.all()?;
        self.held().sessions.load(stored, self.now());
        if self.store.set(store).is_err() {
            tracing::error!("sessions of the web page were given two stores");
        }
        Ok(())
    }

    /// Whether nobody changes anything from now on.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Relaxed);
    }

    fn store(&self) -> Result<&Arc<dyn WebSessionStore>, Diagnostic> {
        self.store.get().ok_or_else(no_web)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        Now {
            wall: self.clock.now(),
            monotonic_ms: self.clock.monotonic_ms(),
        }
    }

    /// The page is served here from now on, or no more. What ends with the door that was open ends now.
    pub(crate) fn served_at(&self, door: Door) {
        let mut held = self.held();
        if held.door != door {
            held.sessions.end_with_door();
            held.codes.drop_of(None);
        }
        held.door = door;
        drop(held);
        self.ended.send_modify(|_| {});
    }

    /// Where the page is served.
    pub(crate) fn door(&self) -> Door {
        self.held().door
    }

    /// Whether people can log in at all.
    pub(crate) fn serves(&self) -> Result<(), Diagnostic> {
        self.store().map(drop)
    }

    /// A new code, and until when it can be used.
    pub(crate) fn code(&self, grant: Grant) -> Result<(String, Timestamp), Diagnostic> {
        self.store()?;
        let code = secret::code();
        let now = self.now();
        let digest = Digest::of(&code);
        if !self.held().codes.add(digest, grant, now.monotonic_ms) {
            let why = "too many users are about to log in";
            return Err(Diagnostic::new(Kind::Conflict, "busy", why).hint("try again in a minute"));
        }
        Ok((code, now.wall.plus_millis(codes::LIFETIME_MS)))
    }

    /// Trades a code for a token. Waits until the session is durable.
    pub(crate) fn login(&self, code: &str) -> Result<(String, LoggedIn), NoLogin> {
        let store = self.store().map_err(NoLogin::Refused)?;
        let token = secret::token();
        let digest = Digest::of(&token);
        let now = self.now();
        let (stays, (begun, ended)) = {
            let mut held = self.held();
            let grant = held.codes.redeem(Digest::of(code), now.monotonic_ms);
            // Whoever has no role any more is told as much as who has no code.
            let door = held.door;
            let grant = grant.filter(|grant| {
                grant.door == door && self.role_of(grant.uid, &grant.groups).is_some()
            });
            let Some(grant) = grant else {
                return Err(NoLogin::Wrong(held.failures.add(now.monotonic_ms)));
            };
            let begun = held.sessions.begin(digest, &grant, now);
            let begun = begun.ok_or_else(|| NoLogin::Refused(too_many()))?;
            (door.stays, begun)
        };
        let recorded = store.record(WebSessionChanges {
            begun: stays.then_some(begun),
            ended,
        });
        if let Err(refused) = recorded {
            self.held().sessions.end(digest);
            return Err(NoLogin::Refused(refused));
        }
        let logged_in = self.of(digest);
        let logged_in = logged_in.ok_or(NoLogin::Wrong(Duration::ZERO))?;
        tracing::info!(
            uid = logged_in.session.uid,
            "a user logged in to the web UI"
        );
        Ok((token, logged_in))
    }

    /// Who has this token, and what they may do now.
    pub(crate) fn who(&self, token: &str) -> Option<LoggedIn> {
        self.of(Digest::of(token))
    }

    /// Whether they are still logged in and have a role.
    pub(crate) fn are_in(&self, who: &LoggedIn) -> bool {
        self.of(who.token).is_some()
    }

    /// Waits until somebody has ended their session, or the server ends. A session that runs out, or whose user loses
    /// their role, is not waited for.
    pub(crate) async fn are_out(&self, who: &LoggedIn) {
        let mut ended = self.ended.subscribe();
        while !*ended.borrow_and_update() && self.are_in(who) && ended.changed().await.is_ok() {}
    }

    /// Nobody is served any more: what they read ends now. Their sessions stay.
    pub(crate) fn let_go(&self) {
        self.ended.send_replace(true);
    }

    fn of(&self, token: Digest) -> Option<LoggedIn> {
        let now = self.now();
        let mut session = {
            let held = self.held();
            held.sessions.find(token, held.door, now)?.clone()
        };
        let role = self.role_of(session.uid, &session.groups)?;
        session.read_only |= self.read_only.load(Ordering::Relaxed);
        let role = if session.read_only {
            AccessRole::Read
        } else {
            role
        };
        Some(LoggedIn {
            session,
            role,
            token,
        })
    }

    /// What a user may do now, as at the socket.
    fn role_of(&self, uid: u32, groups: &[u32]) -> Option<AccessRole> {
        if self.may_do_all(uid) {
            return Some(AccessRole::Admin);
        }
        self.access.role_of(uid, groups)
    }

    fn may_do_all(&self, uid: u32) -> bool {
        [0, self.own_uid].contains(&uid)
    }

    /// Ends a session at once; on return that is durable.
    pub(crate) fn logout(&self, who: &LoggedIn) -> Result<(), Diagnostic> {
        self.held().sessions.end(who.token);
        self.record_end(vec![who.token.hex()])
    }

    /// Ends the sessions of this user, of all where they may do all; how many there were.
    pub(crate) fn end_sessions(&self, uid: u32) -> Result<u64, Diagnostic> {
        self.store()?;
        let whose = (!self.may_do_all(uid)).then_some(uid);
        let ended = {
            let mut held = self.held();
            held.codes.drop_of(whose);
            held.sessions.end_of(whose)
        };
        let count = ended.len() as u64;
        self.record_end(ended)?;
        Ok(count)
    }

    fn record_end(&self, ended: Vec<String>) -> Result<(), Diagnostic> {
        self.ended.send_modify(|_| {});
        self.store()?
            .record(WebSessionChanges { begun: None, ended })
    }
}

pub(super) fn no_web() -> Diagnostic {
    let why = "this engine does not serve the web page";
    Diagnostic::new(Kind::Conflict, "no_web", why).hint("a daemon does: `workerctl daemon`")
}

fn too_many() -> Diagnostic {
    let why = "too many sessions of the web page are open";
    Diagnostic::new(Kind::Conflict, "busy", why)
        .hint("`workerctl web --logout`, as the engine's own user, ends them all")
}

#[cfg(test)]
mod tests {
    use super::super::sessions::LIFETIME_MS;
    use super::*;
    use crate::clock::FakeClock;
    use crate::model::Access;
    use crate::model::access::Member;

    const OWN: u32 = 1_000;
    const MEMBER: u32 = 2_000;
    const GROUP: u32 = 77;
    const DOOR: Door = Door {
        port: 8_930,
        stays: true,
    };

    /// Keeps what it is told, or fails.
    #[derive(Default)]
    struct Kept {
        sessions: Mutex<Vec<WebSession>>,
        fails: AtomicBool,
    }

    impl WebSessionStore for Kept {
        fn all(&self) -> Result<Vec<WebSession>, Diagnostic> {
            Ok(self.sessions.lock().unwrap().clone())
        }

        fn record(&self, changes: WebSessionChanges) -> Result<(), Diagnostic> {
            if self.fails.load(Ordering::SeqCst) {
                return Err(Diagnostic::new(Kind::Blocked, "disk_full", "full"));
            }
            let mut sessions = self.sessions.lock().unwrap();
            sessions.retain(|one| !changes.ended.contains(&one.token_digest));
            sessions.extend(changes.begun);
            Ok(())
        }
    }

    struct Bed {
        clock: Arc<FakeClock>,
        kept: Arc<Kept>,
        access: Arc<AccessControl>,
        logins: Logins,
    }

    impl Bed {
        fn new() -> Bed {
            let clock = Arc::new(FakeClock::at(Timestamp::from_millis(1_000)));
            let (kept, access) = (Arc::<Kept>::default(), Arc::<AccessControl>::default());
            let logins = Logins::by(OWN, Arc::clone(&access), Arc::clone(&clock) as _);
            logins.keep_in(Arc::clone(&kept) as _).unwrap();
            logins.served_at(DOOR);
            let bed = Bed {
                clock,
                kept,
                access,
                logins,
            };
            bed.let_in(&[GROUP]);
            bed
        }

        /// Who is in one of these groups may do everything.
        fn let_in(&self, groups: &[u32]) {
            let member = |id: &u32| Member {
                name: id.to_string(),
                id: *id,
            };
            let mut access = Access::default();
            access.admin.groups = groups.iter().map(member).collect();
            self.access.set(&access);
        }

        fn code(&self, uid: u32, read_only: bool) -> String {
            let grant = Grant {
                uid,
                groups: vec![uid, GROUP],
                read_only,
                door: self.logins.door(),
            };
            self.logins.code(grant).unwrap().0
        }

        fn token(&self, uid: u32, read_only: bool) -> String {
            let code = self.code(uid, read_only);
            self.logins.login(&code).unwrap().0
        }

        fn role(&self, token: &str) -> Option<AccessRole> {
            self.logins.who(token).map(|who| who.role)
        }
    }

    #[test]
    fn a_role_is_worked_out_anew_and_a_session_that_may_only_read_stays_so() {
        let bed = Bed::new();
        let (own, member) = (bed.token(OWN, false), bed.token(MEMBER, false));
        let careful = bed.token(OWN, true);
        let roles = |tokens: [&str; 3]| tokens.map(|token| bed.role(token));
        let all = || roles([&own, &member, &careful]);
        let (admin, read) = (Some(AccessRole::Admin), Some(AccessRole::Read));
        assert_eq!(all(), [admin, admin, read]);
        bed.let_in(&[]);
        assert_eq!(all(), [admin, None, read]);
        bed.let_in(&[GROUP]);
        bed.logins.set_read_only(true);
        assert_eq!(all(), [read, read, read]);
        bed.logins.set_read_only(false);
        assert_eq!(all(), [admin, admin, read]);
        // A code of somebody who has lost their role is none.
        let code = bed.code(MEMBER, false);
        bed.let_in(&[]);
        assert!(matches!(bed.logins.login(&code), Err(NoLogin::Wrong(_))));
    }

    #[test]
    fn sessions_outlive_a_restart_and_end_in_time_or_when_they_are_ended() {
        let bed = Bed::new();
        let tokens = [
            bed.token(OWN, false),
            bed.token(MEMBER, false),
            bed.token(MEMBER, true),
        ];
        let stored = format!("{:?}", bed.kept.all().unwrap());
        assert!(
            !tokens.iter().any(|token| stored.contains(token)),
            "{stored}"
        );
        let restarted = Logins::by(OWN, Arc::clone(&bed.access), Arc::clone(&bed.clock) as _);
        assert!(restarted.who(&tokens[0]).is_none() && restarted.serves().is_err());
        restarted.keep_in(Arc::clone(&bed.kept) as _).unwrap();
        restarted.served_at(DOOR);
        assert!(tokens.iter().all(|token| restarted.who(token).is_some()));
        let who = restarted.who(&tokens[1]).unwrap();
        restarted.logout(&who).unwrap();
        assert!(!restarted.are_in(&who) && restarted.who(&tokens[2]).is_some());
        // Nobody ends those of others, except who may do everything.
        assert_eq!(restarted.end_sessions(MEMBER).unwrap(), 1);
        assert_eq!(restarted.end_sessions(OWN).unwrap(), 1);
        assert_eq!(bed.kept.all().unwrap(), []);
        bed.clock.advance(LIFETIME_MS - 1);
        assert_eq!(bed.role(&tokens[0]), Some(AccessRole::Admin));
        bed.clock.advance(1);
        assert_eq!(bed.role(&tokens[0]), None);
    }

    #[test]
    fn a_session_counts_at_its_port_and_ends_with_a_door_that_does_not_stay() {
        let bed = Bed::new();
        let (stored, code) = (bed.token(OWN, false), bed.code(OWN, false));
        let held = Door {
            port: 9_000,
            stays: false,
        };
        bed.logins.served_at(held);
        assert_eq!(bed.role(&stored), None);
        assert!(matches!(bed.logins.login(&code), Err(NoLogin::Wrong(_))));
        let passing = bed.token(OWN, false);
        assert!(bed.role(&passing).is_some());
        assert_eq!(bed.kept.all().unwrap().len(), 1);
        let unused = bed.code(OWN, false);
        bed.logins.served_at(Door::default());
        bed.logins.served_at(held);
        assert_eq!(bed.role(&passing), None);
        // Meanwhile somebody else may have had the port, and have been given these.
        assert!(matches!(bed.logins.login(&unused), Err(NoLogin::Wrong(_))));
        let at_same_port = Door {
            stays: false,
            ..DOOR
        };
        bed.logins.served_at(at_same_port);
        assert_eq!(bed.role(&stored), None);
        bed.logins.served_at(DOOR);
        assert!(bed.role(&stored).is_some());
    }

    #[test]
    fn a_login_that_is_not_durable_is_none_and_its_code_is_used() {
        let bed = Bed::new();
        let code = bed.code(OWN, false);
        bed.kept.fails.store(true, Ordering::SeqCst);
        let refused = bed.logins.login(&code).map(drop);
        assert!(matches!(refused, Err(NoLogin::Refused(why)) if why.code == "disk_full"));
        bed.kept.fails.store(false, Ordering::SeqCst);
        let waits = |code: &str| match bed.logins.login(code) {
            Err(NoLogin::Wrong(wait)) => wait.as_millis(),
            other => panic!("{:?}", other.map(drop)),
        };
        assert_eq!([waits(&code), waits("x"), waits("")], [50, 100, 200]);
        let late = bed.code(OWN, false);
        bed.clock.advance(60_000);
        assert_eq!(waits(&late), 400);
        // Whoever has a code does not wait for those who guess.
        bed.token(OWN, false);
        let dropped = bed.code(MEMBER, false);
        bed.logins.end_sessions(MEMBER).unwrap();
        assert!(waits(&dropped) > 0);
    }
}
