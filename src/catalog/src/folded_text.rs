//! Commands over several lines that YAML joins into one: a block `>`, or plain text that continues in the next line.

use super::report::Report;
use super::view::View;

/// Commands that shells have themselves, and words that begin a command.
const BUILTINS: [&str; 24] = [
    ".", "[", "cd", "case", "echo", "eval", "exec", "exit", "export", "for", "if", "printf",
    "read", "return", "set", "shift", "source", "test", "trap", "umask", "unset", "until", "wait",
    "while",
];

/// Ends of a line after which a command continues in the next one.
const GOES_ON: [&str; 11] = [
    "\\", "|", "&&", "||", ";", "(", "{", ",", "then", "do", "else",
];

/// Warns of a line that begins a command, although YAML joins it with the line above.
pub(crate) fn report(view: View<'_>, report: &mut Report) {
    let raw = view.raw();
    if raw.starts_with(['|', '"', '\'']) {
        return;
    }
    let mut at = 0;
    let mut above = "";
    for line in raw.split_inclusive('\n') {
        let text = line.trim();
        // The indentation of the first line is before the value, and a mark `>` is not text.
        let is_text = !text.is_empty() && (at > 0 || !raw.starts_with('>'));
        let is_second = at == above.len();
        let is_joined = !above.is_empty() && (is_second || indentation(above) == indentation(line));
        let goes_on = GOES_ON.iter().any(|end| above.trim_end().ends_with(end));
        if is_joined && !goes_on && begins_command(text) {
            let place = view.place_of_raw(at + indentation(line));
            let message = "this line and the one above are joined into one command".to_owned();
            let hint = "write `|` after the key, and the commands below it, one in each line";
            report.warning("run-folded", place, message, hint);
            return;
        }
        above = if is_text { line } else { "" };
        at += line.len();
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns true if the first word of a line is a command or sets a variable.
fn begins_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let sets_variable = word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let is_program = || {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let is_name = !word.is_empty() && !word.contains('/');
        is_name && std::env::split_paths(&directories).any(|path| path.join(word).is_file())
    };
    sets_variable || BUILTINS.contains(&word) || is_program()
}
