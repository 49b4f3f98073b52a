//! The words in which a placeholder is refused or remarked upon.
//!
//! In a message `%N` stands for the placeholder as written and `%V` for its variable.

use super::operands::Role;
use super::reading::{Doubt, Form, Place, Refusal, Slot, UnboundName};
use super::tools::steers_programs;
use crate::template::names::Kind;
use crate::template::problem::{Severity, TextProblem};
use std::ops::Range;

/// A code, a message and a hint.
pub(super) type Message = (&'static str, String, String);

/// What may stand almost everywhere.
const INERT: &str = "An input that is a whole number, a boolean, an `enum`, or has a `pattern` such as `[A-Za-z0-9_.-]+` \
                     that begins with no `-` may stand here";

fn message(code: &'static str, message: &str, hint: &str) -> Message {
    (code, message.to_owned(), hint.to_owned())
}

/// Why a placeholder cannot stand in its place, if it cannot.
pub(super) fn place(slot: &Slot, kind: Kind, inert: bool) -> Option<Message> {
    if let Some(refusal) = refusal(&slot.place) {
        return Some(refused(refusal));
    }
    if let Some(name) = steers(&slot.place) {
        return Some(steering(name));
    }
    Some(match &slot.place {
        Place::Arithmetic | Place::NumericCondition if kind != Kind::Integer => message(
            "arithmetic_needs_integer",
            "`%N` is in arithmetic, where the shell would run what it finds in a value",
            "declare the input as a number with whole bounds, or compute with another program",
        ),
        Place::Redirect
            if !matches!(kind, Kind::Path | Kind::OutputFile | Kind::Date) && !inert =>
        {
            message(
                "redirect_to_value",
                "the value of `%N` would choose a file to read or write",
                "declare the input as `type: path`, give it a `pattern`, or write to a declared output",
            )
        }
        _ => return None,
    })
}

fn steering(name: &str) -> Message {
    message(
        "value_steers_programs",
        &format!("`{name}` decides which programs run, and `%N` would set it"),
        "use a variable of another name",
    )
}

fn refused(refusal: Refusal) -> Message {
    match refusal {
        Refusal::VariableName => message(
            "placeholder_as_variable_name",
            "`%N` would name a variable",
            "write the name of the variable, and give it the value: `name=%N`",
        ),
        Refusal::Subscript => message(
            "placeholder_in_subscript",
            "`%N` is in a subscript, where the shell would run what it finds in a value",
            "loop over the elements, or keep the data in a file",
        ),
        Refusal::Operator => message(
            "placeholder_in_expansion",
            "`%N` is in a part of an expansion that reads it a second time",
            "assign the value to a variable first, and use that",
        ),
        Refusal::Descriptor => message(
            "placeholder_as_descriptor",
            "`%N` would choose a file descriptor",
            "write the number, or redirect to a file with `>`",
        ),
        Refusal::Delimiter => message(
            "placeholder_as_delimiter",
            "`%N` is in the delimiter of a here-document",
            "use a fixed word",
        ),
        Refusal::QuotedHereDoc => message(
            "placeholder_in_quoted_heredoc",
            "nothing is expanded in a here-document whose delimiter is quoted: `%N` would arrive as it is",
            "in a program, read its environment variable `%V`; in other text, take the quotes from the delimiter and write a backslash before each `$`, backtick and backslash; write `\\%N` if the braces are meant",
        ),
        Refusal::Backticks => message(
            "placeholder_in_backticks",
            "`%N` is between backticks with a backslash, which is read twice",
            "write `$(…)`",
        ),
        Refusal::AngleAmbiguous => message(
            "ambiguous_angle_brackets",
            "`%N` can be read as a redirection or as plain text",
            "write `{output}` or the name in braces; write `< output > x` with blanks for redirections, or `\\%N` for the text",
        ),
        Refusal::EscapeInExpansion => message(
            "escape_in_expansion",
            "the brace of `%N` would end the expansion around it",
            "assign the text to a variable first",
        ),
    }
}

/// Why a placeholder cannot have this role in a command, if it cannot.
pub(super) fn role(role: &Role, kind: Kind, inert: bool) -> Option<Message> {
    Some(match role {
        Role::Program if kind != Kind::Enumeration => message(
            "placeholder_as_command",
            "the value of `%N` would choose the program to run",
            "write the command, or declare the input as an `enum`",
        ),
        Role::Code(remedy) if !inert => message(
            "placeholder_in_code",
            "`%N` is in text that is read as a program",
            &format!("{remedy}. {INERT}"),
        ),
        Role::VariableName => refused(Refusal::VariableName),
        Role::Assigned(name) if steers_programs(name) => steering(name),
        Role::Replaced(how) if !inert => message(
            "value_is_rewritten",
            &format!("{how}, so `%N` would not arrive as it is"),
            "read `$%V` in a script that the command runs",
        ),
        Role::AtFile(remedy) if !inert => message(
            "value_names_a_file",
            "the value of `%N` could name a file to be sent",
            remedy,
        ),
        Role::Assigned(_)
        | Role::Program
        | Role::Code(_)
        | Role::Replaced(_)
        | Role::AtFile(_)
        | Role::Argument
        | Role::Operand
        | Role::Echoed => return None,
    })
}

pub(super) fn list() -> Message {
    (
        "list_needs_a_word",
        "`%N` is a list, which can only stand as a word of its own outside quotes".to_owned(),
        "give it blanks on both sides, or use `.json` or `.lines` for one text".to_owned(),
    )
}

pub(super) fn piped(remedy: &str) -> Message {
    (
        "placeholder_in_code",
        "the value of `%N` is read as a program on standard input".to_owned(),
        format!("{remedy}. {INERT}"),
    )
}

pub(super) fn secret() -> Message {
    (
        "secret_in_argument",
        "`%N` is a secret, and every user of the machine can read the arguments of a process"
            .to_owned(),
        "let the command read `$%V` from its environment, or give it `.file` or standard input"
            .to_owned(),
    )
}

pub(super) fn dash() -> Message {
    (
        "dash_guard",
        "a value of `%N` that begins with `-` would be an option, so it is refused at intake"
            .to_owned(),
        "write `--` before it or `--option=%N`; `allow_dash: true` lets such values pass"
            .to_owned(),
    )
}

/// A name in braces that stays text.
pub(super) fn left(text: &str, left: &UnboundName) -> TextProblem {
    let range = left.range.clone();
    let written = text.get(range.clone()).unwrap_or_default();
    let name = written.trim_matches(['{', '}']);
    if left.is_built_in {
        let message = format!(
            "`{written}` in single quotes is literal text: only declared names are replaced there"
        );
        let hint = format!(
            "write it between double quotes, or as `{{builtin.{name}}}`; for the text, `\\{written}`"
        );
        return TextProblem::new(
            Severity::Warning,
            "text_in_single_quotes",
            range,
            message,
            hint,
        );
    }
    let message = format!(
        "no input or output is called `{name}`, so the text `{written}` reaches the command unchanged"
    );
    let hint = match name {
        "output" => "give one output a `destination`, or take the braces away".to_owned(),
        _ => {
            format!("declare an input `{name}`, or an output with a path, or take the braces away")
        }
    };
    TextProblem::new(Severity::Warning, "undeclared_name", range, message, hint)
}

pub(super) fn echoed() -> Message {
    (
        "echo_changes_text",
        "`echo` may drop `-n` and read backslashes in `%N`".to_owned(),
        "write `printf '%s\\n' %N` where the exact text matters".to_owned(),
    )
}

pub(super) fn joined_test() -> Message {
    (
        "joined_test",
        "`-a` and `-o` make `[` misread values such as `(` and `!`".to_owned(),
        "write `[ … ] && [ … ]` or `[ … ] || [ … ]`".to_owned(),
    )
}

pub(super) fn shell_variable(text: &str, range: Range<usize>, name: &str) -> TextProblem {
    let written = text.get(range.clone()).unwrap_or_default();
    TextProblem::new(
        Severity::Warning,
        "shell_variable",
        range,
        format!("nothing sets the shell variable `{written}`"),
        format!("write `{{{name}}}` for the value that the skill declares"),
    )
}

pub(super) fn double_brackets() -> Message {
    (
        "shell_bashism",
        "`[[` is not part of `sh`, which takes it for the name of a program".to_owned(),
        "write `[ … ]`, or `shell: bash` in the skill".to_owned(),
    )
}

pub(super) fn unclosed_test() -> Message {
    (
        "test_unclosed",
        "`[` needs `]` as a word of its own".to_owned(),
        "write a space before `]`".to_owned(),
    )
}

pub(super) fn curly_quotes() -> Message {
    (
        "quotes_curly",
        "curly quotes are ordinary characters to a shell".to_owned(),
        "write `\"` or `'`".to_owned(),
    )
}

pub(super) fn doubtful(text: &str, range: Range<usize>, doubt: Doubt, line: usize) -> TextProblem {
    let written = text.get(range.clone()).unwrap_or_default().to_owned();
    TextProblem::error(
        "unread_shell",
        range,
        format!(
            "`{written}` follows shell text that cannot be parsed reliably: {}, in line {line}",
            doubt.why
        ),
        doubt.hint,
    )
}

/// What kind of place a placeholder stands in, in a few words.
pub(super) fn context(slot: &Slot, role: Option<&Role>) -> &'static str {
    match &slot.place {
        Place::Argument => match (role, slot.form) {
            (Some(Role::Code(_)), _) => "program text",
            (Some(Role::Program), _) => "command",
            (Some(Role::Assigned(_)), _) => "assignment",
            (_, Form::Double) => "argument in double quotes",
            (_, Form::Single) => "argument in single quotes",
            (_, Form::AnsiC) => "argument in `$'…'`",
            (_, Form::Bare | Form::Arithmetic) if slot.whole => "argument",
            (_, Form::Bare | Form::Arithmetic) => "part of an argument",
        },
        Place::LoopWord => "loop word",
        Place::ArrayElement => "array element",
        Place::CaseSubject => "case word",
        Place::CasePattern => "case pattern",
        Place::Assignment(_) => "assignment",
        Place::Redirect => "redirection",
        Place::HereDoc => "here-document",
        Place::HereString => "here-string",
        Place::Condition | Place::NumericCondition => "condition",
        Place::Arithmetic => "arithmetic",
        Place::Refused(_) => "refused",
    }
}

/// Whether a variable may not be set from a value.
fn steers(place: &Place) -> Option<&str> {
    match place {
        Place::Assignment(name) if steers_programs(name) => Some(name),
        _ => None,
    }
}

/// Whether a refusal is about the place alone.
fn refusal(place: &Place) -> Option<Refusal> {
    match place {
        Place::Refused(refusal) => Some(*refusal),
        _ => None,
    }
}
