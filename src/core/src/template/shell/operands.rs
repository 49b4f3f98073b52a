//! What becomes of each word of a simple command once the shell has read it.

use super::lists::{BUILTINS, OPTION_OPERANDS, PREFIXES, WRAPPERS};
use super::reading::Word;
use super::tools::{Input, Operands, TOOLS, Tool, UNKNOWN, base, tool};

/// Deepest chain of commands that run commands.
const CHAIN_MAX: usize = 16;

/// Words that start a command only where the shell itself reads them.
const SHELL_WORDS: [&str; 4] = ["exec", "command", "builtin", "time"];

/// What a command does with one of its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command itself.
    Program,
    /// Read as a program; the remedy.
    Code(&'static str),
    /// The name of a variable.
    VariableName,
    /// `NAME=value`.
    Assigned(String),
    /// Changed by the command before it is used; how.
    Replaced(&'static str),
    /// Taken for a file name after `@`; the remedy.
    AtFile(&'static str),
    /// An operand that could be taken for an option.
    Argument,
    /// An operand that cannot.
    Operand,
    /// An operand of `echo`, which may change it.
    Echoed,
}

/// The roles of the words of one simple command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roles {
    pub(crate) of: Vec<Role>,
    /// The command is another process, whose arguments can be seen.
    pub(crate) external: bool,
    /// It reads a program from standard input; the remedy.
    pub(crate) reads_code: Option<&'static str>,
    /// It writes its words to standard output.
    pub(crate) prints: bool,
    /// Variables that it sets, with the words that name them.
    pub(crate) sets: Vec<(String, usize)>,
    /// Variables that it makes compute whatever they are set to.
    pub(crate) computes: Vec<String>,
}

/// Says what becomes of `words`, the first of which is the command.
pub(crate) fn roles(words: &[Word]) -> Roles {
    roles_within(words, CHAIN_MAX)
}

pub(super) fn roles_within(words: &[Word], chain: usize) -> Roles {
    let of = vec![Role::Argument; words.len()];
    let mut walk = OperandWalk {
        words,
        roles: Roles {
            of,
            ..Roles::default()
        },
    };
    walk.command(0, chain);
    walk.roles
}

pub(super) struct OperandWalk<'a> {
    pub(super) words: &'a [Word],
    pub(super) roles: Roles,
}

/// A word as an option.
enum Flag<'a> {
    /// The program stands in the same word.
    CodeHere,
    /// The program is the next word.
    CodeNext,
    FileNext,
    FileHere(&'a str),
    OperandNext,
    Other,
}

/// Where the program of a command comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// Not known yet.
    #[default]
    Open,
    /// An option says that the next operand is the program.
    Wanted,
    /// An option or an operand has given it.
    Given,
}

/// What has been seen of the words of a command from the table.
#[derive(Debug, Default)]
struct WordState {
    /// The word that is being read.
    i: usize,
    operands: usize,
    program: Program,
    from_input: bool,
    options_ended: bool,
}

impl WordState {
    fn gives(&mut self, given: bool) {
        if given {
            self.program = Program::Given;
        }
    }
}

impl OperandWalk<'_> {
    pub(super) fn fixed(&self, at: usize) -> Option<&str> {
        self.words.get(at).and_then(Word::fixed)
    }

    pub(super) fn set(&mut self, at: usize, role: Role) {
        if let Some(slot) = self.roles.of.get_mut(at) {
            *slot = role;
        }
    }

    /// Reads the command at `at`.
    fn command(&mut self, at: usize, chain: usize) {
        let Some(word) = self.words.get(at) else {
            return;
        };
        let shell = word.is_variable("SHELL") || word.is_variable("BASH");
        let name = match word.fixed() {
            Some(name) => base(name).to_owned(),
            None if word.has_slot() => {
                self.set(at, Role::Program);
                return;
            }
            None if shell => "sh".to_owned(),
            None => {
                self.roles.external = true;
                return self.tool(&UNKNOWN, "", at);
            }
        };
        self.roles.external = !BUILTINS.contains(&name.as_str());
        if chain == 0 {
            for i in at + 1..self.words.len() {
                self.set(
                    i,
                    Role::Code("run the command without so many others before it"),
                );
            }
            return;
        }
        if let Some((_, takes, before)) = PREFIXES.iter().find(|(n, ..)| *n == name) {
            return self.prefix(&name, takes, *before, at, chain);
        }
        if let Some(tool) = tool(&name) {
            self.tool(tool, &name, at);
        } else {
            self.plain(&name, at, chain);
        }
        if self.roles.external && !ends_in_data(&name) {
            let wraps = WRAPPERS.contains(&name.as_str());
            let runs = |j: &usize| {
                let inner = self
                    .fixed(*j)
                    .filter(|w| !BUILTINS.contains(w) && !SHELL_WORDS.contains(w));
                // Whatever the command is: an interpreter and its option for a program are one.
                let gives = |t: &Tool| {
                    let next = self.words.get(j + 1).filter(|w| w.lead().starts_with('-'));
                    let code = |w| matches!(flag(t, w), Flag::CodeHere | Flag::CodeNext);
                    t.operands == Operands::Script && next.is_some_and(code)
                };
                inner.is_some_and(|w| {
                    let prefix = PREFIXES.iter().any(|(n, ..)| *n == base(w));
                    tool(w).is_some_and(|t| wraps || gives(t)) || (wraps && prefix)
                })
            };
            if let Some(inner) = (at + 1..self.words.len()).find(runs) {
                self.command(inner, chain - 1);
                self.roles.external = true;
            }
        }
    }

    /// `env`, `sudo`, `xargs` and their like: options, then another command.
    fn prefix(&mut self, name: &str, takes: &[&str], before: usize, at: usize, chain: usize) {
        let mut i = at + 1;
        let mut replaces = false;
        let mut null = false;
        let mut looks_up = false;
        while let Some(word) = self.words.get(i) {
            let lead = word.lead().to_owned();
            if word.fixed() == Some("--") {
                i += 1;
                break;
            }
            let assigned = lead
                .split_once('=')
                .filter(|_| matches!(name, "env" | "sudo" | "doas"));
            if lead.starts_with('-') && lead.len() > 1 {
                let splits =
                    name == "env" && (lead.starts_with("-S") || lead.starts_with("--split"));
                self.set(
                    i,
                    if splits {
                        Role::Code("name the command and its words one by one")
                    } else {
                        Role::Operand
                    },
                );
                replaces |= lead.starts_with("-I")
                    || lead.starts_with("-i")
                    || lead.starts_with("--replace");
                null |= lead == "-0"
                    || lead == "--null"
                    || (lead.starts_with('-') && !lead.starts_with("--") && lead.ends_with('0'));
                looks_up |= matches!(lead.as_str(), "-v" | "-V");
                if takes.contains(&lead.as_str()) || (splits && lead == "-S") {
                    i += 1;
                    self.set(
                        i,
                        if splits {
                            Role::Code("name the command and its words one by one")
                        } else {
                            Role::Operand
                        },
                    );
                }
            } else if let Some((variable, _)) = assigned {
                self.set(i, Role::Assigned(variable.to_owned()));
            } else {
                break;
            }
            i += 1;
        }
        if name == "command" && looks_up {
            return;
        }
        let command = i + before;
        self.command(command, chain - 1);
        if !matches!(name, "command" | "builtin" | "exec") {
            self.roles.external = true;
        }
        if name == "xargs" {
            self.roles.reads_code =
                (!null).then_some("separate the values with NUL and use `xargs -0`");
            if replaces {
                self.replaced(command, "`xargs -I` replaces its mark inside the value");
            }
        }
    }

    fn replaced(&mut self, from: usize, how: &'static str) {
        for role in self.roles.of.iter_mut().skip(from) {
            if matches!(role, Role::Argument | Role::Operand | Role::Echoed) {
                *role = Role::Replaced(how);
            }
        }
    }

    /// A command from the table.
    fn tool(&mut self, tool: &'static Tool, name: &str, at: usize) {
        let mut seen = WordState {
            i: at + 1,
            ..WordState::default()
        };
        while seen.i < self.words.len() {
            let lead = self.words[seen.i].lead();
            if !seen.options_ended && self.fixed(seen.i) == Some("--") {
                seen.options_ended = true;
                seen.i += 1;
                continue;
            }
            let option = lead.len() > 1 && lead.starts_with(['-', '+']);
            let ended = if option && !seen.options_ended {
                self.option(tool, name, &mut seen);
                seen.program == Program::Given && tool.ends_options
            } else {
                let wanted = seen.program == Program::Wanted;
                let code = self.operand(tool, name, &mut seen);
                if wanted {
                    seen.program = Program::Given;
                }
                wanted || (code && tool.ends_options)
            };
            seen.i += 1;
            if ended {
                self.operands_from(seen.i);
                break;
            }
            if seen.operands > 0 && tool.operands == Operands::Script {
                self.arguments(name, seen.i, tool);
                break;
            }
        }
        self.input(tool, &seen, at);
    }

    /// Reads an option of a command from the table, with its operand.
    fn option(&mut self, tool: &'static Tool, name: &str, seen: &mut WordState) {
        let lead = self.words[seen.i].lead().to_owned();
        seen.from_input |= tool.code_is_operand && is_cluster_with(&lead, 's');
        // These set something beside the program, in a text that is read again all the same.
        let beside = matches!(lead.as_str(), "-v" | "--assign" | "-o")
            || (lead.starts_with("-v") && tool.names.contains(&"awk"));
        match flag(tool, &self.words[seen.i]) {
            Flag::CodeHere => {
                self.set(seen.i, Role::Code(tool.remedy));
                seen.gives(!beside);
            }
            Flag::CodeNext if tool.code_is_operand => seen.program = Program::Wanted,
            Flag::CodeNext => {
                seen.gives(!beside);
                seen.i += 1;
                self.set(seen.i, Role::Code(tool.remedy));
            }
            Flag::FileNext => {
                seen.gives(true);
                seen.i += 1;
                seen.from_input |= matches!(self.fixed(seen.i), Some("-" | "/dev/stdin"))
                    || self.words.get(seen.i).is_some_and(Word::is_process);
                self.set(seen.i, Role::Operand);
            }
            Flag::FileHere(file) => {
                seen.gives(true);
                seen.from_input |= matches!(file, "-" | "/dev/stdin");
            }
            Flag::OperandNext => {
                seen.i += 1;
                self.set(seen.i, Role::Operand);
                if name == "printf" {
                    if let Some(name) = self.fixed(seen.i) {
                        self.roles.sets.push((name.to_owned(), seen.i));
                    }
                    self.set(seen.i, Role::VariableName);
                }
            }
            Flag::Other => {
                let pair = ["--arg", "--argjson", "--slurpfile", "--rawfile"];
                if pair.contains(&lead.as_str()) {
                    self.set(seen.i + 1, Role::Operand);
                    self.set(seen.i + 2, Role::Operand);
                    seen.i += 2;
                }
            }
        }
    }

    /// Reads an operand of a command from the table; whether it is a program.
    fn operand(&mut self, tool: &'static Tool, name: &str, seen: &mut WordState) -> bool {
        seen.operands += 1;
        let reads = tool.input == Input::WithoutProgram || tool.names.contains(&"source");
        let piped = self.words[seen.i].is_process() && seen.operands == 1;
        let standard = matches!(self.fixed(seen.i), Some("-" | "/dev/stdin"));
        seen.from_input |= reads && (standard || piped);
        let assigns = matches!(tool.names.first(), Some(&("awk" | "make")))
            && self.words[seen.i].lead().contains('=')
            && (seen.operands > 1 || seen.program == Program::Given || name.ends_with("make"));
        let code = match tool.operands {
            _ if seen.program == Program::Wanted || assigns => true,
            Operands::First => seen.operands == 1 && seen.program != Program::Given,
            Operands::Second => seen.operands == 2 && seen.program != Program::Given,
            Operands::All => true,
            Operands::AfterFirst => seen.operands > 1,
            Operands::Data | Operands::Script => false,
        };
        if code {
            self.set(seen.i, Role::Code(tool.remedy));
        } else if seen.options_ended {
            self.set(seen.i, Role::Operand);
        }
        code
    }

    /// Notes whether the command reads a program from standard input.
    fn input(&mut self, tool: &'static Tool, seen: &WordState, at: usize) {
        let reads = match tool.input {
            _ if seen.from_input => true,
            Input::Data => false,
            Input::WithoutProgram => {
                let program = 1 + usize::from(tool.operands == Operands::Second);
                seen.program != Program::Given && seen.operands < program
            }
            Input::WithoutOption if tool.operands == Operands::AfterFirst => {
                // A remote command of its own reads the input, unless it is an interpreter.
                let mut rest = self.words.iter().skip(at + 1).filter_map(Word::fixed);
                seen.operands <= 1
                    || rest.any(|w| {
                        TOOLS
                            .iter()
                            .any(|t| t.input != Input::Data && t.names.contains(&base(w)))
                    })
            }
            Input::WithoutOption => seen.program != Program::Given,
        };
        self.roles.reads_code = reads.then_some(tool.remedy);
        self.roles.prints = tool.names.contains(&"printf");
    }

    /// The words from `from` on are data and cannot be options.
    pub(super) fn operands_from(&mut self, from: usize) {
        for i in from..self.words.len() {
            self.set(i, Role::Operand);
        }
    }

    /// Marks the words behind `--` or behind an option that takes one.
    pub(super) fn behind_options(&mut self, name: &str, from: usize) {
        let known = OPTION_OPERANDS
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(&[][..], |(_, o)| o);
        let mut ended = false;
        for i in from..self.words.len() {
            let before = i
                .checked_sub(1)
                .and_then(|i| self.fixed(i))
                .unwrap_or_default();
            if ended || (i > from && known.contains(&before)) {
                self.set(i, Role::Operand);
            }
            ended |= self.fixed(i) == Some("--");
        }
    }
}

/// Whether the words of this command are its own: an interpreter's arguments, or a search's.
fn ends_in_data(name: &str) -> bool {
    !WRAPPERS.contains(&name) && (tool(name).is_some() || matches!(name, "find" | "grep" | "curl"))
}

/// Whether `lead` is a cluster of short options that has `letter` in it.
fn is_cluster_with(lead: &str, letter: char) -> bool {
    lead.starts_with('-') && !lead.starts_with("--") && lead.contains(letter)
}

/// What the option at the beginning of `word` is to `tool`.
fn flag<'a>(tool: &Tool, word: &'a Word) -> Flag<'a> {
    let lead = word.lead();
    let glued = word.fixed().is_none();
    let (name, value) = match lead.split_once('=') {
        Some((name, value)) if lead.starts_with("--") => (name, Some(value)),
        _ => (lead, None),
    };
    let known = |list: &[&str]| list.contains(&name);
    if known(tool.code) || known(tool.file) || known(tool.takes) {
        let here = value.is_some() || (glued && lead.len() > 1);
        return match (known(tool.code), known(tool.file), here) {
            (true, _, true) => Flag::CodeHere,
            (true, _, false) => Flag::CodeNext,
            (_, true, true) => Flag::FileHere(value.unwrap_or_default()),
            (_, true, false) => Flag::FileNext,
            (false, false, true) => Flag::Other,
            (false, false, false) => Flag::OperandNext,
        };
    }
    if lead.starts_with("--") || lead.starts_with('+') {
        return Flag::Other;
    }
    for (i, letter) in lead.char_indices().skip(1) {
        let single = format!("-{letter}");
        let rest = &lead[i + letter.len_utf8()..];
        let here = !rest.is_empty() || glued;
        if tool.code.contains(&single.as_str()) {
            let cluster = tool.code_is_operand;
            return if here && !cluster {
                Flag::CodeHere
            } else {
                Flag::CodeNext
            };
        }
        if tool.file.contains(&single.as_str()) {
            return if here {
                Flag::FileHere(rest)
            } else {
                Flag::FileNext
            };
        }
        if tool.takes.contains(&single.as_str()) {
            return if here { Flag::Other } else { Flag::OperandNext };
        }
    }
    Flag::Other
}
