//! Files that commands outside of the sandbox execute, as far as their paths can be read off the command.

use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Catalog;
use crate::model::agent::{AgentProgram, McpTransport};
use crate::model::definition::RunText;
use crate::model::sandbox::NetworkChoice;
use crate::model::{Channel, Notify, SecretSource, Skill};

/// Words after which a command begins, or which begin one themselves.
const BEFORE_A_COMMAND: [&str; 21] = [
    "!", "{", "case", "command", "do", "elif", "else", "env", "exec", "if", "ionice", "nice",
    "nohup", "setsid", "stdbuf", "sudo", "then", "time", "timeout", "until", "while",
];

/// Programs that execute the file that they are given; a version may follow the name.
const INTERPRETERS: [&str; 23] = [
    ".", "source", "sh", "ash", "bash", "dash", "ksh", "zsh", "fish", "python", "pypy", "node",
    "nodejs", "tsx", "bun", "deno", "perl", "ruby", "php", "lua", "uv", "Rscript", "tclsh",
];

/// Programs that execute none of the files that they are given, but read or change them.
const WITHOUT_EXECUTION: [&str; 29] = [
    "[", "cat", "chmod", "chown", "cp", "curl", "cut", "dd", "diff", "echo", "git", "grep", "head",
    "install", "ln", "ls", "mkdir", "mv", "patch", "printf", "rm", "sed", "sort", "stat", "tail",
    "tar", "tee", "test", "touch",
];

/// Programs whose options `-f` and `--file` name a program that they execute.
const WITH_PROGRAM_FILES: [&str; 9] = [
    "awk", "gawk", "mawk", "nawk", "sed", "jq", "make", "gmake", "psql",
];

/// Extensions of files that programs execute.
const EXTENSIONS: [&str; 24] = [
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "tsx", "rb", "pl", "pm", "php",
    "lua", "awk", "sed", "jq", "mk", "r", "R", "tcl", "java", "go",
];

/// Bytes of the first line of a script that are read; the kernel reads no more.
const LINE_BYTES_MAX: usize = 256;

/// Interpreters of scripts that are scripts themselves: the kernel follows no more.
const INTERPRETERS_MAX: usize = 5;

/// The paths of files that decide whether a result is verified, or that are executed with more rights than a skill has by
/// default: by checks, `wake`, hooks, commands of `notify`, of secrets and of tool sets, and by skills with `sandbox: off`,
/// a grant, a secret or `workerctl: true`.
pub(crate) fn executed_paths(catalog: &Catalog) -> Vec<PathBuf> {
    let config = &catalog.config;
    let workspace = catalog.root.as_path();
    let mut found = PathCollector {
        home: catalog.home.as_deref(),
        ..PathCollector::default()
    };
    let hooks = config
        .post_tools_hooks
        .iter()
        .chain(&config.post_commit_hooks);
    hooks.for_each(|hook| found.shell(&hook.command, workspace));
    let of_workers = catalog.workers.iter().map(|worker| &worker.notify);
    let of_schedules = catalog
        .schedules
        .iter()
        .map(|schedule| &schedule.policy.notify);
    for notify in of_workers.chain(of_schedules).chain([&config.notify]) {
        channels(notify).for_each(|text| found.shell(text, workspace));
    }
    for toolset in config.toolsets.values() {
        toolset
            .commands
            .iter()
            .for_each(|tool| found.argv(&tool.argv, workspace));
        if let Some(McpTransport::Stdio { argv, .. }) =
            toolset.mcp.as_ref().map(|mcp| &mcp.transport)
        {
            found.argv(argv, workspace);
        }
    }
    let skills = || catalog.workers.iter().flat_map(|worker| &worker.skills);
    let networks = skills().filter_map(|skill| Some(&skill.sandbox.as_ref()?.network));
    let is_network_restricted = networks
        .into_iter()
        .any(|network| *network != NetworkChoice::Any);
    for skill in skills() {
        let has_network = skill
            .sandbox
            .as_ref()
            .is_none_or(|sandbox| sandbox.network != NetworkChoice::None);
        let has_more = has_more_rights(skill) || is_network_restricted && has_network;
        found.skill(skill, workspace, has_more);
    }
    if let Some(program) = &config.program {
        found.agent_program(program, workspace);
    }
    found.interpreters(workspace);
    found.paths
}

/// Returns the interpreters that the first lines of programs name, and those of interpreters that are scripts themselves.
pub fn interpreters(programs: Vec<PathBuf>, workspace: &Path) -> Vec<PathBuf> {
    let count = programs.len();
    let mut found = PathCollector {
        paths: programs,
        ..PathCollector::default()
    };
    found.interpreters(workspace);
    found.paths.split_off(count)
}

/// Returns true if commands of a skill may do more than those of a skill that declares nothing.
fn has_more_rights(skill: &Skill) -> bool {
    let sandbox = skill.sandbox.as_ref();
    let is_wider = sandbox.is_none_or(|sandbox| {
        let mut reads = sandbox.reads.iter().flatten();
        sandbox.unix_sockets || !sandbox.write.is_empty() || reads.any(|path| path != "/")
    });
    let is_given_secrets =
        !skill.env.is_empty() || skill.inputs.iter().any(|input| input.sensitive);
    is_wider || is_given_secrets || skill.may_control
}

/// Returns true for a file that is executable or begins with `#!`.
fn is_executable(path: &Path) -> bool {
    let begins_with_mark = || {
        let mut mark = [0; 2];
        let file = std::fs::File::open(path);
        file.is_ok_and(|mut file| file.read_exact(&mut mark).is_ok()) && &mark == b"#!"
    };
    let is_file = |found: &std::fs::Metadata| found.is_file();
    let found = path.metadata().ok().filter(is_file);
    found.is_some_and(|found| found.mode() & 0o111 != 0 || begins_with_mark())
}

/// Returns true for a path with the extension of a language that interpreters read; the file may be missing.
fn has_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|name| EXTENSIONS.contains(&name)) && !path.is_dir()
}

/// Returns true for the name of a program that executes the file that it is given; a version may follow it.
fn is_interpreter(name: &str) -> bool {
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut interpreters = INTERPRETERS.iter();
    // `..` is no program, and `.` is one only by itself.
    name != ".."
        && interpreters.any(|interpreter| name.strip_prefix(interpreter).is_some_and(is_version))
}

fn channels(notify: &Notify) -> impl Iterator<Item = &str> {
    let all = [
        &notify.on_failure,
        &notify.on_recovery,
        &notify.on_missed,
        &notify.on_approval,
    ];
    let commands = all.into_iter().flatten().filter_map(Channel::command);
    commands.map(|hook| hook.command.as_str())
}

#[derive(Default)]
struct PathCollector<'a> {
    home: Option<&'a Path>,
    paths: Vec<PathBuf>,
    /// Places that were searched for a program, and whether as an argument of an interpreter.
    looked_at: HashSet<(PathBuf, bool)>,
}

impl PathCollector<'_> {
    fn skill(&mut self, skill: &Skill, workspace: &Path, has_more_rights: bool) {
        let cwd = workspace.join(&skill.cwd);
        for source in skill
            .secrets
            .values()
            .filter_map(|secret| secret.source.as_ref())
        {
            if let SecretSource::Command { argv, .. } = source {
                self.argv(argv, workspace);
            }
        }
        let hooks = skill.hooks.iter().chain(&skill.post_commit);
        hooks.for_each(|hook| self.shell(&hook.command, &cwd));
        let checks = skill.pre_checks.iter().chain(&skill.checks);
        let checks = checks.filter_map(|check| check.command.as_ref());
        let wake = skill.wake.as_ref().map(|wake| &wake.command);
        checks.chain(wake).for_each(|text| self.shell(text, &cwd));
        if let Some(program) = &skill.agent.program {
            self.agent_program(program, workspace);
        }
        if !has_more_rights {
            return;
        }
        match &skill.run {
            RunText::Shell(text) => self.shell(text, &cwd),
            RunText::Argv(argv) => self.argv(argv, &cwd),
            RunText::Script {
                path, interpreter, ..
            } => {
                self.paths.push(path.into());
                self.argv(interpreter, &cwd);
            }
            RunText::Instructions => {}
        }
    }

    /// Adds the interpreters that the first lines of the scripts name, and theirs.
    fn interpreters(&mut self, workspace: &Path) {
        let mut from = 0;
        for _ in 0..INTERPRETERS_MAX {
            let found = self.interpreters_from(from, workspace);
            from = self.paths.len();
            self.paths.extend(found);
        }
    }

    fn interpreters_from(&self, from: usize, workspace: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let paths = self.paths.get(from..).unwrap_or_default();
        for path in paths.iter().filter(|path| path.is_file()) {
            let mut line = [0; LINE_BYTES_MAX];
            let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut line));
            let line = line.get(..read.unwrap_or(0)).unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            let Some(words) = line.lines().next().and_then(|line| line.strip_prefix("#!")) else {
                continue;
            };
            let named = words.split_whitespace().filter(|word| word.contains('/'));
            let directories = [Some(workspace), path.parent()];
            for directory in directories.into_iter().flatten() {
                found.extend(named.clone().map(|word| directory.join(word)));
            }
        }
        found
    }

    fn agent_program(&mut self, program: &AgentProgram, workspace: &Path) {
        let words = std::iter::once(&program.binary).chain(&program.args);
        // An argument may name settings that say which commands the program executes.
        for part in words.clone().flat_map(|word| word.split('=')) {
            let place = workspace.join(part);
            if place.is_file() {
                self.paths.push(place);
            }
        }
        self.argv(&words.cloned().collect::<Vec<_>>(), workspace);
    }

    /// Adds the files that a command likely executes although its program does not say so: as an argument of another
    /// program, or as input of a shell.
    fn named_programs(&mut self, words: &[String], cwd: &Path) {
        let mut names = words.iter().filter(|word| !word.contains('='));
        let name = names.next().and_then(|word| word.rsplit('/').next());
        let Some(name) = name.filter(|name| !WITHOUT_EXECUTION.contains(name)) else {
            return;
        };
        let is_interpreter = is_interpreter(name);
        let is_written = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            words[at].starts_with('>') || before.is_some_and(|word| word.ends_with('>'))
        };
        let read = (0..words.len()).filter(|at| !is_written(*at));
        let is_separator = |c: char| ";&|<>(){}[]\\\"'`=$,:".contains(c) || c.is_whitespace();
        let parts = read.flat_map(|at| words[at].split(is_separator));
        for part in parts.filter(|part| !part.is_empty()) {
            // Behind a substitution, as in `$(git rev-parse --show-toplevel)/x`, the rest of a path is left.
            let below = part.trim_start_matches('/');
            let absolute = (below != part).then(|| PathBuf::from(part));
            for place in absolute.into_iter().chain([cwd.join(below)]) {
                // Texts repeat their words.
                if self.looked_at.insert((place.clone(), is_interpreter))
                    && (is_executable(&place) || is_interpreter && has_extension(&place))
                {
                    self.paths.push(place);
                }
            }
        }
    }

    fn shell(&mut self, text: &str, cwd: &Path) {
        for words in commands_of(text) {
            self.argv(&words, cwd);
        }
    }

    fn argv(&mut self, words: &[String], cwd: &Path) {
        // The text of a tool is given to a shell.
        if let [shell, option, text] = words
            && option == "-c"
            && shell
                .rsplit('/')
                .next()
                .is_some_and(|name| INTERPRETERS.contains(&name))
        {
            return self.shell(text, cwd);
        }
        self.named_programs(words, cwd);
        for word in executed(words) {
            let path = match (word.strip_prefix("~/"), self.home) {
                (Some(below), Some(home)) => home.join(below),
                _ => cwd.join(word.strip_prefix("$PWD/").unwrap_or(word)),
            };
            self.paths.push(path);
        }
    }
}

/// The words of one command that are files which it executes: its program, where that is a path, and what an
/// interpreter is given first.
fn executed(words: &[String]) -> Vec<&str> {
    let is_assigned = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let mut words = words.iter().map(String::as_str);
    let name_of = |word: &'_ str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut paths = Vec::new();
    let mut is_wrapped = false;
    let program = loop {
        let Some(word) = words.next() else {
            return paths;
        };
        if BEFORE_A_COMMAND.contains(&name_of(word).as_str()) {
            is_wrapped = true;
            paths.extend(word.contains('/').then_some(word));
            continue;
        }
        let is_option = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if !(is_assigned(word) || is_wrapped && is_option) {
            break word;
        }
    };
    let name = name_of(program);
    if WITH_PROGRAM_FILES.contains(&name.as_str()) {
        paths.extend(program_file(words.clone()));
    }
    let is_interpreter = is_interpreter(&name);
    let file = words.filter(|word| !word.starts_with('-'));
    let file = file.filter(|word| !matches!(*word, "run" | "-")).take(1);
    paths.extend(program.contains('/').then_some(program));
    paths.extend(file.filter(|_| is_interpreter));
    paths
}

/// Returns the file that an option `-f FILE`, `-fFILE`, `--file FILE`, `--file=FILE` or `--from-file FILE` names.
fn program_file<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    loop {
        let word = words.next()?;
        if matches!(word, "-f" | "--file" | "--from-file") {
            return words.next();
        }
        let joined = ["--file=", "--from-file=", "-f"].iter();
        let mut joined = joined.filter_map(|option| word.strip_prefix(option));
        if let Some(file) = joined.next() {
            return Some(file);
        }
    }
}

/// The commands of a shell text, as words without quotes; what only the shell could tell is left as it is written.
fn commands_of(text: &str) -> Vec<Vec<String>> {
    let mut reader = Words::default();
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None | Some('"'), '\\') => reader.push(chars.next().filter(|next| *next != '\n')),
            (None | Some('"'), '$') if chars.peek() == Some(&'(') => {
                reader.end_command();
                quote = None;
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                reader.push(None);
            }
            (None, '#') if reader.word.is_none() => {
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '`') | (Some('"'), '`') => {
                reader.end_command();
            }
            (None, c) if c.is_whitespace() => reader.end_word(),
            (_, c) => reader.push(Some(c)),
        }
    }
    reader.end_command();
    reader.commands
}

#[derive(Default)]
struct Words {
    commands: Vec<Vec<String>>,
    current: Vec<String>,
    word: Option<String>,
}

impl Words {
    fn push(&mut self, c: Option<char>) {
        self.word.get_or_insert_default().extend(c);
    }

    fn end_word(&mut self) {
        self.current.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.current.is_empty() {
            self.commands.push(std::mem::take(&mut self.current));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_wherever_a_text_names_them() {
        let place = xtest::tempdir();
        let root = place.path();
        for (name, text, mode) in [
            ("x.sh", "", 0o644),
            ("tool", "", 0o755),
            ("marked", "#!/bin/sh\n", 0o644),
            ("data.json", "{}", 0o644),
        ] {
            std::fs::write(root.join(name), text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(root.join(name), mode).unwrap();
        }
        for (text, expected) in [
            ("bash -euo pipefail x.sh", &["x.sh"][..]),
            ("python3 -W ignore new.py", &["new.py"]),
            ("timeout -k 5 -s KILL 10 ./tool", &["./tool"]),
            ("sh < marked; cat tool > tool", &["marked"]),
            (
                "echo x > tool; sed -i s/a/b/ x.sh; prettier --write new.js",
                &[],
            ),
            ("xargs ./tool", &["./tool"]),
            ("trap ./tool EXIT", &["./tool"]),
            ("$(git rev-parse --show-toplevel)/tool", &["tool"]),
            ("node --require=./new.js data.json", &["./new.js"]),
            ("jq . data.json > out.json", &[]),
        ] {
            let mut found = PathCollector::default();
            for words in commands_of(text) {
                found.named_programs(&words, root);
            }
            let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
            // Both readings of a word may name the same.
            found.paths.dedup();
            assert_eq!(found.paths, expected, "{text}");
        }
    }

    #[test]
    fn scripts_are_found_where_a_command_begins() {
        for (text, expected) in [
            ("./tell.sh", &["./tell.sh"][..]),
            (
                "bin/a; A=1 bin/b x | bin/c && exec bin/d",
                &["bin/a", "bin/b", "bin/c", "bin/d"],
            ),
            ("python3 -u tell.py out.md", &["tell.py"]),
            (
                "/usr/bin/env python3.12 'my tell.py'",
                &["/usr/bin/env", "my tell.py"],
            ),
            ("env -i python3 \"my tell.py\"", &["my tell.py"]),
            (
                "if ! timeout 10 sh check.sh; then . lib/x.sh; fi",
                &["check.sh", "lib/x.sh"],
            ),
            ("x=$(bin/inner a) # bin/comment", &["bin/inner"]),
            ("mail -s failed ada@example.com < report.md", &[]),
            ("cat notes.txt; grep -c x a/b", &[]),
            ("$PWD/bin/x", &["$PWD/bin/x"]),
            (
                "awk -f a.awk in; sed -nf b in; sed -fc in; jq --from-file d .; make --file=e all",
                &["a.awk", "c", "d", "e"],
            ),
        ] {
            let commands = commands_of(text);
            let found: Vec<&str> = commands.iter().flat_map(|words| executed(words)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
