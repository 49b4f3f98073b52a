//! Which configuration may change what runs, models and other users may do while an engine runs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::git;
use crate::model::config::CONFIG_FILE;
use crate::model::legible::hex;

/// Where the digest of the text is kept that a person has accepted.
const RECORD: &str = "accepted-config";

/// Accepts a configuration that is committed, or that a person has accepted with `workerctl daemon reload`. Without a repository
/// or a commit every configuration is accepted, because nothing else could be compared.
pub(super) struct ConfigAcceptance {
    workspace: PathBuf,
    state_dir: PathBuf,
}

impl ConfigAcceptance {
    pub(super) fn new(workspace: &Path, state_dir: &Path) -> ConfigAcceptance {
        ConfigAcceptance {
            workspace: workspace.to_path_buf(),
            state_dir: state_dir.to_path_buf(),
        }
    }

    /// Whether this text is accepted; `None` stands for no file.
    pub(super) fn accepts(&self, text: Option<&str>) -> bool {
        let accepted = fs::read_to_string(self.state_dir.join(RECORD));
        if accepted.is_ok_and(|digest| digest == digest_of(text)) {
            return true;
        }
        let content = text.map(str::as_bytes);
        git::is_checked_out(&self.workspace, CONFIG_FILE, content)
            .inspect_err(|error| {
                tracing::warn!(%error, "whether the configuration is committed cannot be determined");
            })
            .is_ok_and(|committed| committed != Some(false))
    }

    /// The same of the file as it is now. What is put in force is decided again by the text that is read then.
    pub(super) fn accepts_file(&self) -> bool {
        self.accepts(
            fs::read_to_string(self.workspace.join(CONFIG_FILE))
                .ok()
                .as_deref(),
        )
    }

    /// Records that a person has accepted this text.
    pub(super) fn accept(&self, text: Option<&str>) {
        let path = self.state_dir.join(RECORD);
        let fresh = path.with_extension("new");
        let write = || {
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options
                .open(&fresh)?
                .write_all(digest_of(text).as_bytes())?;
            fs::rename(&fresh, &path)
        };
        if let Err(error) = write() {
            tracing::warn!(path = %path.display(), %error, "that the configuration was accepted cannot be recorded");
        }
    }
}

/// An empty file is another text than no file.
fn digest_of(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| hex(&Sha256::digest(text)))
}
