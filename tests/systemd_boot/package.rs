//! The Debian package as `.ci/package` builds it, from the same list in Cargo.toml: with the program of this test
//! and without cargo-deb.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::workspace::observed::files_below;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PROGRAM: &str = "target/release/workerctl";

/// A package of each revision can be built of it.
pub(crate) struct Package {
    manifest: Value,
    place: PathBuf,
}

impl Package {
    /// Lays out, below a directory, what is in it.
    pub(crate) fn stage(place: &Path) -> Package {
        let files = Path::new(ROOT).join(".ci/package");
        let program = env!("CARGO_BIN_EXE_workerctl");
        run(Command::new(files).arg("files").env("WORKERCTL", program));
        let package = Package {
            manifest: manifest(),
            place: place.to_owned(),
        };
        for (source, target, mode) in package.files() {
            let target = place.join("tree").join(target);
            let mut install = Command::new("install");
            run(install.args(["-D", "-m", &mode]).arg(source).arg(&target));
        }
        // Debugging information is most of it.
        let program = place.join("tree/usr/bin/workerctl");
        let _ = Command::new("strip").arg(program).status();
        let scripts = Path::new(ROOT).join(package.text("/metadata/deb/maintainer-scripts"));
        for script in ["postinst", "prerm", "postrm"] {
            let target = place.join("tree/DEBIAN").join(script);
            let mut install = Command::new("install");
            run(install
                .args(["-D", "-m", "755"])
                .arg(scripts.join(script))
                .arg(target));
        }
        package
    }

    /// Every file: where it is, where it goes to, with which mode.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String, String)> {
        let list = self.manifest.pointer("/metadata/deb/assets").unwrap();
        let entries = list.as_array().unwrap().iter().map(|entry| {
            let text = |at: usize| entry[at].as_str().unwrap().to_owned();
            (text(0), text(1), text(2))
        });
        entries
            .flat_map(|(source, target, mode)| {
                let found = matching(&source);
                assert!(!found.is_empty(), "nothing is {source}");
                found.into_iter().map(move |(path, name)| {
                    let is_directory = target.ends_with('/');
                    let target = format!("{target}{}", if is_directory { &name } else { "" });
                    (path, target, mode.clone())
                })
            })
            .collect()
    }

    /// The package of one revision of this version.
    pub(crate) fn build(&self, revision: u32) -> PathBuf {
        let mut dpkg = Command::new("dpkg");
        let architecture = run(dpkg.arg("--print-architecture"));
        let control = format!(
            "Package: workerctl\nVersion: {}-{revision}\nArchitecture: {}\nMaintainer: {}\nDepends: {}\n\
             Description: {}\n {}\n",
            self.text("/version"),
            architecture.trim(),
            self.text("/metadata/deb/maintainer"),
            self.dependencies().join(", "),
            self.text("/description"),
            self.text("/metadata/deb/extended-description"),
        );
        let tree = self.place.join("tree");
        fs::write(tree.join("DEBIAN/control"), control).unwrap();
        let package = self.place.join(format!("workerctl_{revision}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-Zgzip", "-z1", "--build"]);
        run(build.arg(tree).arg(&package));
        package
    }

    /// What has to be installed, with its alternatives.
    pub(crate) fn dependencies(&self) -> Vec<String> {
        let all = self.text("/metadata/deb/depends");
        // cargo-deb puts the libraries of the program there.
        let all = all.split(", ").map(|one| one.replace("$auto", "libc6"));
        all.collect()
    }

    fn text(&self, pointer: &str) -> &str {
        self.manifest.pointer(pointer).unwrap().as_str().unwrap()
    }
}

/// What Cargo.toml says.
fn manifest() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let all: Value = serde_json::from_str(&run(cargo.current_dir(ROOT))).unwrap();
    let packages = all["packages"].as_array().unwrap();
    let ours = packages.iter().find(|one| one["name"] == "workerctl");
    ours.unwrap().clone()
}

/// The files that an entry of the list names, each with its name below the directory that the entry goes to.
fn matching(source: &str) -> Vec<(PathBuf, String)> {
    if source == PROGRAM {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_workerctl"));
        return vec![(program, "workerctl".to_owned())];
    }
    let (directory, pattern) = source.rsplit_once('/').unwrap_or((".", source));
    let (directory, is_deep) = match directory.strip_suffix("/**") {
        Some(above) => (above, true),
        None => (directory, false),
    };
    let directory = Path::new(ROOT).join(directory);
    let fits = |name: &str| match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    };
    let files = files_below(&directory, &|path| is_deep || !path.is_dir()).into_iter();
    let named = files.map(|path| {
        let name = path
            .strip_prefix(&directory)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        (path, name)
    });
    let file_name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    named.filter(|(path, _)| fits(&file_name(path))).collect()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
