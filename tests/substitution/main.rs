//! Substitution against the real shells: every value arrives byte for byte in every place that is
//! accepted, and nothing else happens.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is a test, also what several tests share"
)]

mod interpreters;
mod random;
mod remedies;
mod values;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};
use workerctl::template::{
    Dialect, Kind, Name, Names, Scope, ShellText, Value, Values, environment,
};

const SHELLS: [(Dialect, &str); 2] = [(Dialect::Sh, "/bin/sh"), (Dialect::Bash, "bash")];

/// Strings that become something else, or start something, wherever they are read again.
const TEXTS: &[&str] = &[
    "; touch CANARY",
    "&& touch CANARY",
    "|| touch CANARY",
    "| touch CANARY",
    "& touch CANARY",
    "\ntouch CANARY\n",
    "\r\ntouch CANARY",
    "$(touch CANARY)",
    "`touch CANARY`",
    "${IFS}",
    "$((1+1))",
    "$HOME",
    "${PATH:0:1}",
    "$'\\x41'",
    "~root",
    "*",
    "?????",
    "[a-z]*",
    "{a,b}",
    "> CANARY",
    "2>&1 > CANARY",
    "< /etc/passwd",
    "<(touch CANARY)",
    "<<E\ntouch CANARY\nE",
    "# comment",
    "a b",
    "a\tb",
    " leading",
    "trailing ",
    "",
    "'",
    "\"",
    "'; touch CANARY; '",
    "\"; touch CANARY; \"",
    "\\",
    "a\\",
    "\\'; touch CANARY #",
    "!!",
    "%s%n%d",
    "-rf",
    "--",
    "-o ProxyCommand=touch CANARY",
    "--output=CANARY",
    "@/etc/passwd",
    "-",
    "=x",
    "a=b; touch CANARY",
    "{output}",
    "{{output}}",
    "{{{output}}}",
    "{input.x}",
    "$0 $1 $@",
    "() { :;}; touch CANARY",
    "eval touch CANARY",
    "\u{202e}txt.exe",
    "e\u{301}",
    "\u{e9}",
    "\u{1f4a9}",
    "\u{a0}",
    "\u{2028}",
    "\u{ff0f}..",
    "-\u{200b}x",
    "a[$(touch CANARY)]",
    "{}",
    ";",
    "&",
    "-delete",
    "--checkpoint-action=exec=touch CANARY",
    "touch CANARY/e;s/a/b",
    "a\n",
    "\n\n",
    "(",
    "!",
    "\u{1}",
    "\u{7f}",
    "}",
    "]",
    ")",
    "E",
    "x\nE\ny",
    "a'b\"c`d$e\\f",
    "${WORKERCTL_INPUT_x}",
    "\"${WORKERCTL_INPUT_x}\"",
    "$WORKERCTL_INPUT_x",
    "{x}",
    "<output>",
    "]] ; touch CANARY",
    "))",
    "esac",
    "*) touch CANARY;;",
    "\\n",
    "\\c",
    "\\{x}",
    "1",
    "-5",
    "0 -o 1",
    "a\u{0301}\u{feff}",
];

/// The texts above, bytes that are no text, and very long ones.
fn hostile() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = TEXTS.iter().map(|t| t.as_bytes().to_vec()).collect();
    all.extend([
        vec![0x81],
        vec![0xff, b'$', 0xfe],
        vec![b'x'; 65_536],
        vec![b'x'; 131_000],
    ]);
    all
}

/// A text and what it prints for a value.
type Context = (&'static str, fn(&str) -> String);

/// What every shell must do right. `show` prints the number of its arguments and each of them.
const CONTEXTS: &[Context] = &[
    ("show {x}", |v| format!("1:{v}")),
    ("show pre{x}post", |v| format!("1:pre{v}post")),
    ("show {x}{x} --o={x}", |v| format!("2:{v}{v}:--o={v}")),
    ("show ~{x} *{x}", |v| format!("2:~{v}:*{v}")),
    ("for i in {x} b; do show \"$i\"; break; done", |v| {
        format!("1:{v}")
    }),
    ("set -- {x} {x}; show \"$@\"", |v| format!("2:{v}:{v}")),
    ("( show {x} )", |v| format!("1:{v}")),
    ("{ show {x}; }", |v| format!("1:{v}")),
    ("f() { show \"$1\"; }; f {x}", |v| format!("1:{v}")),
    ("f() { show \"$1\" {x}; }; f a", |v| format!("2:a:{v}")),
    ("show \"a {x} b\" \"{x}\"", |v| format!("2:a {v} b:{v}")),
    ("show 'a {x} b' '{x}'", |v| format!("2:a {v} b:{v}")),
    ("show a\"b\"{x}'c'", |v| format!("1:ab{v}c")),
    ("show $(printf '%s' {x} > /dev/null; echo ok)", |_| {
        "1:ok".to_owned()
    }),
    ("show \"$(printf '%s.' {x})\"", |v| format!("1:{v}.")),
    ("show \"$(printf '%s.' \"{x}\")\"", |v| format!("1:{v}.")),
    ("show \"$(printf '%s.' '{x}')\"", |v| format!("1:{v}.")),
    (
        "show \"a$(printf '%s.' \"$(printf '%s' {x}; printf .)\")\"",
        |v| format!("1:a{v}.."),
    ),
    ("show \"`printf '%s.' {x}`\"", |v| format!("1:{v}.")),
    ("show \"`printf '%s.' \"{x}\"`\" `:`", |v| format!("1:{v}.")),
    ("take <<E\n{x}\nE", |v| format!("in:{v}\n")),
    ("take <<E\n\"{x}\" '{x}' \\{x}\nE", |v| {
        format!("in:\"{v}\" '{v}' {{x}}\n")
    }),
    ("take <<-E\n\t{x}.\n\tE", |v| format!("in:{v}.\n")),
    ("take <<E\n$(printf '%s.' {x} \"{x}\")\nE", |v| {
        format!("in:{v}.{v}.\n")
    }),
    ("show \"$(cat <<E\n{x}.\nE\n)\"", |v| format!("1:{v}.")),
    ("A={x}; show \"$A\"", |v| format!("1:{v}")),
    ("A=pre{x}; B=\"{x}\"; show \"$A\" \"$B\"", |v| {
        format!("2:pre{v}:{v}")
    }),
    ("export A={x}; show \"$A\"", |v| format!("1:{v}")),
    ("f() { local A={x}; show \"$A\"; }; f", |v| format!("1:{v}")),
    (
        "case {x} in \"$WORKERCTL_INPUT_x\") show yes;; *) show no;; esac",
        |_| "1:yes".to_owned(),
    ),
    (
        "case \"$WORKERCTL_INPUT_x\" in {x}) show yes;; *) show no;; esac",
        |_| "1:yes".to_owned(),
    ),
    (
        "case a\"$WORKERCTL_INPUT_x\" in b|a{x}) show yes;; *) show no\nesac",
        |_| "1:yes".to_owned(),
    ),
    ("if [ {x} = {x} ]; then show yes; fi", |_| {
        "1:yes".to_owned()
    }),
    ("if [ ! {x} = k{x} ]; then show yes; fi", |_| {
        "1:yes".to_owned()
    }),
    ("if [ -n {x} ]; then show yes; else show no; fi", |v| {
        format!("1:{}", if v.is_empty() { "no" } else { "yes" })
    }),
    (
        "show ${V:-{x}} \"${V:-{x}}\" ${V-a {x}} \"${V-\"{x}\"}\"",
        |v| format!("5:{v}:{v}:a:{v}:{v}"),
    ),
    ("take <<E\n${V:-{x}}\nE", |v| format!("in:{v}\n")),
    ("show \\{x} \"\\{x}\" '\\{x}' \\\\{x}", |v| {
        format!("4:{{x}}:{{x}}:{{x}}:\\{v}")
    }),
    ("sh -c 'printf \"1:%s\\\\0\" \"$1\"' sh {y}", |_| {
        "1:small".to_owned()
    }),
    ("show {y}; # {x} 'it is\nshow {x}", |v| {
        format!("1:small\x001:{v}")
    }),
    ("cd /; show {x}; cd \"$OLDPWD\"", |v| format!("1:{v}")),
    ("show {list} end", |v| format!("4:{v}::{v}:end")),
    ("for i in {list}; do show \"$i\"; done", |v| {
        format!("1:{v}\x001:\x001:{v}")
    }),
    ("set -- {list}; show \"$#\"", |_| "1:3".to_owned()),
    ("show {none} end", |_| "1:end".to_owned()),
    ("show \"{x.lines}\" {n} $((7-{n}*2))", |v| {
        format!("3:{v}:-5:17")
    }),
    ("show {missing} \"{missing}\"", |_| "2::".to_owned()),
];

/// Contexts whose cost grows with the square of the value, left out for large ones.
const COSTLY: &[Context] = &[
    ("A=a{x}; show ${A%{x}} \"${A%{x}}\"", |_| "2:a:a".to_owned()),
    ("A={x}b; show \"${A#\"{x}\"}\" ${A##{x}}", |_| {
        "2:b:b".to_owned()
    }),
];

const BASH_CONTEXTS: &[Context] = &[
    ("show {p,{x}}", |v| format!("2:p:{v}")),
    ("show $'a\\t{x}\\'b' $\"a{x}\"", |v| {
        format!("2:a\t{v}'b:a{v}")
    }),
    ("a=({x} b); a+=({list}); show \"${a[@]}\"", |v| {
        format!("5:{v}:b:{v}::{v}")
    }),
    ("take <<<{x}", |v| format!("in:{v}\n")),
    ("take <<<\"a {x}\"", |v| format!("in:a {v}\n")),
    ("take < <(printf '%s.' {x})", |v| format!("in:{v}.")),
    ("[[ {x} == {x} ]] && show yes", |_| "1:yes".to_owned()),
    ("[[ {x} == \"$WORKERCTL_INPUT_x\" ]] && show yes", |_| {
        "1:yes".to_owned()
    }),
    ("[[ a$WORKERCTL_INPUT_x = a{x} ]] && show yes", |_| {
        "1:yes".to_owned()
    }),
    ("[[ {n} -lt 3 ]] && (( {n} < 3 )) && show yes", |_| {
        "1:yes".to_owned()
    }),
    ("show \"$((printf '%s.' {x} | cat) | cat)\"", |v| {
        format!("1:{v}.")
    }),
];

const PREAMBLE: &str = "set -u; V=; show() { printf '%d' \"$#\"; for a in \"$@\"; do printf ':%s' \"$a\"; done; printf '\\0'; }\n\
                        take() { printf 'in:'; cat; printf '\\0'; }\nunset V\nset +u\n";

fn names() -> Names {
    let input = |name, kind| Name::new(Scope::Input, name, kind);
    let declared = vec![
        input("x", Kind::Text),
        input("y", Kind::Text),
        input("n", Kind::Integer),
        input("list", Kind::List),
        input("none", Kind::List),
        input("missing", Kind::Text),
        input("source", Kind::Path),
        Name::new(Scope::Output, "report", Kind::OutputFile),
    ];
    Names::new(declared, "worker", "skill").unwrap()
}

fn rendered(text: &str, dialect: Dialect, values: &Values) -> (String, ShellText) {
    let compiled = ShellText::compile(text, &names(), dialect)
        .unwrap_or_else(|p| panic!("{dialect:?} {text}: {p:#?}"));
    (
        compiled.template.render(&values.lengths()),
        compiled.template,
    )
}

/// Runs `script` in `dir` and returns its standard output; anything on standard error fails.
fn run(shell: &str, script: &str, dir: &Path, variables: Vec<(String, OsString)>) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all(script.as_bytes()).unwrap();
    let output = Command::new(shell)
        .arg(file.path())
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .envs(variables)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let harmless = said.lines().all(|l| l.contains("ignored null byte"));
    assert!(harmless, "{shell}: {said}");
    output.stdout
}

#[test]
fn every_value_arrives_exactly_in_every_accepted_place() {
    std::thread::scope(|scope| {
        for (dialect, shell) in SHELLS {
            scope.spawn(move || {
                for value in hostile() {
                    exact(dialect, shell, &value);
                }
            });
        }
    });
}

/// The contexts for a shell and a value; a `large` one is kept from lists and from patterns.
fn contexts(dialect: Dialect, large: bool) -> Vec<&'static Context> {
    let listed = |c: &&Context| !large || !(c.0.contains("list") || c.0.contains("lines"));
    let mut contexts: Vec<&Context> = CONTEXTS.iter().filter(listed).collect();
    if !large {
        contexts.extend(COSTLY);
    }
    if dialect == Dialect::Bash {
        contexts.extend(BASH_CONTEXTS.iter().filter(listed));
    }
    contexts
}

fn left_in(dir: &Path) -> Vec<OsString> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect()
}

fn exact(dialect: Dialect, shell: &str, value: &[u8]) {
    // Bytes that are no text never come from an input; the shells are held to them all the same.
    let stand_in = "\u{10ffff}stand-in";
    let text = std::str::from_utf8(value).unwrap_or(stand_in);
    let large = value.len() > 1000;
    let small = if value.len() > 65_536 { stand_in } else { text };
    let mut values = Values::new();
    let list = if large {
        vec!["l".into(), String::new(), "l".into()]
    } else {
        vec![small.into(), String::new(), small.into()]
    };
    values
        .set(Scope::Input, "x", Value::text(small))
        .set(Scope::Input, "y", Value::text("small"))
        .set(Scope::Input, "n", Value::text("-5"))
        .set(Scope::Input, "list", Value::List(list));
    let (mut script, mut uses) = (PREAMBLE.to_owned(), Vec::new());
    let mut kept = Vec::new();
    for (text, want) in contexts(dialect, large) {
        let (body, template) = rendered(text, dialect, &values);
        script.extend([body.as_str(), "\n"]);
        uses.extend(template.uses().to_vec());
        kept.push((text, want));
    }
    let variables = environment(&names(), &values, &uses).unwrap();
    let real = |text: &str| -> Vec<u8> {
        let mut bytes = Vec::new();
        for (i, piece) in text.split(stand_in).enumerate() {
            if i > 0 {
                bytes.extend_from_slice(value);
            }
            bytes.extend_from_slice(piece.as_bytes());
        }
        bytes
    };
    let variables = variables
        .into_iter()
        .map(|(n, v)| (n, OsString::from_vec(real(&v))))
        .collect();
    let dir = xtest::tempdir();
    let printed = run(shell, &script, dir.path(), variables);
    let mut rest = printed.as_slice();
    for (text, want) in kept {
        let want = real(&want(small));
        let want = [want.as_slice(), b"\0"].concat();
        let shown = &rest[..rest.len().min(want.len())];
        assert!(
            shown == want,
            "{shell} {text}\n want {:?}\n got  {:?}",
            String::from_utf8_lossy(&want[..want.len().min(300)]),
            String::from_utf8_lossy(&rest[..rest.len().min(300)])
        );
        rest = &rest[want.len()..];
    }
    assert!(rest.is_empty());
    let left = left_in(dir.path());
    assert!(
        left.is_empty(),
        "{shell}: {:?} left {left:?}",
        String::from_utf8_lossy(value)
    );
}

#[test]
fn outputs_and_paths_are_one_file_of_that_name() {
    for (dialect, shell) in SHELLS {
        for value in hostile() {
            let Ok(name) = String::from_utf8(value) else {
                continue;
            };
            if name.is_empty() || name.contains('/') || name.len() > 200 {
                continue;
            }
            let mut values = Values::new();
            values
                .set(Scope::Output, "report", Value::text(&*name))
                .set(Scope::Input, "source", Value::text(&*name));
            let text = "printf a > {report}; printf b >> {output}; printf c >> pre-{source} < {source}; \
                        cat {source} >| \"{output}2\"; test -s <output> && rm -- {report} pre-{source}";
            let text = text.replace("pre-{source}", "{source}3");
            let (script, template) = rendered(&text, dialect, &values);
            let variables = environment(&names(), &values, template.uses()).unwrap();
            let dir = xtest::tempdir();
            let variables = variables.into_iter().map(|(n, v)| (n, v.into())).collect();
            run(shell, &script, dir.path(), variables);
            let left = left_in(dir.path());
            assert_eq!(
                left,
                [OsString::from(format!("{name}2"))],
                "{shell} {name:?}"
            );
        }
    }
}
