//! What a placeholder becomes in each place, or why it is refused there.

use super::*;

#[test]
fn words_and_quotes() {
    both("f {x}", "f \"@\"");
    both("f pre{x}post", "f pre\"@\"post");
    both("f --o={x} ~{x} *{x}", "f --o=\"@\" ~\"@\" *\"@\"");
    both("f {p,{x}} {x}{x}", "f {p,\"@\"} \"@\"\"@\"");
    both(
        "for i in {x} a; do f $i; done",
        "for i in \"@\" a; do f $i; done",
    );
    both("set -- {x}; g {x}", "set -- \"@\"; g \"@\"");
    both("( f {x} ); { f {x}; }", "( f \"@\" ); { f \"@\"; }");
    becomes(
        Dialect::Bash,
        "f <(g {x}) >(h {x})",
        "f <(g \"@\") >(h \"@\")",
    );
    both("f \"a {x} b\" \"{x}\"", "f \"a @ b\" \"@\"");
    becomes(Dialect::Bash, "f $\"a {x}\"", "f $\"a @\"");
    both("f 'a {x} b'", "f 'a '\"@\"' b'");
    becomes(Dialect::Bash, "f $'a\\t{x}\\'b'", "f $'a\\t'\"@\"$'\\'b'");
    refused(Dialect::Sh, "f $'a{x}'", "unread_shell");
    both(
        "f $(g {x}) \"$(g {x} \"{x}\" '{x}')\"",
        "f $(g \"@\") \"$(g \"@\" \"@\" ''\"@\"'')\"",
    );
    both(
        "f `g {x}` \"`g {x} \"{x}\"`\"",
        "f `g \"@\"` \"`g \"@\" \"@\"`\"",
    );
    refused_by_both("f `g \\`h {x}\\``", "placeholder_in_backticks");
    both(
        "f {input.x} {builtin.date}",
        "f \"@\" \"${WORKERCTL_DATE}\"",
    );
    both(
        "f {x.json} '{x.file}'",
        "f \"${WORKERCTL_INPUT_x_JSON}\" ''\"${WORKERCTL_INPUT_x_FILE}\"''",
    );
    both(
        "f {output} {report}",
        "f \"${WORKERCTL_OUTPUT_report}\" \"${WORKERCTL_OUTPUT_report}\"",
    );
    both("f a\\\nb {x} é{x}ü", "f a\\\nb \"@\" é\"@\"ü");
    both("f {x}> {report}", "f \"@\"> \"${WORKERCTL_OUTPUT_report}\"");
    both(
        "! f {x} && g {x} || h {x} & i {x}",
        "! f \"@\" && g \"@\" || h \"@\" & i \"@\"",
    );
}

#[test]
fn arithmetic_takes_integers_only() {
    both(
        "f $((7-{n}*2)) $(( ({n}) ))",
        "f $((7-(${WORKERCTL_INPUT_n})*2)) $(( ((${WORKERCTL_INPUT_n})) ))",
    );
    becomes(
        Dialect::Bash,
        "(( {n} > 3 )) && f",
        "(( (${WORKERCTL_INPUT_n}) > 3 )) && f",
    );
    becomes(
        Dialect::Bash,
        "[[ {n} -eq 3 ]]",
        "[[ \"${WORKERCTL_INPUT_n}\" -eq 3 ]]",
    );
    becomes(
        Dialect::Bash,
        "for ((i=0; i<{n}; i++)); do f; done",
        "for ((i=0; i<(${WORKERCTL_INPUT_n}); i++)); do f; done",
    );
    refused_by_both("f $(({x}+1))", "arithmetic_needs_integer");
    refused_by_both("f $(({ratio}+1))", "arithmetic_needs_integer");
    refused(Dialect::Bash, "(({x} > 1))", "arithmetic_needs_integer");
    refused(Dialect::Bash, "[[ {x} -eq 1 ]]", "arithmetic_needs_integer");
    refused(Dialect::Bash, "[[ 1 -lt {x} ]]", "arithmetic_needs_integer");
    refused(
        Dialect::Bash,
        "[[ -v {x} ]]",
        "placeholder_as_variable_name",
    );
    refused(Dialect::Bash, "[ -v {x} ]", "placeholder_as_variable_name");
    refused(Dialect::Bash, "f ${V:{n}:2}", "placeholder_in_expansion");
    refused(Dialect::Bash, "a[{x}]=1", "placeholder_in_subscript");
    refused(Dialect::Bash, "f ${a[{x}]}", "placeholder_in_subscript");
    refused(Dialect::Bash, "a=([{x}]=1)", "placeholder_in_subscript");
    refused(Dialect::Bash, "let y={x}", "placeholder_in_code");
    refused(
        Dialect::Bash,
        "printf -v {x} a",
        "placeholder_as_variable_name",
    );
    refused(Dialect::Bash, "f $[{n}+1]", "unread_shell");
    refused_by_both("f $(( ${V:-{n}} ))", "placeholder_in_expansion");
    becomes(
        Dialect::Bash,
        "(( $(wc -l < {source}) > 3 ))",
        "(( $(wc -l < \"${WORKERCTL_INPUT_source}\") > 3 ))",
    );
    both("f $(( $(wc -c {x}) ))", "f $(( $(wc -c \"@\") ))");
    becomes(
        Dialect::Bash,
        "f $((g {x}) | (h; i))",
        "f $((g \"@\") | (h; i))",
    );
    refused(Dialect::Sh, "(( {n} ))", "unread_shell");
}

#[test]
fn here_documents() {
    both(
        "cat <<E\na \"{x}\" '{x}'\nE\nf {x}",
        "cat <<E\na \"@\" '@'\nE\nf \"@\"",
    );
    both("cat <<-E\n\t{x}\n\tE\n", "cat <<-E\n\t@\n\tE\n");
    both(
        "f \"$(cat <<E\n{x}\nE\n)\" {x}",
        "f \"$(cat <<E\n@\nE\n)\" \"@\"",
    );
    both(
        "cat <<A <<B\n{x}\nA\n$(f {x})\nB\n",
        "cat <<A <<B\n@\nA\n$(f \"@\")\nB\n",
    );
    both(
        "while read l; do f; done <<E\n{x}\nE\n",
        "while read l; do f; done <<E\n@\nE\n",
    );
    both("cat <<E\n\\{x}\nE\nf {x}", "cat <<E\n{x}\nE\nf \"@\"");
    both("f {x} <<E\n'\nE\n", "f \"@\" <<E\n'\nE\n");
    for tool in [
        "sh",
        "bash -s",
        "python3 -",
        "ssh host",
        "awk -f -",
        "psql db",
        "sudo sh",
        ". /dev/stdin",
        "sh /dev/stdin",
        "xargs rm",
        "perl",
    ] {
        refused_by_both(&format!("{tool} <<E\nf {{x}}\nE\n"), "placeholder_in_code");
        refused_by_both(
            &format!("cat <<E | {tool}\nf {{x}}\nE\n"),
            "placeholder_in_code",
        );
    }
    refused_by_both("{ sh; } <<E\n{x}\nE\n", "placeholder_in_code");
    both("python3 s.py <<E\n{x}\nE\n", "python3 s.py <<E\n@\nE\n");
    for quoted in ["'E'", "\\E", "\"E\"", "E''"] {
        refused_by_both(
            &format!("cat <<{quoted}\n{{x}}\nE\n"),
            "placeholder_in_quoted_heredoc",
        );
    }
    both(
        "cat <<'E'\n\\{x} {a}\nE\nf {x}",
        "cat <<'E'\n{x} {a}\nE\nf \"@\"",
    );
    assert!(
        codes(Dialect::Sh, "cat <<{x}\na\n", Severity::Error).contains(&"placeholder_as_delimiter")
    );
    refused_by_both("cat <<E\n{x}\n", "unread_shell");
    becomes(
        Dialect::Bash,
        "cat <<<{x}; cat <<<\"a {x}\"",
        "cat <<<\"@\"; cat <<<\"a @\"",
    );
    refused(Dialect::Bash, "sh <<<\"f {x}\"", "placeholder_in_code");
    refused(Dialect::Sh, "cat <<<{x}", "unread_shell");
}

#[test]
fn comments_and_escapes() {
    both("f # {x} 'it\nf {x}", "f # {x} 'it\nf \"@\"");
    both("f a#{x}", "f a#\"@\"");
    both("f \\{x} {x}", "f \\{x} \"@\"");
    both("f \"\\{x} {x}\"", "f \"{x} @\"");
    both("f 'a\\{x}'", "f 'a{x}'");
    both("f 'a\\\\{x}'", "f 'a\\\\'\"@\"''");
    both("f \\\\{x} \"\\\\{x}\"", "f \\\\\"@\" \"\\\\@\"");
    both(
        "f \\\\\\{x} \"\\\\\\{x}\" {x}",
        "f \\\\\\{x} \"\\\\{x}\" \"@\"",
    );
    both("f \\<output> {x}", "f '<output>' \"@\"");
    both("f \"a \\<output> b\" {x}", "f \"a <output> b\" \"@\"");
    refused_by_both("f ${V:-\\{x}}", "escape_in_expansion");
}

#[test]
fn redirections() {
    both(
        "f > {report} 2>> {source}",
        "f > \"${WORKERCTL_OUTPUT_report}\" 2>> \"${WORKERCTL_INPUT_source}\"",
    );
    both(
        "f >| {output} < {source} <> {source}",
        "f >| \"${WORKERCTL_OUTPUT_report}\" < \"${WORKERCTL_INPUT_source}\" <> \"${WORKERCTL_INPUT_source}\"",
    );
    becomes(
        Dialect::Bash,
        "f &> {output}",
        "f &> \"${WORKERCTL_OUTPUT_report}\"",
    );
    both(
        "f > log-{date}-{n}.txt",
        "f > log-\"${WORKERCTL_DATE}\"-\"${WORKERCTL_INPUT_n}\".txt",
    );
    refused_by_both("f > {x}", "redirect_to_value");
    refused_by_both("f < logs/{x}.txt", "redirect_to_value");
    refused_by_both("f >&{report}", "placeholder_as_descriptor");
    refused_by_both("f <&{n}", "placeholder_as_descriptor");
    refused(Dialect::Sh, "f &> {output}", "unread_shell");
    becomes(
        Dialect::Bash,
        "exec {fd}>{output}; f {x}",
        "exec {fd}>\"${WORKERCTL_OUTPUT_report}\"; f \"@\"",
    );
}

#[test]
fn assignments_and_names() {
    both("A={x} B=pre{x}", "A=\"@\" B=pre\"@\"");
    both(
        "export A={x}; readonly B=\"{x}\"; local C={x}",
        "export A=\"@\"; readonly B=\"@\"; local C=\"@\"",
    );
    both("A={x} f {x}", "A=\"@\" f \"@\"");
    becomes(
        Dialect::Bash,
        "a=({x} b); a+=({list})",
        "a=(\"@\" b); a+=(\"${WORKERCTL_INPUT_list_0}\" \"${WORKERCTL_INPUT_list_1}\")",
    );
    for name in [
        "PATH",
        "IFS",
        "LD_PRELOAD",
        "GIT_SSH",
        "PYTHONPATH",
        "PS4",
        "HOME",
        "NODE_OPTIONS",
    ] {
        refused_by_both(&format!("{name}={{x}}"), "value_steers_programs");
        refused_by_both(&format!("export {name}={{x}}"), "value_steers_programs");
        refused_by_both(&format!("env {name}={{x}} f"), "value_steers_programs");
    }
    refused_by_both("{x} a", "placeholder_as_command");
    refused_by_both("A=1 {x}", "placeholder_as_command");
    refused_by_both("if f; then {x}; fi", "placeholder_as_command");
    refused_by_both("! {x}", "placeholder_as_command");
    for prefix in [
        "exec",
        "sudo",
        "sudo -u bob",
        "env A=1",
        "timeout 5",
        "nohup",
        "xargs",
        "find . -exec",
    ] {
        refused_by_both(&format!("{prefix} {{x}}"), "placeholder_as_command");
    }
    both("{mode} a", "\"${WORKERCTL_INPUT_mode}\" a");
    refused_by_both("{x}=1", "placeholder_as_command");
    for text in [
        "f ${{x}}",
        "f '${{x}}'",
        "f \"${{x}}\"",
        "cat <<E\n${{x}}\nE",
    ] {
        refused_by_both(text, "handlebars_in_shell");
    }
    refused_by_both("for {x} in a; do f; done", "placeholder_as_variable_name");
    refused_by_both("{x}() { f; }", "placeholder_as_variable_name");
    for command in ["read", "unset", "export", "readonly", "local"] {
        refused_by_both(&format!("{command} {{x}}"), "placeholder_as_variable_name");
    }
    for text in [
        "WORKERCTL_INPUT_x=1; f {x}",
        "export WORKERCTL_RUN=1; f {x}",
        "read WORKERCTL_A; f {x}",
    ] {
        refused_by_both(text, "reserved_variable");
    }
}

#[test]
fn case_and_tests() {
    both("case {x} in a) f;; esac", "case \"@\" in a) f;; esac");
    both(
        "case $1 in {x}) f;; pre{x}|b) g {x}\nesac; h {x}",
        "case $1 in \"@\") f;; pre\"@\"|b) g \"@\"\nesac; h \"@\"",
    );
    both(
        "f \"$(case $1 in (a|{x}) g;; esac)\"",
        "f \"$(case $1 in (a|\"@\") g;; esac)\"",
    );
    both(
        "[ {x} ] && [ -n {x} ] && [ {x} = k ] && test ! {x} = k",
        "[ \"@\" ] && [ -n \"@\" ] && [ \"@\" = k ] && test ! \"@\" = k",
    );
    assert_eq!(
        codes(Dialect::Sh, "[ {x} = k -o a = b ]", Severity::Warning),
        ["joined_test"]
    );
    becomes(
        Dialect::Bash,
        "[[ {x} == a && a == {x} && -n {x} && a =~ ^{x}(b|c)$ ]]",
        "[[ \"@\" == a && a == \"@\" && -n \"@\" && a =~ ^\"@\"(b|c)$ ]]",
    );
    becomes(
        Dialect::Bash,
        "[[ a < {x} ]]; f {x}",
        "[[ a < \"@\" ]]; f \"@\"",
    );
}

#[test]
fn expansions() {
    refused_by_both("cat <<E\n${V#{x}}\nE", "placeholder_in_expansion");
    both(
        "f ${V:-{x}} ${V-{x}} ${V:+a {x}} ${V:?{x}}",
        "f ${V:-\"@\"} ${V-\"@\"} ${V:+a \"@\"} ${V:?\"@\"}",
    );
    both("f \"${V:-{x}} ${V:=\"{x}\"}\"", "f \"${V:-@} ${V:=\"@\"}\"");
    both("f ${V#{x}} \"${V%%{x}}\"", "f ${V#\"@\"} \"${V%%\"@\"}\"");
    for text in [
        "${V/a/{x}}",
        "${V//{x}/b}",
        "${V^{x}}",
        "${V,,{x}}",
        "${!V-{x}}",
        "${V@{x}}",
    ] {
        refused(
            Dialect::Bash,
            &format!("f {text}"),
            "placeholder_in_expansion",
        );
    }
    both(
        "f ${#V} ${V} $V $1 $$ ${#} ${*} {x}",
        "f ${#V} ${V} $V $1 $$ ${#} ${*} \"@\"",
    );
}

#[test]
fn lists() {
    let words = "\"${WORKERCTL_INPUT_list_0}\" \"${WORKERCTL_INPUT_list_1}\"";
    both("f {list} a", &format!("f {words} a"));
    both(
        "for i in {list}; do f; done",
        &format!("for i in {words}; do f; done"),
    );
    both("set -- {list}", &format!("set -- {words}"));
    for text in [
        "f pre{list}",
        "f \"{list}\"",
        "f '{list}'",
        "A={list}",
        "case {list} in a) ;; esac",
        "f ${V:-{list}}",
    ] {
        refused_by_both(text, "list_needs_a_word");
    }
    refused(Dialect::Bash, "[[ {list} ]]", "list_needs_a_word");
    refused_by_both("f > {list}", "redirect_to_value");
    let none = ShellText::compile("f {list} b", &names(), Dialect::Sh).unwrap();
    assert_eq!(none.template.render(&BTreeMap::new()), "f  b");
    both(
        "f {list.json} \"{list.lines}\"",
        "f \"${WORKERCTL_INPUT_list_JSON}\" \"${WORKERCTL_INPUT_list_LINES}\"",
    );
}

#[test]
fn expressions_of_ci_systems_are_refused_where_the_shell_would_expand_them() {
    let secret = ShellText::compile("echo ${{ secrets.A }}", &names(), Dialect::Sh).unwrap_err();
    assert!(secret[0].hint.contains("`env: [NAME]`"), "{secret:?}");
    for text in [
        "echo ${{ github.sha }}",
        "echo \"${{ inputs.title }}\" {title}",
        "cat <<EOF\n${{ env.X }}\nEOF\n",
        "echo ${{ open",
    ] {
        for dialect in [Dialect::Sh, Dialect::Bash] {
            assert_eq!(
                codes(dialect, text, Severity::Error),
                ["foreign_expression"],
                "{text}"
            );
        }
    }
    for text in [
        "echo '${{ github.sha }}'",
        "cat <<'EOF'\n${{ env.X }}\nEOF\n",
        "echo \\${{ x }}",
    ] {
        assert!(
            codes(Dialect::Sh, text, Severity::Error).is_empty(),
            "{text}"
        );
    }
}
