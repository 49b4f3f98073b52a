//! Whether a command line is surely one simple command.

/// The words of a command line that is one simple command whatever shell reads it: nothing is joined, piped,
/// redirected, substituted or sent to the background, no variable is set, and no blank, quote or control
/// character can be read in two ways. Everything else is refused, with the reason.
pub(super) fn simple_command(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        if character.is_control() && (character != '\t' || quote.is_some()) {
            return Err("it has a line end or another control character".to_owned());
        }
        match (quote, character) {
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(character);
                // A quote begins a word even if nothing is in it.
                word.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (Some('"'), '$' | '`' | '\\') => {
                return Err(format!("it has `{character}` outside of single quotes"));
            }
            (None, _) if !is_plain(character) => {
                return Err(format!("it has `{character}` outside of quotes"));
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err("a quote in it is not closed".to_owned());
    }
    words.extend(word);
    match words.first() {
        None => Err("it is empty".to_owned()),
        Some(first) if first.contains('=') => Err("it sets a variable first".to_owned()),
        Some(_) => Ok(words),
    }
}

/// Characters that mean themselves outside of quotes, or names of files at most. Others than ASCII are left
/// out because shells take some for blanks, depending on the locale.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-./:,=+@%^~*?[]".contains(character)
}

/// Whether a word means itself also outside of quotes, so that it is the same for every way of quoting it.
pub(super) fn is_literal(word: &str) -> bool {
    !word.contains(['~', '*', '?', '[', ']'])
}
