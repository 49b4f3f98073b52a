//! Builtins and commands whose words have roles that no table says.

use super::operands::{OperandWalk, Role, roles_within};
use super::reading::Word;
use super::tools::{GIT_RUNS, Tool};

/// What to do where a variable computes what it is set to.
pub(super) const COMPUTES: &str =
    "declare the variable without `-i`: bash runs what it finds in a number";

impl OperandWalk<'_> {
    /// A command that is not in the table.
    pub(super) fn plain(&mut self, name: &str, at: usize, chain: usize) {
        self.behind_options(name, at + 1);
        match name {
            "[" | "test" | ":" | "true" | "false" => {
                self.operands_from(at + 1);
                for i in at + 2..self.words.len() {
                    if matches!(self.fixed(i - 1), Some("-v" | "-R")) {
                        self.set(i, Role::VariableName);
                    }
                }
            }
            "echo" => {
                for i in at + 1..self.words.len() {
                    self.set(i, Role::Echoed);
                }
                self.roles.prints = true;
            }
            "export" | "readonly" | "local" | "declare" | "typeset" => self.declaration(at),
            "unset" | "read" | "getopts" | "mapfile" | "readarray" => self.names(name, at),
            "curl" => self.curl(at),
            "find" => self.find(at, chain - 1),
            "docker" | "podman" | "nerdctl" => self.entry_point(at),
            _ => {}
        }
    }

    fn declaration(&mut self, at: usize) {
        let flags = |letter| {
            let mut words = self.words.iter().skip(at + 1).map(Word::lead);
            words.any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains(letter))
        };
        let (computes, refers) = (flags('i'), flags('n'));
        for i in at + 1..self.words.len() {
            let word = &self.words[i];
            let lead = word.lead().to_owned();
            if lead.starts_with('-') && !word.has_slot() {
                continue;
            }
            let name = lead.split('=').next().unwrap_or_default();
            let name = name.trim_end_matches('+').to_owned();
            if computes {
                self.roles.computes.push(name.clone());
            }
            match lead.split_once('=') {
                Some(_) => {
                    self.roles.sets.push((name.clone(), i));
                    let role = match (computes, refers) {
                        (true, _) => Role::Code(COMPUTES),
                        (_, true) => Role::VariableName,
                        _ => Role::Assigned(name),
                    };
                    self.set(i, role);
                }
                None => self.set(i, Role::VariableName),
            }
        }
    }

    fn names(&mut self, command: &str, at: usize) {
        for i in at + 1..self.words.len() {
            let before = self.fixed(i - 1).unwrap_or_default();
            if before == "-C" {
                self.set(
                    i,
                    Role::Code("write the name of a function after `-C`, because bash executes it"),
                );
                continue;
            }
            let is_bare = before == "-t" && command != "read";
            let operand = command != "unset"
                && !is_bare
                && (matches!(
                    before,
                    "-p" | "-d" | "-n" | "-N" | "-t" | "-u" | "-i" | "-c" | "-O" | "-s"
                ) || (command == "getopts" && i != at + 2));
            if operand {
                self.set(i, Role::Operand);
                continue;
            }
            if let Some(name) = self.fixed(i).filter(|n| !n.starts_with('-')) {
                self.roles.sets.push((name.to_owned(), i));
            }
            self.set(i, Role::VariableName);
        }
    }

    fn curl(&mut self, at: usize) {
        const RAW: &str =
            "write `--data-raw %N`: a value that begins with `@` would name a file to send";
        const FORM: &str =
            "write `--form-string name=%N`: a value that begins with `@` would name a file to send";
        const CONFIG: &str = "write the option without a value";
        for i in at + 1..self.words.len() {
            let word = &self.words[i];
            let before = self.fixed(i - 1).unwrap_or_default();
            let begins = word.first_slot().is_some();
            let glued = word.lead();
            let data = |w: &str| {
                matches!(
                    w,
                    "-d" | "--data"
                        | "--data-binary"
                        | "--data-ascii"
                        | "--data-urlencode"
                        | "-H"
                        | "--header"
                        | "--json"
                )
            };
            let ends = |flag: &str| glued == flag || glued == format!("{flag}=");
            let role = if begins && data(before)
                || word.has_slot()
                    && [
                        "-d",
                        "--data",
                        "--data-binary",
                        "--data-ascii",
                        "--json",
                        "-H",
                        "--header",
                    ]
                    .iter()
                    .any(|f| ends(f))
            {
                Role::AtFile(RAW)
            } else if word.has_slot()
                && (matches!(before, "-F" | "--form")
                    || glued.starts_with("-F")
                    || glued.starts_with("--form="))
            {
                Role::AtFile(FORM)
            } else if word.has_slot() && matches!(before, "-K" | "--config") {
                Role::Code(CONFIG)
            } else {
                continue;
            };
            self.set(i, role);
        }
    }

    /// `--entrypoint` names the command of a container.
    fn entry_point(&mut self, at: usize) {
        for i in at + 1..self.words.len() {
            let begins = self.words[i].lead().starts_with("--entrypoint=");
            if begins || self.fixed(i - 1) == Some("--entrypoint") {
                self.set(i, Role::Program);
            }
        }
    }

    fn find(&mut self, at: usize, chain: usize) {
        let mut i = at + 1;
        while i < self.words.len() {
            let runs = matches!(self.fixed(i), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
            i += 1;
            if !runs {
                continue;
            }
            let ends = |j: &usize| matches!(self.fixed(*j), Some(";" | "+"));
            let end = (i..self.words.len()).find(ends).unwrap_or(self.words.len());
            let inner = roles_within(&self.words[i..end], chain);
            self.roles.of.splice(i..end, inner.of);
            for role in &mut self.roles.of[i..end] {
                if matches!(role, Role::Argument | Role::Operand | Role::Echoed) {
                    *role = Role::Replaced("`find -exec` replaces `{}` inside the value");
                }
            }
            i = end;
        }
        self.roles.external = true;
    }

    /// The words of a subcommand or a script, which may have options of its own.
    pub(super) fn arguments(&mut self, name: &str, from: usize, tool: &'static Tool) {
        self.behind_options(name, from);
        if tool.names.contains(&"git") {
            let verb = self.fixed(from - 1).unwrap_or_default().to_owned();
            let mut runs = false;
            for i in from..self.words.len() {
                let lead = self.words[i].lead();
                let flag = lead.split('=').next().unwrap_or_default();
                let short = match verb.as_str() {
                    "rebase" | "difftool" => flag.starts_with("-x"),
                    "grep" => flag.starts_with("-O"),
                    "clone" => matches!(flag, "-c" | "-u" | "--config"),
                    _ => false,
                };
                if runs || short || (flag.starts_with("--") && tool.code.contains(&flag)) {
                    let here = runs || self.words[i].has_slot() || lead.contains('=');
                    self.set(i + usize::from(!here), Role::Code(tool.remedy));
                }
                runs |= GIT_RUNS.iter().any(|[v, w]| *v == verb && *w == lead);
            }
        }
    }
}
