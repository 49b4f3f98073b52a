//! The command of a job as the text of a skill.

/// Names of ours that braces around them would make into placeholders.
const OURS: [&str; 10] = [
    "date",
    "time",
    "scheduled_at",
    "worker",
    "skill",
    "run",
    "attempt",
    "workspace",
    "cwd",
    "output",
];

/// How far a word may be from one of ours and still be taken for a slip of it.
const SLIP: usize = 2;

/// Shell text that does what cron does: the crontab's variables, the home directory, standard input, the command.
pub(super) fn shell_text(exports: &[(String, String)], written: &str) -> String {
    let (command, input) = percents(written);
    let mut text = String::new();
    for (name, value) in exports {
        for part in ["export ", name, "=", &quoted(value), "\n"] {
            text.push_str(part);
        }
    }
    text.push_str("cd \"$HOME\" || exit\n");
    let mut body = String::new();
    if let Some(input) = input {
        let end = delimiter(&input);
        body = format!("exec <<'{end}'\n{input}\n{end}\n");
    }
    body.push_str(&command);
    if looks_like_placeholder(&body) {
        body = format!("eval {}", quoted(&body));
    }
    text.push_str(&body);
    text
}

/// By what a command leaves something running behind it.
pub(super) fn leaves_behind(command: &str) -> Option<&'static str> {
    const PROGRAMS: [&str; 4] = ["nohup", "setsid", "disown", "daemonize"];
    let words = command.split([' ', '\t', ';', '|', '&', '(', ')']);
    let named = words.filter_map(|word| PROGRAMS.iter().find(|one| **one == word));
    let background = is_put_behind(command).then_some("&");
    named.copied().next().or(background)
}

/// Whether a lone `&` stands outside quotes that is no part of a redirection.
fn is_put_behind(command: &str) -> bool {
    let (mut quote, mut before) = (None, ' ');
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '&') => {
                let next = chars.peek().copied();
                if next == Some('&') {
                    chars.next();
                } else if !matches!(before, '>' | '<' | '|') && next != Some('>') {
                    return true;
                }
            }
            _ => {}
        }
        before = c;
    }
    false
}

/// The command, and what stands on its standard input: behind the first `%`, each further one is the end of a
/// line. A backslash takes the meaning from one, and goes.
fn percents(written: &str) -> (String, Option<String>) {
    let (mut command, mut input) = (String::new(), None::<String>);
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        let literal = match c {
            '\\' if chars.next_if_eq(&'%').is_some() => '%',
            '%' => {
                match &mut input {
                    None => input = Some(String::new()),
                    Some(input) => input.push('\n'),
                }
                continue;
            }
            other => other,
        };
        input.as_mut().unwrap_or(&mut command).push(literal);
    }
    (command, input)
}

/// A line that the text does not hold.
fn delimiter(text: &str) -> String {
    let mut end = "END".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    end
}

/// One word of a shell; no brace in it begins a placeholder of ours.
fn quoted(text: &str) -> String {
    let inside = text.replace('\'', "'\\''").replace('{', "{''");
    format!("'{inside}'")
}

/// Whether a definition would read something in braces as a placeholder, or as a slip of one.
fn looks_like_placeholder(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let inside = text[at + 1..].trim_start_matches([' ', '\t', '~']);
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name: &str = &inside[..inside.find(|c| !is_part(c)).unwrap_or(inside.len())];
        let closes = inside[name.len()..].trim_start_matches([' ', '\t', '~']);
        let near = |part: &str| {
            OURS.iter()
                .any(|ours| strsim::osa_distance(ours, part) <= SLIP)
        };
        closes.starts_with('}') && !name.is_empty() && name.split('.').any(near)
    })
}
