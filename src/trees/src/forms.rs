//! Between git's form of a file and the one in a work tree: line ends, as git itself decides on them, and
//! the attributes that are not applied.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{AttrCheckFlags, AttrValue, ObjectType, Repository, RepositoryOpenFlags};
use sha1::{Digest, Sha1};
use workerctl_landing::ids::RepoPath;
use workerctl_landing::open::open;

use crate::error::{TreeError, git};
use crate::known::{RecordedPath, hash};
use crate::rule_files::RuleFiles;

/// Attributes that change contents and are not applied here.
const FILTERS: [&str; 3] = ["filter", "working-tree-encoding", "ident"];

/// Longest time that the rules are evaluated for one walk. A run decides on names and patterns, and nothing can end the
/// library's matcher.
const EVALUATION_MAX: Duration = Duration::from_mins(1);

/// How files are converted.
pub(crate) struct Rules {
    repo: Repository,
    flags: AttrCheckFlags,
    auto: Auto,
    is_crlf: bool,
    /// Whether any attribute of line ends can be set.
    ends: bool,
    /// Whether any attribute of filters can be set.
    filters: bool,
    /// How long rules were evaluated.
    evaluated: Cell<Duration>,
}

/// `core.autocrlf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Auto {
    Off,
    On,
    Input,
}

/// What is done with the line ends of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    /// Only if the content looks like text.
    guessed: bool,
    /// Lines end with CR LF in the work tree.
    crlf: bool,
}

impl Rules {
    /// The rules that hold in a tree. `sources` are the texts of all attribute files.
    pub(crate) fn open(rules: &Path, in_result: bool) -> Result<Self, TreeError> {
        let repo = open(
            rules,
            RepositoryOpenFlags::NO_SEARCH,
            "read the rules of the tree",
        )?;
        Self::of(repo, in_result)
    }

    /// The rules that hold in the work tree of a handle.
    pub(crate) fn of(repo: Repository, in_result: bool) -> Result<Self, TreeError> {
        let config = repo.config().and_then(|mut config| config.snapshot());
        let config = config.map_err(git("read the settings of the tree"))?;
        let text = |name: &str| config.get_string(name).unwrap_or_default();
        let auto = match text("core.autocrlf").to_ascii_lowercase().as_str() {
            "input" => Auto::Input,
            "true" | "yes" | "on" | "1" => Auto::On,
            _ => Auto::Off,
        };
        let is_crlf =
            auto == Auto::On || auto == Auto::Off && text("core.eol").eq_ignore_ascii_case("crlf");
        let flags = if in_result {
            AttrCheckFlags::FILE_THEN_INDEX
        } else {
            AttrCheckFlags::INDEX_ONLY
        };
        Ok(Self {
            repo,
            flags,
            auto,
            is_crlf,
            ends: true,
            filters: true,
            evaluated: Cell::default(),
        })
    }

    /// Looks only for what the attribute files of the base and the machine mention.
    pub(crate) fn limit_to(&mut self, known: &[RecordedPath]) -> Result<[u8; 20], TreeError> {
        let mut sum = Sha1::new();
        sum.update(format!("{:?} {}", self.auto, self.is_crlf));
        let mut texts = Vec::new();
        let info = self.repo.path().join("info/attributes");
        for place in outer_sources(&self.repo).into_iter().chain([info]) {
            texts.push(fs::read(place).unwrap_or_default());
        }
        for known in known {
            let Some(base) = known.base else { continue };
            if known.path.ends_with(b".gitattributes")
                && matches!(known.path.iter().rev().nth(14), None | Some(b'/'))
            {
                let blob = self.repo.find_blob(base.oid);
                let blob = blob.map_err(git("read an attribute file"))?;
                sum.update(&known.path);
                texts.push(blob.content().to_vec());
            }
        }
        let mentions = |words: &[&str]| {
            texts.iter().any(|text| {
                let text = String::from_utf8_lossy(text);
                text.contains("[attr]") || words.iter().any(|word| text.contains(word))
            })
        };
        self.ends = mentions(&["text", "crlf", "eol", "binary"]);
        self.filters = mentions(&FILTERS);
        for text in &texts {
            sum.update((text.len() as u64).to_le_bytes());
            sum.update(text);
        }
        Ok(sum.finalize().into())
    }

    /// Git's own evaluation of ignore files, with settings and `info/exclude` of ours.
    pub(crate) fn is_ignored(&self, path: &Path) -> Result<bool, TreeError> {
        let ignored = self.timed(path, || self.repo.is_path_ignored(path))?;
        ignored.map_err(git("evaluate the ignore rules"))
    }

    /// Evaluates the rules in this directory, in place of the work tree.
    pub(crate) fn in_shadow(self, files: &RuleFiles) -> Result<Self, TreeError> {
        let set = self.repo.set_workdir(files.place(), false);
        set.map_err(git("read the rules of the tree"))?;
        Ok(self)
    }

    fn timed<T>(&self, path: &Path, evaluate: impl FnOnce() -> T) -> Result<T, TreeError> {
        let before = Instant::now();
        let found = evaluate();
        let evaluated = self.evaluated.get().saturating_add(before.elapsed());
        self.evaluated.set(evaluated);
        if evaluated > EVALUATION_MAX {
            return Err(TreeError::SlowRules(path.to_owned()));
        }
        Ok(found)
    }

    /// Whether paths that differ only in case are the same.
    pub(crate) fn ignores_case(&self) -> bool {
        self.setting("core.ignorecase", false)
    }

    /// Whether the executable bit of files counts.
    pub(crate) fn follows_modes(&self) -> bool {
        self.setting("core.filemode", true)
    }

    fn setting(&self, name: &str, default: bool) -> bool {
        let config = self.repo.config().and_then(|config| config.get_bool(name));
        config.unwrap_or(default)
    }

    /// The attribute that makes this path one whose content is not stored as it is written.
    pub(crate) fn filter_of(
        &self,
        path: &RepoPath,
        names: &[&'static str],
    ) -> Result<Option<&'static str>, TreeError> {
        if self.filters {
            for name in names {
                if self
                    .attribute(path, name)?
                    .is_some_and(|v| v != Value::False)
                {
                    return Ok(Some(name));
                }
            }
        }
        Ok(None)
    }

    /// What of the attributes makes a base one that cannot be checked out here.
    pub(crate) fn filter_of_base(&self, path: &[u8]) -> Result<Option<&'static str>, TreeError> {
        if !self.filters {
            return Ok(None);
        }
        match RepoPath::from_bytes(path) {
            Ok(path) => self.filter_of(&path, &FILTERS[..2]),
            Err(_) => Ok(None),
        }
    }

    /// What makes a changed path one whose content cannot be taken into a result.
    pub(crate) fn filter_of_result(
        &self,
        path: &RepoPath,
    ) -> Result<Option<&'static str>, TreeError> {
        self.filter_of(path, &FILTERS)
    }

    /// Whether contents of this path may be converted at all.
    pub(crate) fn converts(&self, path: &[u8]) -> Result<bool, TreeError> {
        Ok(self.ends_of(path)?.is_some())
    }

    /// What a work tree holds for a blob.
    pub(crate) fn to_work_tree(&self, path: &[u8], blob: Vec<u8>) -> Result<Vec<u8>, TreeError> {
        let Some(ends) = self.ends_of(path)?.filter(|ends| ends.crlf) else {
            return Ok(blob);
        };
        let figures = Figures::of(&blob);
        let is_touched = figures.lone_cr > 0 || figures.crlf > 0 || figures.is_binary();
        if figures.lone_lf == 0 || ends.guessed && is_touched {
            return Ok(blob);
        }
        let mut out = Vec::with_capacity(blob.len() + figures.lone_lf);
        let mut before = 0;
        for byte in blob {
            if byte == b'\n' && before != b'\r' {
                out.push(b'\r');
            }
            out.push(byte);
            before = byte;
        }
        Ok(out)
    }

    /// What git stores for a content; `former` is the blob that the base has there.
    pub(crate) fn to_git(
        &self,
        path: &[u8],
        content: Vec<u8>,
        former: Option<git2::Oid>,
    ) -> Result<Vec<u8>, TreeError> {
        let Some(ends) = self.ends_of(path)? else {
            return Ok(content);
        };
        let figures = Figures::of(&content);
        if figures.crlf == 0 {
            return Ok(content);
        }
        if ends.guessed {
            // A file that was stored with such line ends keeps them.
            let has_crlf = |oid: git2::Oid| {
                let blob = self.repo.find_blob(oid);
                blob.is_ok_and(|blob| {
                    let stored = Figures::of(blob.content());
                    stored.crlf > 0 && !stored.is_binary()
                })
            };
            if figures.is_binary() || former.is_some_and(has_crlf) {
                return Ok(content);
            }
        }
        let mut out = Vec::with_capacity(content.len());
        let mut rest = content.iter().peekable();
        while let Some(byte) = rest.next() {
            if *byte != b'\r' || rest.peek() != Some(&&b'\n') {
                out.push(*byte);
            }
        }
        Ok(out)
    }

    /// The id of what git would store.
    pub(crate) fn stored_id(
        &self,
        path: &[u8],
        content: Vec<u8>,
        former: Option<git2::Oid>,
    ) -> Result<git2::Oid, TreeError> {
        Ok(hash(ObjectType::Blob, &self.to_git(path, content, former)?))
    }

    /// As git's `convert_attrs` decides.
    fn ends_of(&self, path: &[u8]) -> Result<Option<Ends>, TreeError> {
        let plain = match self.auto {
            Auto::Off => None,
            auto => Some(Ends {
                guessed: true,
                crlf: auto == Auto::On,
            }),
        };
        if !self.ends {
            return Ok(plain);
        }
        let Ok(path) = RepoPath::from_bytes(path) else {
            return Ok(plain);
        };
        let mut text = self.attribute(&path, "text")?;
        if text.is_none() {
            text = self.attribute(&path, "crlf")?;
        }
        let eol = match self.attribute(&path, "eol")? {
            Some(Value::Text(value)) if value == b"lf" => Some(false),
            Some(Value::Text(value)) if value == b"crlf" => Some(true),
            _ => None,
        };
        let explicit = |guessed: bool| Ends {
            guessed,
            crlf: eol.unwrap_or(self.is_crlf),
        };
        Ok(match text {
            Some(Value::False) => None,
            Some(Value::True) => Some(explicit(false)),
            Some(Value::Text(value)) if value == b"auto" => Some(explicit(true)),
            Some(Value::Text(value)) if value == b"input" => Some(Ends {
                guessed: false,
                crlf: eol.unwrap_or(false),
            }),
            _ if eol.is_some() => Some(explicit(false)),
            _ => plain,
        })
    }

    fn attribute(&self, path: &RepoPath, name: &str) -> Result<Option<Value>, TreeError> {
        let place = path.as_path();
        let value = self.timed(place, || self.repo.get_attr_bytes(place, name, self.flags))?;
        let value = value.map_err(git("read the attributes"))?;
        Ok(match AttrValue::from_bytes(value) {
            AttrValue::Unspecified => None,
            AttrValue::True => Some(Value::True),
            AttrValue::False => Some(Value::False),
            AttrValue::Bytes(bytes) => Some(Value::Text(bytes.to_vec())),
            AttrValue::String(text) => Some(Value::Text(text.as_bytes().to_vec())),
        })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    True,
    False,
    Text(Vec<u8>),
}

/// Attribute files outside of the repository.
fn outer_sources(repo: &Repository) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/etc/gitattributes")];
    let config = repo.config();
    match config.and_then(|config| config.get_path("core.attributesfile")) {
        Ok(path) => found.push(path),
        Err(_) => {
            if let Ok(config) = git2::Config::find_xdg() {
                found.push(config.with_file_name("attributes"));
            } else if let Some(home) = std::env::var_os("HOME") {
                found.push(Path::new(&home).join(".config/git/attributes"));
            }
        }
    }
    found
}

/// What git counts before it takes a content for text.
#[derive(Default)]
struct Figures {
    crlf: usize,
    lone_cr: usize,
    lone_lf: usize,
    nul: usize,
    printable: usize,
    other: usize,
}

impl Figures {
    fn of(content: &[u8]) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while let Some(byte) = content.get(at) {
            match byte {
                b'\r' if content.get(at + 1) == Some(&b'\n') => {
                    found.crlf += 1;
                    at += 1;
                }
                b'\r' => found.lone_cr += 1,
                b'\n' => found.lone_lf += 1,
                0 => {
                    found.nul += 1;
                    found.other += 1;
                }
                b'\x08' | b'\t' | b'\x1b' | b'\x0c' => found.printable += 1,
                0x7f | 0x01..=0x1f => found.other += 1,
                _ => found.printable += 1,
            }
            at += 1;
        }
        if content.last() == Some(&0x1a) {
            found.other -= 1;
        }
        found
    }

    fn is_binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || self.printable >> 7 < self.other
    }
}
