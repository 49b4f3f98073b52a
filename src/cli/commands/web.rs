//! `web`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use serde_json::json;

use crate::cli::browser;
use crate::cli::exit::Exit;
use crate::cli::globals::Site;
use crate::cli::interrupts::Listening;
use crate::cli::render::diagnostic;
use crate::cli::session::Session;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{WebCode, WebCodeRequest, WebControl, WebOpenRequest, WebOpened};

/// Open the web page of the daemon in a browser
///
/// Prints an address that logs in once, within a minute. The page is served at a loopback address for as long as this
/// command runs; where `web: {listen: …}` of workerctl.yaml has the daemon serve it always, this command ends at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Create a read-only session
    #[arg(long, conflicts_with = "logout")]
    read_only: bool,
    /// Port of the web UI [default: a free port]
    #[arg(long, value_name = "PORT", conflicts_with = "logout", value_parser = clap::value_parser!(u16).range(1024..))]
    port: Option<u16>,
    /// Do not open a browser
    #[arg(long, conflicts_with = "logout")]
    no_open: bool,
    /// End your sessions; the engine's user and root end all sessions
    #[arg(long)]
    logout: bool,
}

/// What happens while the page is held open.
enum Event {
    Opened(WebOpened),
    Closed(Diagnostic),
    Signal,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let page = session.engines.web(&site)?;
    if args.logout {
        return log_out(session, page.as_ref());
    }
    let (events, told) = mpsc::channel();
    let _listening = listen(session, events.clone())?;
    let request = WebOpenRequest { port: args.port };
    hold_open(Arc::clone(&page), request, events)?;
    let opened = match next(&told)? {
        Event::Opened(opened) => opened,
        Event::Closed(refused) => return Err(refused),
        Event::Signal => return Ok(Exit::Interrupted),
    };
    let code = page.code(&WebCodeRequest {
        read_only: args.read_only,
    })?;
    let login = print(session, &opened, &code)?;
    if !args.no_open && browser::has_screen(session.environment) {
        show(session, &site, &login);
    }
    if opened.persistent {
        return Ok(Exit::Ok);
    }
    match next(&told)? {
        Event::Closed(why) => Err(why),
        Event::Signal | Event::Opened(_) => Ok(Exit::Ok),
    }
}

fn log_out(session: &mut Session<'_>, page: &dyn WebControl) -> Result<Exit, Diagnostic> {
    let ended = page.end_sessions()?;
    if session.json() {
        session.print_json(&ended, "web");
    } else {
        let plural = if ended.sessions == 1 { "" } else { "s" };
        let line = format!("{} session{plural} ended", ended.sessions);
        session.io.out.line(line.as_str());
    }
    Ok(Exit::Ok)
}

fn listen(session: &Session<'_>, events: Sender<Event>) -> Result<Listening, Diagnostic> {
    let told = move |_| {
        // Whoever waited has gone.
        let _ = events.send(Event::Signal);
    };
    session.interrupts.listen(Box::new(told)).map_err(|error| {
        let message = format!("signals cannot be heard: {error}");
        Diagnostic::new(Kind::Internal, "signals", message)
    })
}

/// Holds the page open on a thread of its own; that ends with the process, and the daemon sees it.
fn hold_open(
    page: Arc<dyn WebControl>,
    request: WebOpenRequest,
    events: Sender<Event>,
) -> Result<(), Diagnostic> {
    let holding = move || {
        let ended = page.open(&request, &mut |opened| {
            let _ = events.send(Event::Opened(opened));
        });
        if let Err(why) = ended {
            let _ = events.send(Event::Closed(why));
        }
    };
    let thread = std::thread::Builder::new().name("page".to_owned());
    thread.spawn(holding).map(drop).map_err(|error| {
        let message = format!("no thread can be started: {error}");
        Diagnostic::new(Kind::Internal, "no_thread", message)
    })
}

fn next(told: &Receiver<Event>) -> Result<Event, Diagnostic> {
    told.recv().map_err(|_| {
        let why = "the daemon does not serve the web page any more";
        Diagnostic::new(Kind::Unreachable, "web_closed", why)
    })
}

/// Where the page is. Whatever answers at the socket may be anybody's, and a browser is sent where it says.
fn loopback(code: &WebCode) -> Result<SocketAddr, Diagnostic> {
    let address = code.address.strip_prefix("http://");
    let address = address.and_then(|rest| rest.strip_suffix('/')?.parse::<SocketAddr>().ok());
    let is_code = code.code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    address
        .filter(|address| address.ip().is_loopback() && is_code)
        .ok_or_else(|| {
            let why = "the daemon returned no valid loopback address for the web UI";
            Diagnostic::new(Kind::Unreachable, "web_address", why)
                .hint("is the socket that of your own daemon?")
        })
}

/// Tells the address that logs in.
fn print(
    session: &mut Session<'_>,
    opened: &WebOpened,
    code: &WebCode,
) -> Result<String, Diagnostic> {
    let address = loopback(code)?;
    let login = format!("http://{address}/#login={}", code.code);
    let tunnel = tunnel(session, address);
    if session.json() {
        let all = json!({
            "address": code.address,
            "login": login,
            "expires_at": code.expires_at,
            "persistent": opened.persistent,
            "tunnel": tunnel,
        });
        session.print_json(&all, "web");
    } else {
        session.io.out.line(login.as_str());
        hints(session, opened, tunnel.as_deref());
    }
    // The person is to see it now, not once the command ends.
    session.io.out.flush();
    session.io.err.flush();
    Ok(login)
}

fn show(session: &mut Session<'_>, site: &Site, login: &str) {
    if let Err(error) = browser::open(login, &site.state_dir, session.environment) {
        let why = format!("no browser was opened: {error}");
        diagnostic::hint(&mut session.io.err, &why);
    }
}

fn hints(session: &mut Session<'_>, opened: &WebOpened, tunnel: Option<&str>) {
    let err = &mut session.io.err;
    if let Some(tunnel) = tunnel {
        let how = format!("on your own machine run `{tunnel}`, then open the address there");
        diagnostic::hint(err, &how);
    }
    let while_served = if opened.persistent {
        "the URL is valid for one login within a minute; `workerctl web` prints a new one"
    } else {
        "the URL is valid for one login within a minute; the web UI is served until you press Ctrl-C"
    };
    diagnostic::hint(err, while_served);
}

/// The command that leads to the page from the machine that somebody came from over SSH.
fn tunnel(session: &Session<'_>, address: SocketAddr) -> Option<String> {
    let connection = session.environment.get("SSH_CONNECTION")?;
    // Both ends, each with its port.
    let server: Vec<&str> = connection.split(' ').skip(2).collect();
    let (host, to) = match server[..] {
        [host, "22"] => (host, String::new()),
        [host, port] => (host, format!("-p {port} ")),
        _ => ("HOST", String::new()),
    };
    let user = session
        .asked_by()
        .map_or_else(String::new, |user| format!("{user}@"));
    let port = address.port();
    Some(format!("ssh -N {to}-L {port}:{address} {user}{host}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::cli::fake::{Console, Fake};
    use crate::cli::interrupts::Interrupt;

    fn held() -> Fake {
        let mut fake = Fake::default();
        fake.signals = vec![Interrupt::Interrupted];
        fake
    }

    #[test]
    fn the_address_is_data_and_the_rest_is_told_beside_it() {
        let mut console = Console::new(held());
        let left = console.perform(&["web", "--read-only", "--port", "9000"]);
        assert_eq!(
            (left.code, left.out.as_str()),
            (0, "http://127.0.0.1:8930/#login=c0de\n")
        );
        assert!(left.err.contains("until you press Ctrl-C"), "{}", left.err);
        assert!(
            !left.err.contains("c0de") && !left.err.contains("ssh"),
            "{}",
            left.err
        );
        assert_eq!(console.asked(), ["open Some(9000)", "code read_only=true"]);
        console.environment = BTreeMap::from([(
            "SSH_CONNECTION".to_owned(),
            "10.0.0.9 5000 10.0.0.1 2022".to_owned(),
        )]);
        let left = console.perform(&["web"]);
        let tunnel = "`ssh -N -p 2022 -L 8930:127.0.0.1:8930 ada@10.0.0.1`";
        assert!(left.err.contains(tunnel), "{}", left.err);
        let left = console.perform(&["--json", "web"]);
        let told: serde_json::Value = serde_json::from_str(&left.out).unwrap();
        assert_eq!(told["login"], "http://127.0.0.1:8930/#login=c0de");
        assert_eq!(
            (told["persistent"].as_bool(), left.err.as_str()),
            (Some(false), "")
        );
        assert_eq!(told["tunnel"], tunnel.trim_matches('`'));
    }

    #[test]
    fn a_page_that_stays_is_left_at_once_and_one_that_goes_is_told() {
        let mut stays = Fake::default();
        stays.condition = "stays";
        // Nobody presses Ctrl-C: it ends by itself.
        let left = Console::new(stays).perform(&["web"]);
        assert_eq!(left.code, 0, "{}", left.err);
        let another = "`workerctl web` prints a new one";
        assert!(left.err.contains(another), "{}", left.err);
        let left = Console::new(Fake::default()).perform(&["web"]);
        assert_eq!(left.code, 7, "{}", left.err);
    }

    #[test]
    fn no_browser_is_sent_to_another_machine() {
        let mut elsewhere = held();
        elsewhere.condition = "elsewhere";
        let left = Console::new(elsewhere).perform(&["web"]);
        assert_eq!((left.code, left.out.as_str()), (7, ""), "{}", left.err);
        assert!(
            left.err.contains("no valid loopback address"),
            "{}",
            left.err
        );
    }

    #[test]
    fn sessions_are_ended_and_nothing_is_opened_without_a_daemon() {
        let console = Console::new(Fake::default());
        let left = console.perform(&["web", "--logout"]);
        assert_eq!((left.code, left.out.as_str()), (0, "2 sessions ended\n"));
        assert_eq!(console.asked(), ["end_sessions"]);
        let mut without = Fake::default();
        without.daemon = false;
        assert_eq!(Console::new(without).perform(&["web"]).code, 7);
    }

    #[test]
    fn a_browser_that_cannot_be_opened_is_told_and_no_hindrance() {
        let mut console = Console::new(held());
        console.environment = BTreeMap::from([("DISPLAY".to_owned(), ":0".to_owned())]);
        let left = console.perform(&["web"]);
        assert_eq!(left.code, 0);
        assert!(
            left.err
                .contains("no browser was opened: `XDG_RUNTIME_DIR`"),
            "{}",
            left.err
        );
        let left = console.perform(&["web", "--no-open"]);
        assert!(!left.err.contains("browser"), "{}", left.err);
    }
}
