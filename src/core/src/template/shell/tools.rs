//! Commands that read an operand again: as a program, as a format, as the name of a variable.

/// Variables that decide which program runs, or how.
pub(super) fn steers_programs(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "PS4",
        "PROMPT_COMMAND",
        "NODE_OPTIONS",
        "RUBYOPT",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "SHELL",
        "HOME",
        "CDPATH",
        "SHELLOPTS",
        "BASHOPTS",
        "RUBYLIB",
    ];
    const PREFIXES: [&str; 5] = ["LD_", "DYLD_", "GIT_", "PYTHON", "PERL5"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Which operands, as opposed to options, are a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// None.
    Data,
    /// The first, unless an option gave the program.
    First,
    /// The second.
    Second,
    /// All.
    All,
    /// All but the first, joined.
    AfterFirst,
    /// None; the first is a script, and what follows belongs to it.
    Script,
}

/// When a program is read from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Never.
    Data,
    /// When neither an option nor an operand gives it.
    WithoutProgram,
    /// Unless an option gives it; operands are data.
    WithoutOption,
}

/// How a command takes its words.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) names: &'static [&'static str],
    /// Options whose operand is a program.
    pub(super) code: &'static [&'static str],
    /// Options whose operand is a file with the program.
    pub(super) file: &'static [&'static str],
    /// Options with an operand that is data.
    pub(super) takes: &'static [&'static str],
    pub(super) operands: Operands,
    pub(super) input: Input,
    /// Options say that the program is the first operand, and what follows it are its arguments.
    pub(super) code_is_operand: bool,
    /// What follows the program are its arguments, not options.
    pub(super) ends_options: bool,
    /// What to do instead; `%N` is the placeholder, `%V` the variable.
    pub(super) remedy: &'static str,
}

const NONE: Tool = Tool {
    names: &[],
    code: &[],
    file: &[],
    takes: &[],
    operands: Operands::Data,
    input: Input::Data,
    code_is_operand: false,
    ends_options: false,
    remedy: "pass the value as an argument of its own, or read `$%V` in the program",
};

const ENVIRONMENT: &str =
    "read the environment variable `%V` in the program, or pass `%N` as an argument of its own";

/// Every command that is known to read an operand again.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        names: &[
            "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "fish",
        ],
        code: &["-c", "--command", "--init-command"],
        takes: &["-o", "-O", "+o", "+O", "--rcfile", "--init-file"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        code_is_operand: true,
        ends_options: true,
        remedy: "pass the value as an argument: `sh -c '… \"$1\" …' sh %N`",
        ..NONE
    },
    Tool {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        code: &["-c"],
        file: &["-m"],
        takes: &["-W", "-X", "--check-hash-based-pycs"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        ends_options: true,
        remedy: "pass the value as an argument: `python3 -c '… sys.argv[1] …' %N`",
        ..NONE
    },
    Tool {
        names: &["perl"],
        code: &["-e", "-E"],
        takes: &["-I", "-M", "-m"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        remedy: "read `$ENV{%V}` in the program",
        ..NONE
    },
    Tool {
        names: &["ruby", "irb"],
        code: &["-e"],
        takes: &["-r", "-I"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        remedy: "read `ENV[\"%V\"]` in the program",
        ..NONE
    },
    Tool {
        names: &["node", "nodejs", "deno", "bun"],
        code: &["-e", "-p", "-pe", "--eval", "--print"],
        takes: &["-r", "--require", "--import"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        remedy: "read `process.env.%V` in the program",
        ..NONE
    },
    Tool {
        names: &["php"],
        code: &["-r", "-B", "-R", "-E", "--run"],
        takes: &["-d", "-c"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        remedy: "read `getenv(\"%V\")` in the program",
        ..NONE
    },
    Tool {
        names: &[
            "lua",
            "luajit",
            "Rscript",
            "R",
            "guile",
            "osascript",
            "julia",
            "elixir",
            "swipl",
            "emacs",
        ],
        code: &["-e", "-E", "-c", "--eval", "--eval-string", "-g"],
        takes: &["-l", "-L"],
        operands: Operands::Script,
        input: Input::WithoutProgram,
        remedy: ENVIRONMENT,
        ..NONE
    },
    Tool {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        code: &["-v", "--assign", "-e", "--source"],
        file: &["-f", "--file"],
        takes: &["-F", "--field-separator", "-i", "-l"],
        operands: Operands::First,
        remedy: "read `ENVIRON[\"%V\"]` in the program; before it replaces something, `gsub(/[\\\\&]/, \"\\\\\\\\&\", v)` on a copy `v`",
        ..NONE
    },
    Tool {
        names: &["sed", "gsed", "ssed"],
        code: &["-e", "--expression"],
        file: &["-f", "--file"],
        takes: &["-l", "--line-length"],
        operands: Operands::First,
        remedy: "use `perl -pe 's/…/$ENV{%V}/'`, with `-i` for `sed -i`: there the value is no part of the script",
        ..NONE
    },
    Tool {
        names: &["jq", "gojq", "jaq", "yq"],
        code: &["--expression"],
        file: &["-f", "--from-file"],
        takes: &[
            "--indent",
            "-L",
            "-o",
            "-p",
            "--output-format",
            "--input-format",
        ],
        operands: Operands::First,
        remedy: "pass the value as data: `jq --arg v %N '… $v …'`, or read `env.%V`; write `\\%N` where the braces are those of the program",
        ..NONE
    },
    Tool {
        names: &[
            "psql",
            "mysql",
            "mariadb",
            "clickhouse-client",
            "duckdb",
            "mongosh",
        ],
        code: &[
            "-c",
            "--command",
            "-e",
            "--execute",
            "-q",
            "--query",
            "--eval",
        ],
        file: &["-f", "--file"],
        takes: &[
            "-h", "-p", "-U", "-u", "-d", "-D", "-v", "--set", "--host", "--port",
        ],
        input: Input::WithoutOption,
        remedy: "bind the value as a parameter: `psql -v v=%N` and `:'v'`",
        ..NONE
    },
    Tool {
        names: &["sqlite3"],
        code: &["-cmd"],
        file: &["-init"],
        operands: Operands::Second,
        input: Input::WithoutProgram,
        remedy: "bind the value as a parameter, or read the environment in a small program",
        ..NONE
    },
    Tool {
        names: &[
            "eval",
            "alias",
            "let",
            "watch",
            "parallel",
            "rush",
            "hyperfine",
            "tmux",
            "screen",
            "socat",
        ],
        operands: Operands::All,
        remedy: "run the command directly: these words are parsed a second time",
        ..NONE
    },
    Tool {
        names: &["trap"],
        operands: Operands::All,
        remedy: "use single quotes and the variable: `trap 'rm -- \"$%V\"' EXIT`",
        ..NONE
    },
    Tool {
        names: &["ssh", "autossh", "slogin", "mosh", "rsh", "dbclient"],
        code: &["-o"],
        takes: &[
            "-b", "-c", "-D", "-E", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-p", "-Q",
            "-R", "-S", "-W", "-w", "-B",
        ],
        operands: Operands::AfterFirst,
        input: Input::WithoutOption,
        remedy: "send the value on standard input: the remote shell reads every word of the command again",
        ..NONE
    },
    Tool {
        names: &["source", "."],
        operands: Operands::First,
        remedy: "name the file to be read, so that no value chooses what is run",
        ..NONE
    },
    Tool {
        names: &["printf"],
        operands: Operands::First,
        takes: &["-v"],
        ends_options: true,
        remedy: "write `printf '%s' %N`",
        ..NONE
    },
    Tool {
        names: &[
            "su",
            "runuser",
            "script",
            "flock",
            "npx",
            "npm",
            "nix-shell",
            "nix",
            "xonsh",
            "vim",
            "nvim",
            "vi",
            "ex",
            "gdb",
            "expect",
        ],
        code: &[
            "-c",
            "--command",
            "--call",
            "--run",
            "-ex",
            "--eval-command",
            "-e",
        ],
        takes: &["-u", "-p", "--package", "-w", "-E", "-s", "-g"],
        remedy: ENVIRONMENT,
        ..NONE
    },
    Tool {
        names: &["rsync", "scp", "sftp"],
        code: &["-e", "--rsh", "--rsync-path", "-o", "-S"],
        takes: &[
            "-i",
            "-P",
            "-l",
            "-F",
            "-J",
            "--exclude",
            "--include",
            "--port",
        ],
        remedy: "write the remote shell and its options without a value",
        ..NONE
    },
    Tool {
        names: &["tar", "gtar", "bsdtar"],
        code: &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
            "--transform",
            "--xform",
            "-s",
        ],
        takes: &["-f", "-C", "--file", "--directory", "--exclude", "-T", "-X"],
        remedy: "write this option without a value",
        ..NONE
    },
    Tool {
        names: &["git"],
        code: &[
            "-c",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--extcmd",
            "--open-files-in-pager",
            "--tree-filter",
            "--index-filter",
            "--msg-filter",
            "--env-filter",
            "--commit-filter",
        ],
        takes: &["-C"],
        operands: Operands::Script,
        remedy: "set configuration in the repository, not from a value",
        ..NONE
    },
    Tool {
        names: &["make", "gmake", "ninja", "just"],
        code: &["--eval", "-E"],
        takes: &["-C", "-f", "-j", "-o", "-W", "-I"],
        remedy: "read the environment variable `%V` in the recipe as `$$%V`",
        ..NONE
    },
    Tool {
        names: &["crontab", "dc", "gnuplot", "m4", "tclsh", "ghci"],
        code: &["-e"],
        input: Input::WithoutProgram,
        takes: &["-f", "-u"],
        remedy: ENVIRONMENT,
        ..NONE
    },
    Tool {
        names: &["at", "batch", "ed", "bc", "ftp", "lftp"],
        code: &["-e", "-c"],
        file: &["-f"],
        takes: &["-q", "-p"],
        input: Input::WithoutOption,
        remedy: ENVIRONMENT,
        ..NONE
    },
    Tool {
        names: &["sort", "gsort", "man", "zip", "tcpdump"],
        code: &[
            "--compress-program",
            "-P",
            "--pager",
            "-TT",
            "--unzip-command",
            "-z",
        ],
        takes: &["-t", "-k", "-o", "-T", "-S", "-i", "-w", "-r", "-c"],
        remedy: "write this option without a value",
        ..NONE
    },
    Tool {
        names: &["split", "gsplit"],
        code: &["--filter"],
        takes: &["-a", "-b", "-C", "-l", "-n", "-t"],
        remedy: "write this option without a value, and read `$%V` in its command",
        ..NONE
    },
    Tool {
        names: &["compgen", "complete"],
        code: &["-C", "-W"],
        takes: &["-A", "-F", "-G", "-P", "-S", "-X"],
        remedy: "write this option without a value: bash reads its text as a program",
        ..NONE
    },
    Tool {
        names: &["capsh"],
        operands: Operands::All,
        remedy: ENVIRONMENT,
        ..NONE
    },
];

/// A command whose name only the run knows, such as `$S -c …`: it could be a shell.
pub(super) const UNKNOWN: Tool = Tool {
    code: &["-c", "-e"],
    code_is_operand: true,
    ends_options: true,
    remedy: "write the name of the program, so that it is known what it does with `%N`",
    ..NONE
};

/// Subcommands of git that run a command: all words behind these are read as one.
pub(super) const GIT_RUNS: &[[&str; 2]] = &[["submodule", "foreach"], ["bisect", "run"]];

/// The entry for a command, by the last part of its path; versions such as `python3.12` count.
pub(super) fn tool(command: &str) -> Option<&'static Tool> {
    let name = base(command);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let fits = |t: &&Tool| t.names.contains(&name) || (!bare.is_empty() && t.names.contains(&bare));
    TOOLS.iter().find(fits)
}

/// The last part of the path of a command.
pub(super) fn base(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or(command)
}
