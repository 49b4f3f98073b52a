//! Texts that a shell accepts and that cannot do what they say.

use super::*;

#[test]
fn variables_that_nothing_sets_are_found() {
    for unset in ["f ${x}", "f $x", "f \"a $x\" | g"] {
        assert_eq!(
            codes(Dialect::Sh, unset, Severity::Note),
            ["shell_variable"],
            "{unset}"
        );
    }
    assert_eq!(
        codes(Dialect::Sh, "f '$x' \\$x $y", Severity::Note),
        [""; 0]
    );
    assert_eq!(codes(Dialect::Sh, "x=1; f ${x}", Severity::Note), [""; 0]);
    assert_eq!(
        codes(Dialect::Sh, "read x; f ${x} \"${x}\"", Severity::Note),
        [""; 0]
    );
    assert_eq!(
        codes(Dialect::Sh, "for x in a; do f ${x}; done", Severity::Note),
        [""; 0]
    );
}

#[test]
fn commands_that_cannot_do_what_they_say_are_found() {
    for (code, text) in [
        ("test_unclosed", "[ -s {x}]"),
        ("test_unclosed", "true && [ a = b]"),
        ("test_unclosed", "if ! [ -f a]; then f; fi"),
        ("shell_bashism", "if [[ -d a && -n b ]]; then f; fi"),
        ("quotes_curly", "printf “a b”"),
    ] {
        assert_eq!(
            codes(Dialect::Sh, text, Severity::Warning),
            [code],
            "{text}"
        );
    }
    for text in [
        "[ -s {x} ] && [ a = b ]",
        "ls [a-z]* a[1]",
        "[ a = [b] ]",
        "printf '“a”' \"’\"",
        "cat <<END\n[[table]]\nEND",
    ] {
        assert_eq!(
            codes(Dialect::Sh, text, Severity::Warning),
            [""; 0],
            "{text}"
        );
    }
    assert_eq!(
        codes(Dialect::Bash, "[[ -d a ]]", Severity::Warning),
        [""; 0]
    );
}
