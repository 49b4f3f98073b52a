//! Opens repositories with the configuration that git itself would use: the environment can name its files
//! (`GIT_CONFIG_GLOBAL`, `GIT_CONFIG_SYSTEM`, `GIT_CONFIG_NOSYSTEM`) and give settings of its own
//! (`GIT_CONFIG_COUNT`, `GIT_CONFIG_PARAMETERS`). The git library knows the latter not at all, and the former only
//! together with variables such as `GIT_INDEX_FILE`, which must not lead us elsewhere.
//!
//! The environment is that of this process. Every handle on a repository is made here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::iter;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use git2::{Config, ConfigLevel, ErrorClass, ErrorCode, Repository, RepositoryOpenFlags};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{GitError, git, io_at};
use crate::settings::{self, SettingError};

/// Variables by which the git library would be led to other files than those of the repository.
const REDIRECTING: [&str; 6] = [
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
];

/// What the environment says about git's configuration.
struct Environment {
    /// `GIT_CONFIG_GLOBAL`, which takes the place of both files of a user.
    global: Option<OsString>,
    /// Whether a file is named or left out.
    names_files: bool,
    /// Settings of the environment, in the form of git's files; empty if there are none.
    given: String,
}

static ENVIRONMENT: LazyLock<Result<Environment, SettingError>> = LazyLock::new(|| {
    let files = ["GLOBAL", "SYSTEM", "NOSYSTEM"].map(|of| env::var_os(format!("GIT_CONFIG_{of}")));
    Ok(Environment {
        names_files: files.iter().any(Option::is_some),
        global: files.into_iter().next().flatten(),
        given: settings::of_environment(|name| env::var_os(name))?,
    })
});

fn environment() -> Result<&'static Environment, GitError> {
    ENVIRONMENT
        .as_ref()
        .map_err(|SettingError { name, why }| GitError::Setting {
            name: name.clone(),
            why: why.clone(),
        })
}

/// A configuration level in memory, above all files. It has to live as long as its readers.
#[derive(Debug)]
pub struct MemorySettings {
    file: OwnedFd,
}

impl MemorySettings {
    /// Settings in the form of git's files.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(text: &str) -> Result<Self, GitError> {
        let fail = |e: rustix::io::Errno| io_at("create in memory", Path::new("git settings"))(e);
        let file = memfd_create("workerctl-git", MemfdFlags::CLOEXEC).map_err(fail)?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let count = rustix::io::write(&file, rest).map_err(fail)?;
            rest = rest.get(count..).unwrap_or_default();
        }
        Ok(Self { file })
    }

    fn add_to(&self, config: &mut Config) -> Result<(), GitError> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        config
            .add_file(&path, ConfigLevel::App, true)
            .map_err(git("add a configuration level"))
    }
}

/// Those of the environment, for as long as this process lives.
static GIVEN: LazyLock<Result<MemorySettings, GitError>> =
    LazyLock::new(|| MemorySettings::new(&environment()?.given));

/// Opens the repository that `place` lies in, or with `NO_SEARCH` the one that is there.
///
/// Searches for `.git` only. A result can make a directory look like a bare repository, by files such as `HEAD` and
/// `config`, and the settings of that one would then apply to later runs and to the engine.
///
/// # Errors
/// There is none, it is another user's or of a format that is not supported, or the environment has a setting that
/// cannot be followed. `doing` is the step, as a verb with its object.
pub fn open(
    place: &Path,
    flags: RepositoryOpenFlags,
    doing: &'static str,
) -> Result<Repository, GitError> {
    let environment = environment()?;
    let found = if flags.contains(RepositoryOpenFlags::NO_SEARCH) {
        None
    } else {
        directory_with_git(place)
    };
    let (at, flags) = match &found {
        Some(directory) => (directory.as_path(), flags | RepositoryOpenFlags::NO_SEARCH),
        None => (place, flags),
    };
    let opened = match open_plainly(at, flags) {
        // A file that the environment names can list the directory as safe.
        Err(e) if e.code() == ErrorCode::Owner && environment.names_files && !is_redirected() => {
            open_plainly(at, flags | RepositoryOpenFlags::FROM_ENV)
        }
        opened => opened,
    };
    let opened = opened.map_err(|source| refusal(place, source, doing))?;
    if found.is_none() && !flags.contains(RepositoryOpenFlags::NO_SEARCH) && !opened.is_bare() {
        return Err(GitError::NotARepository(place.to_owned()));
    }
    configure(&opened, environment)?;
    Ok(opened)
}

/// Returns the nearest directory with a `.git`, from `place` upwards in its file system.
fn directory_with_git(place: &Path) -> Option<PathBuf> {
    let place = place.canonicalize().ok()?;
    let device = place.metadata().ok()?.dev();
    let is_near = |above: &&Path| above.metadata().is_ok_and(|found| found.dev() == device);
    let mut near = place.ancestors().take_while(is_near);
    near.find(|above| above.join(".git").symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// Adds settings above all others to a handle.
///
/// # Errors
/// `/proc` is not mounted.
pub fn add_settings(repo: &Repository, text: &str) -> Result<MemorySettings, GitError> {
    let settings = MemorySettings::new(&[&environment()?.given, text].concat())?;
    let mut config = repo.config().map_err(git("read the configuration"))?;
    settings.add_to(&mut config)?;
    Ok(settings)
}

/// Reads the configuration that holds outside of every repository.
///
/// # Errors
/// A file cannot be read.
pub fn outer_configuration() -> Result<Config, GitError> {
    let fail = git("read git's configuration");
    let environment = environment()?;
    let mut config = Config::new().map_err(&fail)?;
    let mut add = |path: Result<PathBuf, git2::Error>, level| match path {
        Ok(path) if path.is_file() => config.add_file(&path, level, true).map_err(&fail),
        Ok(_) | Err(_) => Ok(()),
    };
    let named = |name: &str| env::var_os(name).map(PathBuf::from);
    let is_left_out = named("GIT_CONFIG_NOSYSTEM").is_some_and(|value| {
        let value = value.to_str().map(Config::parse_bool);
        value.is_none_or(|value| value.unwrap_or(true))
    });
    if !is_left_out {
        let system = named("GIT_CONFIG_SYSTEM").map_or_else(Config::find_system, Ok);
        add(system, ConfigLevel::System)?;
    }
    if let Some(global) = &environment.global {
        add(Ok(PathBuf::from(global)), ConfigLevel::Global)?;
    } else {
        add(Config::find_xdg(), ConfigLevel::XDG)?;
        add(Config::find_global(), ConfigLevel::Global)?;
    }
    add_given(&mut config, environment)?;
    Ok(config)
}

fn add_given(config: &mut Config, environment: &Environment) -> Result<(), GitError> {
    if environment.given.is_empty() {
        return Ok(());
    }
    match &*GIVEN {
        Ok(given) => given.add_to(config),
        Err(error) => Err(GitError::Setting {
            name: "GIT_CONFIG_COUNT".to_owned(),
            why: error.to_string(),
        }),
    }
}

fn open_plainly(place: &Path, flags: RepositoryOpenFlags) -> Result<Repository, git2::Error> {
    Repository::open_ext(place, flags, iter::empty::<&OsStr>())
}

fn is_redirected() -> bool {
    REDIRECTING.iter().any(|name| env::var_os(name).is_some())
}

/// Gives a handle the configuration that the environment asks for.
fn configure(repo: &Repository, environment: &Environment) -> Result<(), GitError> {
    if !environment.names_files && environment.given.is_empty() {
        return Ok(());
    }
    let fail = git("read the configuration");
    let mut config = if environment.names_files {
        // Of this handle nothing but the configuration is read, and that is read at once.
        let flags = RepositoryOpenFlags::FROM_ENV
            | RepositoryOpenFlags::NO_SEARCH
            | RepositoryOpenFlags::NO_DOTGIT;
        let named = open_plainly(repo.path(), flags)
            .map_err(|source| refusal(repo.path(), source, "read the configuration"))?;
        if named.commondir() != repo.commondir() {
            return Err(GitError::Setting {
                name: "GIT_COMMON_DIR".to_owned(),
                why: "leads to another repository".to_owned(),
            });
        }
        named.config().and_then(|mut config| config.snapshot())
    } else {
        repo.config()
    }
    .map_err(&fail)?;
    if let Some(global) = &environment.global {
        // The library reads the other file of the user all the same, and with an empty name both.
        let nothing = Path::new("/dev/null");
        let levels = [ConfigLevel::XDG, ConfigLevel::Global];
        for level in levels.into_iter().take(1 + usize::from(global.is_empty())) {
            config.add_file(nothing, level, true).map_err(&fail)?;
        }
    }
    add_given(&mut config, environment)?;
    repo.set_config(&config).map_err(fail)
}

fn refusal(place: &Path, source: git2::Error, doing: &'static str) -> GitError {
    let message = source.message();
    let is_format = ["unsupported", "unknown object format", "unknown ref"];
    match source.code() {
        ErrorCode::NotFound if source.class() != ErrorClass::Config => {
            let mut git_dirs = place.ancestors().map(|above| above.join(".git"));
            let beheaded = git_dirs.find(|dir| {
                dir.join("objects").is_dir() && dir.join("HEAD").symlink_metadata().is_err()
            });
            match beheaded {
                Some(dir) => GitError::HeadMissing(dir.join("HEAD")),
                None => GitError::NotARepository(place.to_owned()),
            }
        }
        ErrorCode::Owner if settings_allow_directories() => GitError::Setting {
            name: "safe.directory".to_owned(),
            why: "is followed in files only, not where `GIT_CONFIG_COUNT` or `GIT_CONFIG_PARAMETERS` give it"
                .to_owned(),
        },
        ErrorCode::Owner => GitError::OtherOwner(place.to_owned()),
        _ if is_format.iter().any(|start| message.starts_with(start)) => {
            GitError::UnsupportedFormat(message.to_owned())
        }
        _ => git(doing)(source),
    }
}

fn settings_allow_directories() -> bool {
    let given = environment().map(|environment| environment.given.to_lowercase());
    given.is_ok_and(|given| given.contains("[safe]\n\tdirectory"))
}
