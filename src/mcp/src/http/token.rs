//! The bearer token of TCP.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::engine;
use crate::model::{Diagnostic, Kind};

/// Name of the file in the state directory where the configuration names none.
const OWN_FILE: &str = "mcp-token";

/// What systemd names the directory of credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Letters of a token.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=4_096;

/// A token that is known by its digest only.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the token from the file that the configuration names; otherwise from one in the state directory,
    /// which is made where there is none.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it holds no token.
    pub fn read(
        named: Option<&str>,
        state_dir: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Token, Diagnostic> {
        let Some(named) = named else {
            let path = state_dir.join(OWN_FILE);
            make(&path).map_err(|error| {
                let told = unusable(&path, &error.to_string(), STATE_HINT);
                engine::unusable("token_file", told.message, (&error, &path), STATE_HINT)
            })?;
            return of_file(&path, false);
        };
        let of_unit = named.strip_prefix("$CREDENTIALS_DIRECTORY/");
        let path = match (of_unit, named.strip_prefix("~/")) {
            (Some(rest), _) => below(environment, CREDENTIALS, rest)?,
            (_, Some(rest)) => below(environment, "HOME", rest)?,
            _ => PathBuf::from(named),
        };
        of_file(&path, of_unit.is_some())
    }

    /// Whether `given` is it. How long that takes tells nothing about it.
    pub(super) fn is(&self, given: &str) -> bool {
        let given = Sha256::digest(given.as_bytes());
        let pairs = self.0.iter().zip(given.as_slice());
        std::hint::black_box(pairs.fold(0, |differs, (one, other)| differs | (one ^ other))) == 0
    }
}

const STATE_HINT: &str = "the state directory must be writable by the daemon's user";

fn below(
    environment: &BTreeMap<String, String>,
    variable: &str,
    rest: &str,
) -> Result<PathBuf, Diagnostic> {
    let directory = environment.get(variable).filter(|value| !value.is_empty());
    let directory = directory.ok_or_else(|| {
        let why = format!("`mcp.http.token_file` is below `${variable}`, which is not set");
        Diagnostic::new(Kind::Usage, "token_file", why).hint(
            "for a service: `LoadCredential=mcp-token:/etc/workerctl/mcp-token` in the unit, and \
             `token_file: $CREDENTIALS_DIRECTORY/mcp-token`",
        )
    })?;
    Ok(Path::new(directory).join(rest))
}

/// 64 letters that nobody can guess.
pub fn random() -> String {
    use std::fmt::Write as _;
    let mut bytes = [0_u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        // Small reads of the system's source are whole and never fail once it is seeded, which it waits for.
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(_) => std::thread::yield_now(),
        }
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Makes a token where there is none. It is there whole or not at all.
fn make(path: &Path) -> std::io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
    }
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    let written = writeln!(file, "{}", random())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&fresh, path));
    std::fs::remove_file(&fresh)?;
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

fn of_file(path: &Path, credential: bool) -> Result<Token, Diagnostic> {
    let refuse = |why: &str, hint: &str| Err(unusable(path, why, hint));
    let read = || -> std::io::Result<(std::fs::Metadata, String)> {
        // A pipe would be waited for.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        let mut text = String::new();
        if !metadata.is_file() {
            return Ok((metadata, text));
        }
        file.take(*LENGTH.end() as u64 + 2)
            .read_to_string(&mut text)?;
        Ok((metadata, text))
    };
    let (metadata, text) = read().map_err(|error| {
        unusable(
            path,
            &error.to_string(),
            "`(umask 077; openssl rand -hex 32 > FILE)` makes one; leave `token_file` out, and the daemon does",
        )
    })?;
    // Where access lists let a service read its credentials, the bits of the group show their mask.
    let others = if credential { 0o007 } else { 0o077 };
    if !metadata.is_file() {
        return refuse("it is no file", "name a file that holds the token");
    }
    let owners = [rustix::process::geteuid().as_raw(), 0];
    if !owners.contains(&metadata.uid()) {
        let hint = "it must belong to the daemon's user or to root";
        return refuse("it belongs to another user", hint);
    }
    if metadata.mode() & others != 0 {
        return refuse("others may use it", "`chmod 600` it, and write a new token");
    }
    let token = text.trim_end_matches(['\r', '\n']);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    if !LENGTH.contains(&token.len()) || !token.chars().all(plain) {
        return refuse(
            "it holds no token: 16 to 4,096 letters, digits and `-._~+/=` in one line",
            "`openssl rand -hex 32` makes one",
        );
    }
    Ok(Token(Sha256::digest(token.as_bytes()).into()))
}

fn unusable(path: &Path, why: &str, hint: &str) -> Diagnostic {
    let shown = path.display();
    let why = format!("the token of the Model Context Protocol in `{shown}` cannot be used: {why}");
    Diagnostic::new(Kind::Usage, "token_file", why).hint(hint)
}
