//! What commands make of their words, and what is left alone.

use super::*;

/// A value in text that some interpreter reads as a program.
const CODE: &[&str] = &[
    "sh -c 'f {x}'",
    "sh -c \"f {x}\"",
    "bash -lc 'f {x}'",
    "bash -ec 'f \"{x}\"'",
    "eval \"f {x}\"",
    "eval f {x}",
    "sudo -u bob sh -c 'f {x}'",
    "$SHELL -c 'f {x}'",
    "env A=1 sh -c 'f {x}'",
    "timeout 5 bash -c 'f {x}'",
    "nice -n 5 sh -c 'f {x}'",
    "xargs sh -c 'f {x}'",
    "docker exec -it c sh -c 'f {x}'",
    "kubectl exec p -- sh -c 'f {x}'",
    "find . -exec sh -c 'f {x}' \\;",
    "python3 -c 'f(\"{x}\")'",
    "python3.12 -Ic 'f({x})'",
    "perl -ne 'f {x}'",
    "perl -e'f {x}'",
    "ruby -e 'f {x}'",
    "node -e 'f({x})'",
    "node --eval='f({x})'",
    "php -r 'f({x});'",
    "awk '{print \"{x}\"}' a",
    "awk -F: '/{x}/' a",
    "awk -v v={x} '1' a",
    "awk '1' v={x}",
    "sed 's/a/{x}/' f",
    "sed -n -e 's/a/{x}/p' f",
    "jq '.[\"{x}\"]' f",
    "jq -r '.{x}' f",
    "yq '.{x}' f",
    "ssh host cmd {x}",
    "ssh -p 22 host 'cmd {x}'",
    "ssh -o ProxyCommand={x} host",
    "trap 'f {x}' EXIT",
    "alias a={x}",
    "watch 'f {x}'",
    "parallel f {x}",
    "printf '{x}'",
    "printf 'a {x}\\n'",
    "printf -- '{x}'",
    ". {x}",
    "source {x}",
    "su -c 'f {x}'",
    "su bob -c 'f {x}'",
    "npx -c 'f {x}'",
    "rsync -e 'ssh {x}' a b",
    "tar --to-command={x} -xf a",
    "tar -cf a --checkpoint-action=exec={x} b",
    "git -c alias.z={x} z",
    "git --exec-path={x} log",
    "git rebase --exec 'f {x}' main",
    "make X={x}",
    "psql -c 'select {x}'",
    "sqlite3 db 'select {x}'",
    "echo f {x} | sh",
    "printf '%s' {x} | bash",
    "echo {x} | xargs rm",
    "echo {x} | sudo sh",
    "echo '0 0 * * * {x}' | crontab -",
    "command eval {x}",
    "echo {x} | cat | sh",
    "exec sh -c 'f {x}'",
    "f && sh -c 'g {x}'",
    "x=$(sh -c 'g {x}')",
    "flock l sh -c 'f {x}'",
    "env -S 'f {x}'",
    "flock l -c 'f {x}'",
    "bash -c -e 'f {x}'",
    "prlimit --nofile=9 sh -c 'f {x}'",
    "capsh -- -c 'f {x}'",
    "ssh-agent sh -c 'f {x}'",
    "faketime '1 day ago' sh -c 'f {x}'",
    "some-wrapper -v sh -c 'f {x}'",
    "some-wrapper --opt /usr/bin/python3 -c 'f({x})'",
    "S=sh; $S -c 'f {x}'",
    "S=sh; \"$S\" -ec 'f {x}'",
    "${S:-sh} -c 'f {x}'",
    "sqlite3 db <<EOF\nselect {x}\nEOF",
    "sqlite3 db <<EOF\nselect $(echo {x})\nEOF",
    "ed f <<EOF\n{x}\nEOF",
    "bc f <<EOF\n{x}\nEOF",
    "echo {x} | at now",
    "echo {x} | batch",
    "sh -c \"$(echo f {x})\"",
    "eval \"$(echo f {x})\"",
    "compgen -W {x}",
    "mapfile -C {x} -c 1 a",
    "readarray -C 'f {x}' -c 1 a",
    "complete -C {x} f",
    "git rebase -x 'f {x}' main",
    "git rebase -x{x} main",
    "git submodule foreach 'f {x}'",
    "git submodule foreach f {x}",
    "git bisect run f {x}",
    "git bisect run sh -c 'f {x}'",
    "git grep -O{x} a",
    "git grep --open-files-in-pager={x} a",
    "git difftool -x 'f {x}'",
    "git filter-branch --tree-filter 'f {x}'",
    "git clone -c core.sshCommand={x} u",
    "split --filter='f {x}' a",
    "split -b 10 --filter 'f {x}' a",
    "gnuplot -e 'plot {x}'",
    "declare -i n={x}",
    "declare -i n; n={x}",
    "n={x}; typeset -i n",
    "declare -i n; readonly n={x}",
    "typeset -ri n={x}",
    "tmux new-session 'f {x}'",
    "sort --compress-program={x} a",
    "man -P {x} ls",
    "tcpdump -z {x} -r a",
    "socat - EXEC:{x}",
    "dc -e {x}",
];

/// The same, which only bash can read.
const BASH_CODE: &[&str] = &[
    "source <(echo {x})",
    ". <(printf '%s' {x})",
    "sh <(echo {x})",
    "bash < <(echo {x})",
    "bash <<< \"$(echo {x})\"",
    "awk -f <(echo {x}) f",
    "psql -f <(echo {x})",
];

/// Values beside programs, where they are data.
const HARMLESS: &[&str] = &[
    "sh -c 'f \"$1\"' sh {x}",
    "bash -c 'f \"$@\"' _ {x} {list}",
    "python3 -c 'import sys; f(sys.argv[1])' {x}",
    "python3 s.py {x}",
    "sh s.sh {x}",
    "bash -x s.sh {x}",
    "perl s.pl -- {x}",
    "awk '{print $1}' {source}",
    "awk -F: '{print $1}' {x}",
    "jq --arg v {x} '.a = $v' f",
    "jq '{a: .b}' {source}",
    "printf '%s\\n' {x}",
    "printf '%s' \"a {x}\"",
    "sed -n 1p {source}",
    "grep -e {x} f",
    "grep -- {x} f",
    "grep {x} sh",
    "echo sh -c {x}",
    "git commit -m {x}",
    "git commit -m \"{x}\"",
    "git log --since={x}",
    "git log -- {x}",
    "find . -name {x}",
    "find {source} -type f",
    "xargs -0 f {x}",
    "echo {x} | xargs -0 rm",
    "cat {source} | sh",
    "sort {source} | xargs wc",
    "echo {x} | python3 s.py",
    "printf '%s' {x} | ssh h 'cat > f'",
    "docker run img f {x}",
    "curl -d k={x} u",
    "curl --data-raw {x} u",
    "curl --data-urlencode q={x} u",
    "curl --form-string a={x} u",
    "psql -v v={x} -f q.sql",
    "tar -cf a.tar -- {x}",
    "make -C {source} all",
    "timeout 5 f {x}",
    "sudo f {x}",
    "env A={x} f",
    "command -v {x}",
    "test -s {report}",
    "[ -f {source} ]",
    "trap 'rm -f \"$t\"' EXIT; f {x}",
    "read -r -p {x} v",
    "git -C {workspace} log",
    "ssh host uptime < {source}",
    "tee {report}",
    "f() { g {x}; }; f",
    "while read -r l; do f \"$l\" {x}; done < {source}",
    "if f {x}; then g; elif h {x}; then i; else j {x}; fi",
    "until f {x}; do sleep 1; done",
    "f {x} | g {x} |& h",
    "prlimit --nofile=9 f {x}",
    "some-wrapper sh -c 'f \"$1\"' sh {x}",
    "$EDITOR {x}",
    "\"$TOOL\" --name={x}",
    "sqlite3 db 'select 1' < {source}",
    "git bisect good {x}",
    "git grep -n -- {x}",
    "git submodule add -- {x}",
    "split -b 10 -- {x}",
    "declare -r n={x}",
    "f \"$(echo {x})\"",
    "cat <<EOF\n$(echo {x})\nEOF",
    "python3 s.py \"$(echo {x})\"",
];

#[test]
fn programs_of_other_interpreters() {
    for text in CODE {
        refused_by_both(text, "placeholder_in_code");
    }
    for text in BASH_CODE {
        refused(Dialect::Bash, text, "placeholder_in_code");
    }
    refused_by_both("declare -n r={x}", "placeholder_as_variable_name");
    refused_by_both("docker run --entrypoint {x} img", "placeholder_as_command");
    refused_by_both("podman run --entrypoint={x} img", "placeholder_as_command");
    refused_by_both("mapfile -t {x}", "placeholder_as_variable_name");
    for kind in [
        "n", "ratio", "yes", "mode", "branch", "date", "run", "attempt", "skill", "worker",
    ] {
        let text = format!(
            "ssh h 'rotate {{{kind}}}'; sed 's/a/{{{kind}}}/'; git log --since='{{{kind}}} weeks ago'"
        );
        assert_eq!(
            codes(Dialect::Sh, &text, Severity::Error),
            [""; 0],
            "{text}"
        );
    }
    for kind in [
        "day",
        "source",
        "list",
        "report",
        "builtin.workspace",
        "list.json",
    ] {
        let text = format!("sh -c 'f {{{kind}}}'");
        assert_eq!(
            codes(Dialect::Sh, &text, Severity::Error)[0],
            "placeholder_in_code",
            "{text}"
        );
    }
    for text in [
        "find . -exec f {x} \\;",
        "find . -exec f {} {x} +",
        "xargs -I@ f {x}",
        "xargs -I {} f {x} {}",
    ] {
        refused_by_both(text, "value_is_rewritten");
    }
    for text in [
        "curl -d {x} u",
        "curl --data={x} u",
        "curl -F a={x} u",
        "curl -H {x} u",
        "curl --data-urlencode {x} u",
    ] {
        refused_by_both(text, "value_names_a_file");
    }
}

#[test]
fn harmless_commands_are_not_refused() {
    for text in HARMLESS {
        let dialect = if text.contains("|&") {
            Dialect::Bash
        } else {
            Dialect::Sh
        };
        assert_eq!(codes(dialect, text, Severity::Error), [""; 0], "{text}");
        assert_eq!(
            codes(Dialect::Bash, text, Severity::Error),
            [""; 0],
            "{text}"
        );
    }
}

#[test]
fn braces_that_are_not_ours_stay() {
    let untouched = [
        "echo {a,b} {1..3} {} { } a{b}c",
        "awk '{print $1}' f",
        "jq '{name, id: .x}' f",
        "curl -w '%{http_code}' u",
        "git log HEAD@{upstream}",
        "f ${V} ${HOME} ${V:-d} ${V#p} ${#V} ${V%%.*}",
        "find . -exec rm {} \\;",
        "cmd < file > out 2>&1",
        "rpm -q --qf '%{name}' p",
        "docker ps --format '{{.Names}}'",
        "f() { g; }",
        "cat <<'E'\n{a} ${b} `c\nE\n",
        "case $1 in a) f;; esac",
        "echo \"{'a': 1}\"",
        "python3 - <<'E'\nprint(f'{value}')\nE",
        "echo {other} \"{other}\" <input> <date>",
        "wc <file >out",
        "echo \"it's",
        "$((",
        "((",
        "<<",
        "",
        "a=(1 2",
        "`",
        "if",
        "case",
        "${",
        "for i in",
        "cat <<E",
        "[[ a",
        "\\",
        "echo <title> b",
    ];
    for text in untouched {
        for dialect in [Dialect::Sh, Dialect::Bash] {
            let compiled = ShellText::compile(text, &names(), dialect).unwrap();
            assert_eq!(compiled.template.render(&BTreeMap::new()), text);
            let is_bashism = dialect == Dialect::Sh && text == "[[ a";
            assert_eq!(compiled.notes.len(), usize::from(is_bashism), "{text}");
        }
    }
    both(
        "awk '{print $1}' {source}",
        "awk '{print $1}' \"${WORKERCTL_INPUT_source}\"",
    );
    both("f {fd}> /dev/null {x}", "f {fd}> /dev/null \"@\"");
    refused_by_both("f {{x}}", "handlebars_in_shell");
    refused_by_both("f \"{{ x }}\" '{{{x}}}'", "handlebars_in_shell");
    refused_by_both("f {custmer}", "unknown_name");
    refused_by_both("f \"{cusotmer}\"", "unknown_name");
    refused_by_both("f {input.custome} {x}", "unknown_name");
    both(
        "f '{custmer}' {nothing} {x}",
        "f '{custmer}' {nothing} \"@\"",
    );
}

#[test]
fn angle_brackets() {
    let o = "${WORKERCTL_OUTPUT_report}";
    both("test -s <output>", &format!("test -s \"{o}\""));
    both(
        "diff <output> b; f --o=<report>; (f <output>)",
        &format!("diff \"{o}\" b; f --o=\"{o}\"; (f \"{o}\")"),
    );
    both(
        "f <output>/a; f '<output>' \"<output>\" \"--o=<output>\"",
        &format!("f \"{o}\"/a; f ''\"{o}\"'' \"{o}\" \"--o={o}\""),
    );
    for text in [
        "f 2<output>",
        "f <output>x",
        "f <output>>f",
        "f <output>|cat",
        "f a<output> b",
        "grep 'a <output>' f",
        "f \"see <output>\"",
        "f <output>&",
    ] {
        refused_by_both(text, "ambiguous_angle_brackets");
    }
    refused(
        Dialect::Bash,
        "[[ a <output> b ]]",
        "ambiguous_angle_brackets",
    );
    refused_by_both(
        "cat <<E\nusage: f <output>\nE\n",
        "ambiguous_angle_brackets",
    );
    both("f < output > c", "f < output > c");
    both(
        "cat <<output> c\na\noutput\n",
        "cat <<output> c\na\noutput\n",
    );
    both("f <x>y {x}", "f <x>y \"@\"");
}

#[test]
fn doubt_refuses_only_what_follows_it() {
    both("f {x}\ng )", "f \"@\"\ng )");
    both("f {x}; echo 'open", "f \"@\"; echo 'open");
    refused_by_both("f {x}; echo 'open {x}", "unread_shell");
    refused_by_both("g ) {x}", "unread_shell");
    for text in [
        "[[ a == b ]] && f {x}",
        "[[ {x} ]]",
        "f $'a' {x}",
        "f <(g {x})",
        "a=(b); f {x}",
        "a=({x})",
        "function f { g {x}; }",
        "((1)); f {x}",
        "cat <<<a; f {x}",
    ] {
        refused(Dialect::Sh, text, "unread_shell");
        let found = ShellText::compile(text, &names(), Dialect::Sh).unwrap_err();
        assert!(
            found[0].hint.contains("shell: bash"),
            "{text}: {}",
            found[0].hint
        );
    }
    let deep = format!("{}f {{x}}{}", "$(".repeat(500), ")".repeat(500));
    refused_by_both(&deep, "unread_shell");
}

#[test]
fn remarks_and_uses() {
    assert_eq!(
        codes(Dialect::Sh, "f {key}", Severity::Warning),
        ["secret_in_argument"]
    );
    assert_eq!(
        codes(
            Dialect::Sh,
            "printf '%s' {key} | f; A={key} f; f {key.file}",
            Severity::Warning
        ),
        [""; 0]
    );
    assert_eq!(codes(Dialect::Sh, "f {x}", Severity::Note), ["dash_guard"]);
    assert_eq!(
        codes(Dialect::Sh, "echo {x}", Severity::Note),
        ["echo_changes_text"]
    );
    let guards = |text: &str| {
        let template = ShellText::compile(text, &names(), Dialect::Sh)
            .unwrap()
            .template;
        template
            .dash_guards()
            .iter()
            .map(|g| g.name.clone())
            .collect::<Vec<_>>()
    };
    let free = "f -- {x}; f --a={x} {flags} {branch} {n} {source} {report}; [ {x} = a ]; printf %s {x}; A={x}; git commit -m {x}";
    assert_eq!(guards(free), [""; 0]);
    assert_eq!(
        guards("f \"{x}\"; f {x}.md; f {list} {day}; f -o {x}"),
        ["x", "x", "list", "day", "x"]
    );
    let text = "f {x} '{n}' > {output}";
    let template = ShellText::compile(text, &names(), Dialect::Sh)
        .unwrap()
        .template;
    let shown: Vec<_> = template
        .uses()
        .iter()
        .map(|u| (u.name.as_str(), &text[u.offset.clone()], u.context))
        .collect();
    assert_eq!(
        shown,
        [
            ("x", "{x}", "argument"),
            ("n", "{n}", "argument in single quotes"),
            ("report", "{output}", "redirection")
        ]
    );
}
