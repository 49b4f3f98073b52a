//! Texts put together at random.

use super::{SHELLS, names};
use std::collections::BTreeMap;
use std::process::Command;
use workerctl::template::{Dialect, Scope, ShellText, Value, Values, environment};

/// Pieces of shell text, from which texts are put together at random.
const FRAGMENTS: &[&str] = &[
    "{x}",
    "{n}",
    "{list}",
    "{report}",
    "<output>",
    "{date}",
    "{{x}}",
    "\\{x}",
    "${x}",
    "f",
    "echo",
    " ",
    " ",
    " ",
    "\n",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "'",
    "\"",
    "`",
    "\\",
    "$",
    "$(",
    ")",
    "(",
    "${",
    "}",
    "{",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "<<<",
    "<(",
    ">",
    "<",
    ">>",
    ">&",
    "&>",
    "case ",
    " in ",
    "a) ",
    ";;",
    " esac",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "for i in ",
    "; do ",
    "; done",
    "while ",
    "f() ",
    "{ ",
    "; }",
    "V=",
    "V=(",
    "a[1]=",
    "${V:-",
    "${V#",
    "${V/",
    "$'",
    "$\"",
    "#",
    " # ",
    "-c ",
    "sh ",
    "awk ",
    "export ",
    "\u{e9}",
    "-eq",
    "==",
    "=~",
    "!",
    "@(",
    "*",
    "\t",
    "\r",
    "\\\n",
    "=",
    "/",
    "-",
    "--",
    ":",
    "\0",
];

/// Scripts with every construct in which a placeholder may come to stand.
const SCRIPT: &str = r#"set -eu
# a comment with 'a quote
export A=1 B="two words"; C='three' D=
while getopts ab: opt; do case $opt in a) f=1 ;; b|c) g="$OPTARG";; *) exit 2 ; esac; done
for i in a "b c" 'd'; do echo "$i" "${i:-none}" ${i#a} "${i%%b*}"; done
if [ -f "$A" ] && test "$B" = k; then cat <<E | sort >out.txt 2>&1
body $A "quoted" `date` $(printf '%s' "$B") $((A + 1))
E
elif ! grep -q x f; then :; else (cd /tmp && ls -la | wc -l); fi
cat <<-'E' >/dev/null
	literal $A {b}
	E
fun() { local x="$1"; shift; printf '%s\n' "$x" "$@"; }
fun --opt=value "a$(fun "b `echo c`" 'd')e" ; { echo a; echo b; } | while read -r l; do echo "$l"; done
n=$(( (A + 2) * 3 )); until [ "$n" -lt 1 ]; do n=$((n - 1)); done
case "$A" in (1) echo one;; [2-9]*) echo many ;; esac
find . -name '*.md' -exec wc -l {} \; | awk '{print $1}' | sed -e 's/a/b/'
"#;
const BASH_SCRIPT: &str = r#"a=(one "two" $x); a+=(three); b[1]=x
[[ $A == 1 && ! -f "x y" || $B =~ ^a(b|c)+$ ]] && echo $'tab\t' $"text" "${a[@]}" "${#a[@]}"
(( A > 1 )) || for ((i = 0; i < 3; i++)); do echo $i; done
cat <<<"here string" &>/dev/null; diff <(sort a) <(sort b) | cat >&2
function g { echo "${A/a/b}" "${A^^}" "${A:1:2}"; }
select x in a b; do break; done < /dev/null
"#;

/// A valid script with a placeholder put somewhere into it.
fn inserted(dialect: Dialect, numbers: &mut Numbers) -> String {
    let mut text = SCRIPT.to_owned();
    if dialect == Dialect::Bash {
        text.push_str(BASH_SCRIPT);
    }
    let at = numbers.below(text.len());
    let what = [
        "{x}", "{n}", "{list}", "{report}", " {x} ", "{x.json}", "\"{x}\"", " {list} ",
    ];
    text.insert_str(at, what[numbers.below(what.len())]);
    text
}

/// A small generator, so that every failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit as u64)).unwrap()
    }
}

/// Runs what is left of each of `texts` when nothing in it can define or repeat a command, with
/// values that leave a trace wherever they are read again.
fn nothing_happens(shell: &str, texts: &[String]) {
    let dir = xtest::tempdir();
    let trap = "$(touch CANARY)`touch CANARY`;touch CANARY\ntouch CANARY\n'\"a[$(touch CANARY)]";
    let mut values = Values::new();
    values
        .set(Scope::Input, "x", Value::text(trap))
        .set(Scope::Input, "n", Value::text("5"))
        .set(
            Scope::Input,
            "list",
            Value::List(vec![trap.into(), "a[$(touch CANARY)]".into()]),
        )
        .set(Scope::Output, "report", Value::text("out"))
        .set(Scope::Builtin, "date", Value::text("2026-11-20"));
    let variables = environment(&names(), &values, &[]).unwrap();
    let mut count = 0;
    for text in texts
        .iter()
        .filter(|t| !t.contains("()") && !t.contains("while"))
    {
        std::fs::write(dir.path().join(count.to_string()), text).unwrap();
        count += 1;
    }
    let all = format!(
        "i=0; while [ $i -lt {count} ]; do mkdir d$i; (cd d$i; timeout 1 {shell} ../$i) >/dev/null 2>&1 </dev/null; i=$((i+1)); done; find . -name '*CANARY*'"
    );
    let output = Command::new("/bin/sh")
        .arg("-c")
        .arg(all)
        .current_dir(dir.path())
        .envs(variables)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{shell}");
}

/// Whether `shell` accepts each of `texts`, asked of one process for all.
fn accepted_by(shell: &str, texts: &[String]) -> Vec<bool> {
    let dir = xtest::tempdir();
    for (i, text) in texts.iter().enumerate() {
        std::fs::write(dir.path().join(i.to_string()), text).unwrap();
    }
    let all = format!(
        "i=0; while [ $i -lt {} ]; do if {shell} -n $i 2>/dev/null; then echo y; else echo n; fi; i=$((i+1)); done",
        texts.len()
    );
    let output = Command::new("/bin/sh")
        .arg("-c")
        .arg(all)
        .current_dir(dir.path())
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|l| l == "y")
        .collect()
}

#[test]
fn no_text_breaks_the_reader_and_no_placeholder_breaks_a_text() {
    let names = names();
    let mut lengths = BTreeMap::new();
    lengths.insert((Scope::Input, "list".to_owned()), 2);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for (dialect, shell) in SHELLS {
        let (mut plain, mut rendered, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..limit() * 100 {
            let text = if numbers.below(8) == 0 {
                let length = 1 + numbers.below(14);
                (0..length)
                    .map(|_| FRAGMENTS[numbers.below(FRAGMENTS.len())])
                    .collect()
            } else {
                inserted(dialect, &mut numbers)
            };
            let Ok(compiled) = ShellText::compile(&text, &names, dialect) else {
                continue;
            };
            let uses = compiled.template.uses();
            if uses.is_empty() {
                continue;
            }
            if rendered.len() >= limit() {
                break;
            }
            let mut word = text.clone();
            for used in uses.iter().rev() {
                word.replace_range(used.offset.clone(), "1");
            }
            plain.push(word);
            rendered.push(compiled.template.render(&lengths));
            sources.push(text);
        }
        nothing_happens(shell, &rendered[..rendered.len().min(150)]);
        let before = accepted_by(shell, &plain);
        let after = accepted_by(shell, &rendered);
        assert_eq!((before.len(), after.len()), (plain.len(), plain.len()));
        let right = before.iter().filter(|b| **b).count();
        assert!(
            right * 3 > plain.len(),
            "{shell}: only {right} of {} texts are valid",
            plain.len()
        );
        for (i, source) in sources.iter().enumerate() {
            assert!(
                !before[i] || after[i],
                "{shell}: {source:?}\n became {:?}",
                rendered[i]
            );
        }
    }
}

#[test]
fn deep_and_long_texts_are_read_in_bounded_time() {
    let names = names();
    for (open, close) in [
        ("$(", ")"),
        ("(", ")"),
        ("{ ", "; }"),
        ("${V:-", "}"),
        ("\"$(", ")\""),
        ("$((", "))"),
        ("[[ (", ""),
        ("@(", ")"),
        ("if ", ""),
        ("case x in a) ", ""),
        ("`", "`"),
        ("\"", ""),
        ("f() ", ""),
        ("((", ""),
    ] {
        for n in [10, 40, 100, 20_000] {
            let text = format!("f {{x}}; {}f {{x}}{}", open.repeat(n), close.repeat(n));
            for (dialect, _) in SHELLS {
                let _ = ShellText::compile(&text, &names, dialect);
            }
        }
    }
    let costly = [
        ("f {x} 'a {x}' \"b {x}\"; ", 2_000),
        ("$((1)) ", 7_000),
        ("$((f) | (g)); ", 3_000),
        ("{", 50_000),
        ("{{", 25_000),
        ("a[;", 15_000),
        ("a|sh|", 10_000),
        ("find -exec ", 5_000),
        ("docker ", 7_000),
        ("env ", 12_000),
        ("${x} ", 10_000),
        ("{x} ", 15_000),
        ("<output>", 7_000),
        ("cat <<E|sh\n{x}\nE\n", 3_000),
        ("x=1;", 15_000),
        ("`a`", 15_000),
        ("\\", 50_000),
        ("case ", 12_000),
        ("a=(", 15_000),
    ];
    for (piece, n) in costly {
        for (dialect, _) in SHELLS {
            let text = format!("f {{x}} {}; )f {{x}}", piece.repeat(n));
            let _ = ShellText::compile(&text, &names, dialect);
        }
    }
    let long = "f {x} 'a {x}' \"b {x}\"; ".repeat(5_000);
    assert!(ShellText::compile(&long, &names, Dialect::Sh).is_ok());
    assert!(ShellText::compile(&"x".repeat(2 << 20), &names, Dialect::Sh).is_err());
}

/// How many random texts are tried; `WORKERCTL_TEST_TEXTS` asks for more.
fn limit() -> usize {
    std::env::var("WORKERCTL_TEST_TEXTS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300)
}
