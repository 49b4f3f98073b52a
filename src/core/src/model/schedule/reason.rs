//! Reasons in words that are kept: one record of the store has to hold what is remembered of a schedule.

/// Longest reason of a row or a pause, in bytes as JSON writes it: a quote takes two, a control character six.
pub const REASON_BYTES_MAX: usize = 512;

/// How many bytes a text takes as JSON writes it, without the quotes around it.
pub fn json_bytes(text: &str) -> usize {
    text.chars().map(bytes_of).sum()
}

fn bytes_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// The beginning of a text that takes at most so many bytes as JSON writes it.
pub fn cut(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += bytes_of(*c);
        taken > most
    });
    end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits_and_what_fits_is_not_cut() {
        let every: String = (0..0x250).filter_map(char::from_u32).collect();
        let written = serde_json::to_string(&every).unwrap();
        assert_eq!(json_bytes(&every), written.len() - 2);
        assert_eq!(cut(&every, json_bytes(&every)), every);
        for most in 0..600 {
            let kept = cut(&every, most);
            assert!(json_bytes(kept) <= most && every.starts_with(kept));
        }
        assert_eq!(cut("ab\"cd", 3), "ab");
        assert_eq!(cut("ab\"cd", 4), "ab\"");
    }
}
