//! Options of every command, and the places that follow from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::maintenance;
use crate::cli::definitions::worker_file_below;
use crate::model::config::CONFIG_FILE;
use crate::model::{Diagnostic, Kind};
use crate::process::is_command_of_run;

/// Directories upwards that are looked at for a workspace.
const DEPTH_MAX: usize = 128;

/// Code of the refusal where there is no workspace.
pub(crate) const NO_WORKSPACE: &str = "no_workspace";

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Options of every command; each is also an environment variable.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Workspace directory [default: the nearest one at or above the current directory]
    #[arg(
        short = 'C',
        long,
        global = true,
        value_name = "DIR",
        env = "WORKERCTL_WORKSPACE"
    )]
    pub(crate) workspace: Option<PathBuf>,
    /// State directory [default: `$STATE_DIRECTORY`, or `state/` in the workspace]
    #[arg(long, global = true, value_name = "DIR", env = "WORKERCTL_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Control socket to connect to, or to listen on
    #[arg(long, global = true, value_name = "PATH", env = "WORKERCTL_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Print data and errors as JSON
    #[arg(long, global = true, env = "WORKERCTL_JSON",
          value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) json: bool,
    /// When to use colors
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        env = "WORKERCTL_COLOR"
    )]
    pub(crate) color: ColorChoice,
    /// Log the work of the engine in this process; repeat for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, env = "WORKERCTL_VERBOSE")]
    pub(crate) verbose: u8,
}

/// The places that a command works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// Absolute path of the workspace, without links.
    pub(crate) workspace: PathBuf,
    /// Absolute path of the state directory, without links.
    pub(crate) state_dir: PathBuf,
    /// The socket that was asked for.
    pub(crate) socket: Option<PathBuf>,
    /// The process's environment.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Site {
    /// Whether this process is a command of a run of this workspace. It hosts no engine and decides nothing; a request to
    /// an engine that runs is refused there.
    pub(crate) fn is_around_run(&self) -> bool {
        // A command can clear its environment, but not the mark of its process: without a name it is taken for this one.
        let around = self.environment.get("WORKERCTL_WORKSPACE");
        around.is_none_or(|around| Path::new(around) == self.workspace) && is_command_of_run()
    }
}

/// Refuses what only a person does, if this is a command of a run, of whichever workspace: the environment, which
/// names the workspace, can be forged.
pub(crate) fn expect_person(what: &str) -> Result<(), Diagnostic> {
    if !is_command_of_run() {
        return Ok(());
    }
    let message = format!("`{what}` is not available to commands of a run");
    let refused = Diagnostic::new(Kind::Blocked, "person_needed", message);
    Err(refused.hint(format!("run it yourself, outside of the run: `{what}`")))
}

impl Globals {
    /// The places for this command, called in `cwd`.
    ///
    /// # Errors
    /// There is no workspace, or a link stands where files of ours belong.
    pub(crate) fn site(
        &self,
        cwd: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Site, Diagnostic> {
        let site = self.site_as_asked(cwd, environment)?;
        let state_dir = maintenance::state_directory(&site.workspace, &site.state_dir)?;
        Ok(Site { state_dir, ..site })
    }

    /// The same with the state directory as it was asked for, which nothing may be opened in.
    pub(crate) fn site_as_asked(
        &self,
        cwd: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Site, Diagnostic> {
        let workspace = match self.checkout_around(environment) {
            Some(checkout) => real(checkout)?,
            None => self.find_workspace(cwd)?,
        };
        if !may_be_workspace(&workspace) {
            let refused = Diagnostic::new(
                Kind::NotFound,
                NO_WORKSPACE,
                format!(
                    "`{}` holds neither `workers/` nor `{CONFIG_FILE}`",
                    workspace.display()
                ),
            )
            .hint(format!(
                "`workerctl init {}` makes a workspace there; without `-C` the nearest one upwards is used",
                workspace.display()
            ));
            return Err(with_workers_below(refused, &workspace));
        }
        Ok(self.places(workspace, cwd, environment))
    }

    /// The places for a command that reads, which need no workspace: without one those of the project around, where
    /// nothing of ours need be.
    ///
    /// # Errors
    /// The directory that is asked for is not there, or a link stands where files of a workspace belong.
    pub(crate) fn site_anywhere(
        &self,
        cwd: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Site, Diagnostic> {
        match self.site(cwd, environment) {
            Err(refused) if refused.code == NO_WORKSPACE => {}
            found => return found,
        }
        let start = match (self.checkout_around(environment), &self.workspace) {
            (Some(checkout), _) => real(checkout)?,
            (None, Some(asked)) => real(&cwd.join(asked))?,
            // Its way may be closed to us; what can be read in it is read all the same.
            (None, None) => real(cwd).unwrap_or_else(|_| cwd.to_owned()),
        };
        let Some(workspace) = workspace_above(&start) else {
            return Ok(self.places(project_around(&start), cwd, environment));
        };
        let site = self.places(workspace, cwd, environment);
        let state_dir = maintenance::state_directory(&site.workspace, &site.state_dir)?;
        Ok(Site { state_dir, ..site })
    }

    fn places(
        &self,
        workspace: PathBuf,
        cwd: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Site {
        let state_dir = match (&self.state_dir, environment.get("STATE_DIRECTORY")) {
            (Some(asked), _) => cwd.join(asked),
            // The service manager separates several directories by colons; the first is ours.
            (None, Some(given)) if !given.is_empty() => {
                cwd.join(given.split(':').next().unwrap_or(given))
            }
            (None, _) => workspace.join("state"),
        };
        Site {
            workspace,
            state_dir,
            socket: self.socket.as_ref().map(|socket| cwd.join(socket)),
            environment: environment.clone(),
        }
    }

    /// Within a run the workspace that people use, not the run's tree, unless another one is asked for.
    fn checkout_around<'e>(&self, environment: &'e BTreeMap<String, String>) -> Option<&'e Path> {
        let checkout = environment.get("WORKERCTL_CHECKOUT").map(Path::new)?;
        let inherited = environment.get("WORKERCTL_WORKSPACE").map(Path::new);
        let asked = self.workspace.as_deref();
        (asked.is_none() || asked == inherited).then_some(checkout)
    }

    /// The directory that is asked for, which need not be a workspace yet, or the nearest workspace.
    pub(crate) fn find_workspace(&self, cwd: &Path) -> Result<PathBuf, Diagnostic> {
        if let Some(asked) = &self.workspace {
            return real(&cwd.join(asked));
        }
        workspace_above(cwd).ok_or_else(|| {
            let refused = Diagnostic::new(
                Kind::NotFound,
                NO_WORKSPACE,
                format!(
                    "neither `{}` nor any directory above it contains `workers/` or `{CONFIG_FILE}`",
                    cwd.display()
                ),
            )
            .hint("`workerctl init` creates a workspace here; `-C DIR` selects another one");
            with_workers_below(refused, cwd)
        })
    }
}

/// Adds a hint if workers are found below a directory that is no workspace.
fn with_workers_below(refused: Diagnostic, directory: &Path) -> Diagnostic {
    let file = worker_file_below(directory);
    // DIR/workers/ID/worker.yaml
    match file.as_deref().and_then(|file| file.ancestors().nth(3)) {
        Some(below) => {
            let place = directory.join(below);
            refused.hint(format!(
                "workers are in `{0}/workers`: `workerctl -C '{0}' …`",
                place.display()
            ))
        }
        None => refused,
    }
}

/// The nearest directory from `start` upwards that is a workspace.
pub(crate) fn workspace_above(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .take(DEPTH_MAX)
        .find(|directory| is_workspace(directory))
        .and_then(|found| found.canonicalize().ok())
}

fn is_workspace(directory: &Path) -> bool {
    directory.join(CONFIG_FILE).is_file() || directory.join("workers").is_dir()
}

/// The top of the git work tree that holds a directory, else the directory itself. Only looked for, not opened: a
/// repository that git refuses, as it is damaged or another user's, is a project all the same.
fn project_around(start: &Path) -> PathBuf {
    let is_top = |directory: &Path| {
        let git = directory.join(".git");
        git.is_file() || git.join("HEAD").exists()
    };
    let is_bare = |directory: &Path| {
        let parts = ["HEAD", "objects", "refs"];
        parts.iter().all(|part| directory.join(part).exists())
    };
    let mut upwards = start.ancestors().take(DEPTH_MAX);
    let found = upwards.find(|directory| is_top(directory) || is_bare(directory));
    let top = found.filter(|directory| is_top(directory));
    top.unwrap_or(start).to_owned()
}

/// Whether a directory is a workspace, as far as we may look: what belongs to others is for them to tell.
pub(crate) fn may_be_workspace(directory: &Path) -> bool {
    let hidden = |name: &str| {
        let looked = std::fs::metadata(directory.join(name));
        looked.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    is_workspace(directory) || hidden("workers") || hidden(CONFIG_FILE)
}

/// The directory without links, so that everybody gives the same workspace the same name.
fn real(directory: &Path) -> Result<PathBuf, Diagnostic> {
    let refuse = |why: String| {
        Err(Diagnostic::new(
            Kind::NotFound,
            NO_WORKSPACE,
            format!("`{}` is not a workspace: {why}", directory.display()),
        )
        .hint(format!(
            "`-C` takes an existing directory that has `workers/` or `{CONFIG_FILE}`"
        )))
    };
    match directory.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => refuse("it is not a directory".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse("there is no such directory".to_owned())
        }
        Err(error) => refuse(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globals() -> Globals {
        Globals {
            workspace: None,
            state_dir: None,
            socket: None,
            json: false,
            color: ColorChoice::Auto,
            verbose: 0,
        }
    }

    #[test]
    fn the_nearest_workspace_upwards_is_used() {
        let outer = xtest::tempdir();
        let root = outer.path().canonicalize().unwrap();
        let inner = root.join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let none = BTreeMap::new();
        let error = globals().site(&inner, &none).unwrap_err();
        assert_eq!(
            (error.kind, error.code.as_str()),
            (Kind::NotFound, "no_workspace")
        );

        std::fs::create_dir(root.join("workers")).unwrap();
        assert_eq!(globals().site(&inner, &none).unwrap().workspace, root);
        std::fs::write(root.join("a").join(CONFIG_FILE), "").unwrap();
        let site = globals().site(&inner, &none).unwrap();
        assert_eq!(site.workspace, root.join("a"));
        assert_eq!(site.state_dir, root.join("a/state"));
    }

    #[test]
    fn what_is_asked_for_wins() {
        let root = xtest::tempdir();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("empty")).unwrap();
        std::fs::write(root.join(CONFIG_FILE), "").unwrap();
        let asked = Globals {
            workspace: Some(PathBuf::from(".")),
            socket: Some(PathBuf::from("s")),
            ..globals()
        };
        let systemd = BTreeMap::from([("STATE_DIRECTORY".to_owned(), "/var/lib/a:/b".to_owned())]);
        let site = asked.site(&root, &systemd).unwrap();
        assert_eq!(site.workspace, root);
        assert_eq!(site.state_dir, Path::new("/var/lib/a"));
        assert_eq!(site.socket, Some(root.join("s")));
        let explicit = Globals {
            state_dir: Some(PathBuf::from("st")),
            ..asked
        };
        assert_eq!(
            explicit.site(&root, &systemd).unwrap().state_dir,
            root.join("st")
        );
        let missing = Globals {
            workspace: Some(PathBuf::from("nowhere")),
            ..globals()
        };
        let empty = Globals {
            workspace: Some(PathBuf::from("empty")),
            ..globals()
        };
        for none in [missing, empty] {
            let refused = none.site(&root, &systemd).unwrap_err();
            assert_eq!(
                (refused.kind, refused.code.as_str()),
                (Kind::NotFound, "no_workspace")
            );
        }
    }
}
