//! What no command in a sandbox may read, at any level: the table of `docs/reference/sandbox.md`, which a test compares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use workerctl_landing::holds_password;

/// Paths below the home directory that hold keys, tokens, passwords or sessions.
pub const IN_HOME: [&str; 129] = [
    // Keys and password managers.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".pki",
    ".config/age",
    ".config/sops",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".vault-token",
    ".smbcredentials",
    // Logins of hosts, mail and databases.
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".fetchmailrc",
    ".mbsyncrc",
    ".msmtprc",
    ".config/msmtp",
    ".mutt",
    ".muttrc",
    ".config/mutt",
    ".config/neomutt",
    ".offlineimaprc",
    ".thunderbird",
    ".dbt/profiles.yml",
    ".databrickscfg",
    ".snowflake",
    ".snowsql",
    // Forges and version control.
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/lab",
    ".config/tea",
    ".subversion/auth",
    // Clouds and hosts of applications.
    ".aws",
    ".azure",
    ".aliyun",
    ".boto",
    ".bluemix",
    ".cloudflared",
    ".config/.wrangler",
    ".config/configstore",
    ".config/doctl",
    ".config/gcloud",
    ".config/hcloud",
    ".config/heroku",
    ".config/linode-cli",
    ".config/netlify",
    ".config/ngrok",
    ".config/rclone",
    ".config/scw",
    ".config/stripe",
    ".fly",
    ".local/share/com.vercel.cli",
    ".mc/config.json",
    ".netlify",
    ".ngrok2",
    ".oci",
    ".passwd-s3fs",
    ".pulumi/credentials.json",
    ".rclone.conf",
    ".s3cfg",
    ".terraform.d",
    ".terraformrc",
    ".wrangler",
    // Containers and clusters.
    ".docker",
    ".config/containers/auth.json",
    ".kube",
    ".config/argocd",
    ".config/helm",
    // Package registries and build tools.
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/NuGet",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".ivy2/.credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".nuget/NuGet",
    ".pypirc",
    ".sbt/.credentials",
    ".yarnrc.yml",
    // Models and data sets.
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".huggingface",
    ".kaggle",
    ".config/kaggle",
    // Agent programs.
    ".aider.conf.yml",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/cursor",
    ".config/github-copilot",
    ".config/goose",
    ".config/io.datasette.llm",
    ".copilot",
    ".factory/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/amp/secrets.json",
    ".local/share/opencode/auth.json",
    ".local/share/opencode/mcp-auth.json",
    ".qwen/oauth_creds.json",
    // Browsers and other applications with sessions.
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".librewolf",
    ".mozilla",
    ".var/app",
    "snap/chromium",
    "snap/firefox",
    // What engines of this user keep outside of their state directories.
    ".local/state/workerctl",
];

/// Paths of the machine; terminals lie below `/dev`, where people type.
pub const OF_MACHINE: [&str; 3] = ["/dev", "/run/credentials", "/run/secrets"];

/// Paths that root alone may read: others are spared a rule for every other file next to them.
pub const OF_ROOT: [&str; 18] = [
    "/etc/NetworkManager/system-connections",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/wireguard",
    "/etc/workerctl",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/var/lib/systemd/credential.secret",
];

/// Variables of the engine's environment, each with the part of the home directory whose place it takes.
pub const RELOCATING: [(&str, &str); 10] = [
    ("CARGO_HOME", ".cargo"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
    ("COMPOSER_HOME", ".composer"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("HF_HOME", ".cache/huggingface"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Variables of the engine's environment that name such a file or directory, or several with `:` between them.
pub const NAMING: [&str; 24] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "BOTO_CONFIG",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN_PATH",
    "KAGGLE_CONFIG_DIR",
    "KRB5_KTNAME",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "RCLONE_CONFIG",
    "REGISTRY_AUTH_FILE",
    "SOPS_AGE_KEY_FILE",
    "TF_CLI_CONFIG_FILE",
    "XAUTHORITY",
];

/// Below `$XDG_RUNTIME_DIR`, and for root below those of all users: logins at registries of containers, and the file
/// with a login code that `workerctl web` gives to a browser.
pub const IN_RUNTIME: [&str; 2] = ["containers/auth.json", "web.html"];

/// Most home directories of other users that are looked at as root.
const HOMES_MAX: usize = 256;

/// Returns all paths of the tables, under the names that lead to them.
pub(super) fn paths(environment: &BTreeMap<String, String>, is_root: bool) -> Vec<PathBuf> {
    let directory = |name: &str| {
        let value = environment.get(name)?;
        Path::new(value).is_absolute().then(|| PathBuf::from(value))
    };
    let mut homes: Vec<PathBuf> = directory("HOME").into_iter().collect();
    if is_root {
        homes.push("/root".into());
        let others = std::fs::read_dir("/home").into_iter().flatten().flatten();
        homes.extend(others.take(HOMES_MAX).map(|entry| entry.path()));
    }
    let mut found = Vec::new();
    for home in &homes {
        found.extend(IN_HOME.map(|name| home.join(name)));
    }
    for (variable, place) in RELOCATING {
        let Some(directory) = directory(variable) else {
            continue;
        };
        let within = IN_HOME.into_iter().map(Path::new);
        let within = within.filter_map(|name| name.strip_prefix(place).ok());
        found.extend(within.map(|name| directory.join(name)));
    }
    let mut runtime: Vec<PathBuf> = directory("XDG_RUNTIME_DIR").into_iter().collect();
    if is_root {
        let users = std::fs::read_dir("/run/user")
            .into_iter()
            .flatten()
            .flatten();
        runtime.extend(users.take(HOMES_MAX).map(|entry| entry.path()));
    }
    let in_runtime = |at: &PathBuf| IN_RUNTIME.map(|name| at.join(name));
    found.extend(runtime.iter().flat_map(in_runtime));
    for variable in NAMING {
        let named = environment.get(variable).map_or("", String::as_str);
        let named = named.split(':').map(PathBuf::from);
        found.extend(named.filter(|path| path.is_absolute() && path.parent().is_some()));
    }
    found.extend(OF_MACHINE.map(PathBuf::from));
    if is_root {
        found.extend(OF_ROOT.map(PathBuf::from));
    }
    found
}

/// A part of a file system that is mounted somewhere.
struct Mount {
    device: String,
    root: PathBuf,
    point: PathBuf,
}

/// The mounts of this process, by which one file may have several names.
pub(super) struct Mounts(Vec<Mount>);

impl Mounts {
    pub(super) fn read() -> Mounts {
        Mounts::parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &str) -> Mounts {
        let mount = |line: &str| {
            let mut words = line.split(' ').skip(2);
            let [device, root, point] = [(); 3].map(|()| words.next());
            Some(Mount {
                device: device?.to_owned(),
                root: unescaped(root?),
                point: unescaped(point?),
            })
        };
        Mounts(text.lines().filter_map(mount).collect())
    }

    /// Returns a path without links, and the other paths of the same file, which bind mounts and subvolumes make.
    pub(super) fn names_of(&self, path: PathBuf) -> Vec<PathBuf> {
        let holds = |mount: &&Mount| path.starts_with(&mount.point);
        let depth = |mount: &&Mount| mount.point.components().count();
        // Of mounts at one point the last one is seen.
        let inner = self
            .0
            .iter()
            .filter(holds)
            .max_by_key(depth)
            .and_then(|mount| {
                let below = path.strip_prefix(&mount.point).ok()?;
                Some((&mount.device, mount.root.join(below)))
            });
        let mut names = Vec::new();
        if let Some((device, inner)) = inner {
            let same = self.0.iter().filter(|mount| mount.device == *device);
            let other =
                |mount: &Mount| Some(mount.point.join(inner.strip_prefix(&mount.root).ok()?));
            names.extend(same.filter_map(other).filter(|name| *name != path));
        }
        names.push(path);
        names
    }
}

/// Blanks, backslashes and ends of lines are written as three octal digits there.
fn unescaped(word: &str) -> PathBuf {
    let mut text = word.to_owned();
    for (code, letter) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        text = text.replace(code, letter);
    }
    PathBuf::from(text)
}

/// Returns the settings of a repository and of its submodules that hold a password or a token: in an address, or in a
/// header that is sent with requests.
pub(super) fn git_settings(git_dir: &Path) -> Vec<PathBuf> {
    /// Most directories of submodules that are looked at.
    const DIRECTORIES_MAX: usize = 1_000;
    let mut found = Vec::new();
    let mut directories = vec![git_dir.to_owned()];
    let mut looked = 0;
    while let Some(directory) = directories.pop() {
        let files = ["config", "config.worktree"].map(|name| directory.join(name));
        let is_repository = directory.join("HEAD").exists();
        found.extend(files.into_iter().filter(|file| {
            std::fs::read(file).is_ok_and(|bytes| hold_password(&String::from_utf8_lossy(&bytes)))
        }));
        // Names of submodules may have slashes: directories lead to them.
        let modules = if is_repository {
            directory.join("modules")
        } else {
            directory
        };
        let entries = std::fs::read_dir(modules).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.extend(below.map(|entry| entry.path()));
        looked += 1;
        if looked == DIRECTORIES_MAX {
            break;
        }
    }
    found
}

fn hold_password(settings: &str) -> bool {
    settings.lines().any(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        holds_password(name, value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_names_of_all_mounts_that_show_it() {
        let mounts = Mounts::parse(
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             22 21 8:2 / /data rw - ext4 /dev/sda2 rw\n\
             23 21 8:2 /home /home rw - ext4 /dev/sda2 rw\n\
             24 21 8:2 /home/a\\040b /mnt rw - ext4 /dev/sda2 rw\n",
        );
        let names = |path: &str| {
            let mut names = mounts.names_of(path.into());
            names.sort();
            names
                .iter()
                .map(|name| name.display().to_string())
                .collect::<Vec<_>>()
        };
        let wanted = ["/data/home/a b/.ssh", "/home/a b/.ssh", "/mnt/.ssh"];
        assert_eq!(names("/home/a b/.ssh"), wanted);
        assert_eq!(names("/mnt/.ssh"), wanted);
        assert_eq!(names("/etc/shadow"), ["/etc/shadow"]);
    }
}
