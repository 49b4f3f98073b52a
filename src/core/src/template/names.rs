//! The names that a text may mention, and the environment variables that carry their values.

use super::pattern;

/// Most names that one skill may declare.
pub const NAMES_MAX: usize = 512;
/// Longest declared name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The name by which the first output can be mentioned, whatever its own.
const FIRST_OUTPUT: &str = "output";

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// A declared input.
    Input,
    /// A declared output that has a path.
    Output,
    /// A name that every skill has, such as `date`.
    Builtin,
}

impl Scope {
    /// The word that selects this scope in a placeholder: `{input.x}`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Builtin => "builtin",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        [Self::Input, Self::Output, Self::Builtin]
            .into_iter()
            .find(|s| s.word() == word)
    }
}

/// What kind of text a value is; it decides where a placeholder may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number in canonical decimal form of at most 18 digits.
    Integer,
    /// A decimal number in canonical form, without exponent.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of the values that the definition lists.
    Enumeration,
    /// Several texts.
    List,
    /// A calendar date.
    Date,
    /// A path that the caller gives.
    Path,
    /// The path of a declared output.
    OutputFile,
    /// A built-in whose alphabet is `[A-Za-z0-9:._+-]`, a letter or digit first.
    SafeText,
}

/// One known name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As it is written in a placeholder.
    pub name: String,
    /// Where it comes from.
    pub scope: Scope,
    /// What its value is.
    pub kind: Kind,
    /// Whether the value must not be shown.
    pub secret: bool,
    /// Whether a value that begins with `-` is meant to reach commands as it is.
    pub allow_dash: bool,
    /// The regular expression that a submission holds the value to.
    pub pattern: Option<String>,
}

impl Name {
    /// A name without any of the special properties.
    pub fn new(scope: Scope, name: impl Into<String>, kind: Kind) -> Self {
        let (secret, allow_dash, pattern) = (false, false, None);
        Self {
            name: name.into(),
            scope,
            kind,
            secret,
            allow_dash,
            pattern,
        }
    }

    /// Whether its value differs from one attempt to the next.
    pub(super) fn is_attempt(&self) -> bool {
        self.scope == Scope::Builtin && self.name == "attempt"
    }
}

/// What part of a value a placeholder asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Projection {
    /// `{x}`: the value itself.
    Value,
    /// `{x.json}`: the value as one JSON text.
    Json,
    /// `{x.lines}`: the elements of a list, one a line.
    Lines,
    /// `{x.file}`: the path of a file that holds exactly the value.
    File,
}

impl Projection {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "json" => Some(Self::Json),
            "lines" => Some(Self::Lines),
            "file" => Some(Self::File),
            _ => None,
        }
    }
}

/// A name in its place in [`Names`], and the part of it that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Index into [`Names::entries`].
    pub index: usize,
    /// The part.
    pub projection: Projection,
}

/// Why a set of names cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamesProblem {
    /// The name is not of the form that a placeholder can hold.
    #[error(
        "`{name}` cannot be written as a placeholder: a name is `[A-Za-z_][A-Za-z0-9_-]*` of at most 128 bytes"
    )]
    NotAName {
        /// As declared.
        name: String,
        /// Where it was declared.
        scope: Scope,
    },
    /// Two declarations of one scope have the same name.
    #[error("the {} `{name}` is declared twice", scope.word())]
    Twice {
        /// As declared.
        name: String,
        /// Where it was declared.
        scope: Scope,
    },
    /// Two names would be carried by one environment variable.
    #[error("`{first}` and `{second}` both need the environment variable `{variable}`; rename one")]
    SameVariable {
        /// The name declared first.
        first: String,
        /// The name declared second.
        second: String,
        /// The variable.
        variable: String,
    },
    /// More names than [`NAMES_MAX`].
    #[error("{count} names are declared, at most {NAMES_MAX} can be")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// What a name in a placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    Unknown,
    One(usize),
    Several(Vec<usize>),
}

/// The known names of one skill.
#[derive(Debug, Clone)]
pub struct Names {
    pub(super) entries: Vec<Name>,
    /// Indexes of the entries, by name and then in the order of declaration.
    by_name: Vec<usize>,
    pub(super) declared: usize,
    first_output: Option<usize>,
}

impl Names {
    /// The names that `declared` lists, in the order of declaration, and the built-in ones.
    ///
    /// `worker` and `skill` are the ids that `{worker}` and `{skill}` will have: an id with unusual
    /// characters is not taken for inert text.
    pub fn new(declared: Vec<Name>, worker: &str, skill: &str) -> Result<Self, Vec<NamesProblem>> {
        if declared.len() > NAMES_MAX {
            return Err(vec![NamesProblem::TooMany {
                count: declared.len(),
            }]);
        }
        let mut entries = declared;
        let mut found: Vec<_> = entries
            .iter()
            .filter(|n| !is_name(&n.name) || n.name.len() > NAME_BYTES_MAX)
            .map(|n| NamesProblem::NotAName {
                name: n.name.clone(),
                scope: n.scope,
            })
            .collect();
        let declared = entries.len();
        entries.extend(builtins(worker, skill));
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        by_name.sort_by(|one, other| entries[*one].name.cmp(&entries[*other].name));
        for same in by_name.chunk_by(|one, other| entries[*one].name == entries[*other].name) {
            for (place, index) in same.iter().enumerate() {
                let Name { name, scope, .. } = &entries[*index];
                if same[..place].iter().any(|&i| entries[i].scope == *scope) {
                    found.push(NamesProblem::Twice {
                        name: name.clone(),
                        scope: *scope,
                    });
                }
            }
        }
        let first_output = entries.iter().position(|n| n.kind == Kind::OutputFile);
        let names = Self {
            entries,
            by_name,
            declared,
            first_output,
        };
        found.extend(names.variable_clashes());
        if found.is_empty() {
            Ok(names)
        } else {
            Err(found)
        }
    }

    /// All names, the declared ones first.
    pub fn entries(&self) -> &[Name] {
        &self.entries
    }

    pub(super) fn get(&self, reference: Reference) -> &Name {
        &self.entries[reference.index]
    }

    pub(super) fn lookup(&self, scope: Option<Scope>, name: &str) -> Lookup {
        let all = self.standing_for(name);
        let fits = |i: &&usize| match scope {
            None => true,
            // `{output.output}` is a declared name, never the alias.
            Some(s) => self.entries[**i].scope == s && self.entries[**i].name == name,
        };
        let mut fitting: Vec<usize> = all.iter().filter(fits).copied().collect();
        match fitting.len() {
            0 => Lookup::Unknown,
            1 => Lookup::One(fitting.remove(0)),
            _ => Lookup::Several(fitting),
        }
    }

    /// The entries that a name may stand for, the alias of the first output among them.
    fn standing_for(&self, name: &str) -> Vec<usize> {
        let named = |index: &usize| self.entries[*index].name.as_str();
        let from = self.by_name.partition_point(|index| named(index) < name);
        let rest = self.by_name[from..].iter();
        let mut all: Vec<usize> = rest
            .take_while(|index| named(index) == name)
            .copied()
            .collect();
        if name == FIRST_OUTPUT
            && let Some(first) = self.first_output
            && !all.contains(&first)
        {
            all.push(first);
        }
        all
    }

    /// Every name that may stand in a placeholder, each once.
    fn known(&self) -> Vec<&str> {
        let mut known: Vec<&str> = self
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        known.extend(self.first_output.map(|_| FIRST_OUTPUT));
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Every name that stands for one thing, with what it stands for.
    pub(super) fn unambiguous(&self) -> impl Iterator<Item = (&str, usize)> {
        let one = |name| match *self.standing_for(name).as_slice() {
            [one] => Some((name, one)),
            _ => None,
        };
        self.known().into_iter().filter_map(one)
    }

    /// Reads the inside of a placeholder: `[input.|output.|builtin.]NAME[.json|.lines|.file]`.
    pub(super) fn resolve(&self, inside: &str) -> (Lookup, Projection) {
        let parts: Vec<&str> = inside.split('.').collect();
        match *parts.as_slice() {
            [name] => (self.lookup(None, name), Projection::Value),
            [a, b] => {
                if let Some(scope) = Scope::of_word(a) {
                    let scoped = self.lookup(Some(scope), b);
                    if scoped != Lookup::Unknown {
                        return (scoped, Projection::Value);
                    }
                }
                self.projected(None, a, b)
            }
            [scope, name, part] => match Scope::of_word(scope) {
                Some(scope) => self.projected(Some(scope), name, part),
                None => (Lookup::Unknown, Projection::Value),
            },
            _ => (Lookup::Unknown, Projection::Value),
        }
    }

    fn projected(&self, scope: Option<Scope>, name: &str, part: &str) -> (Lookup, Projection) {
        let Some(projection) = Projection::of_word(part) else {
            return (Lookup::Unknown, Projection::Value);
        };
        let lookup = self.lookup(scope, name);
        match &lookup {
            // Outputs and built-ins are short texts of ours: there is nothing to project.
            Lookup::One(i) if self.entries[*i].scope != Scope::Input => {
                (Lookup::Unknown, Projection::Value)
            }
            Lookup::One(_) | Lookup::Several(_) => (lookup, projection),
            Lookup::Unknown => (Lookup::Unknown, Projection::Value),
        }
    }

    /// A known name that `name` may be a slip of: at most two typing errors, and fewer than half
    /// of the known name, so that short words which merely look alike stay untouched.
    pub(super) fn near_miss(&self, name: &str) -> Option<&str> {
        let close = |known: &&str| {
            let distance = strsim::osa_distance(known, name);
            distance <= 2 && distance * 2 < known.chars().count()
        };
        let best = self.known().into_iter().filter(close);
        best.min_by_key(|known| strsim::osa_distance(known, name))
    }

    /// What the text behind a reference is.
    pub(super) fn kind(&self, reference: Reference) -> Kind {
        let kind = self.get(reference).kind;
        match reference.projection {
            Projection::Value => kind,
            Projection::Json => match kind {
                Kind::Integer | Kind::Number | Kind::Boolean => kind,
                _ => Kind::Text,
            },
            Projection::Lines => Kind::Text,
            Projection::File => Kind::Path,
        }
    }

    /// Whether no value can mean anything to any interpreter: its alphabet forbids it, or the
    /// definition lists the values.
    pub(super) fn is_inert(&self, reference: Reference) -> bool {
        match self.kind(reference) {
            Kind::Integer | Kind::Number | Kind::Boolean | Kind::Enumeration | Kind::SafeText => {
                true
            }
            Kind::Text | Kind::Date => {
                let name = self.get(reference);
                reference.projection == Projection::Value
                    && name
                        .pattern
                        .as_deref()
                        .is_some_and(pattern::allows_only_inert_text)
            }
            Kind::List | Kind::Path | Kind::OutputFile => false,
        }
    }

    /// How a reference is written so that it means one thing only.
    pub(super) fn scoped(&self, index: usize) -> String {
        let entry = &self.entries[index];
        format!("{{{}.{}}}", entry.scope.word(), entry.name)
    }
}

fn builtins(worker: &str, skill: &str) -> Vec<Name> {
    let id = |text: &str| {
        if is_safe_text(text) {
            Kind::SafeText
        } else {
            Kind::Text
        }
    };
    let kinds = [
        ("date", Kind::SafeText),
        ("time", Kind::SafeText),
        ("scheduled_at", Kind::SafeText),
        ("worker", id(worker)),
        ("skill", id(skill)),
        ("run", Kind::SafeText),
        ("attempt", Kind::SafeText),
        ("workspace", Kind::Path),
        ("cwd", Kind::Path),
    ];
    kinds
        .into_iter()
        .map(|(name, kind)| Name::new(Scope::Builtin, name, kind))
        .collect()
}

/// Whether `text` is of the alphabet that [`Kind::SafeText`] promises.
pub(super) fn is_safe_text(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b":._+-".contains(&b))
}

/// Whether `name` is `[A-Za-z_][A-Za-z0-9_-]*`.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether a shell can have a variable of this name.
pub(super) fn is_shell_variable(name: &str) -> bool {
    is_name(name) && !name.contains('-')
}
