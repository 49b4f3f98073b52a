//! Texts in headers, which are ASCII.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of one encoded word: 75 with what is around it, and four for each three.
const WORD_BYTES_MAX: usize = 45;

/// A text without control characters as a header takes it: as it is, or in encoded words (RFC 2047).
pub(super) fn encoded(text: &str) -> String {
    // What looks like an encoded word would be read as one.
    if text
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !text.contains("=?")
    {
        return text.to_owned();
    }
    let mut words: Vec<String> = vec![String::new()];
    for c in text.chars() {
        match words.last_mut() {
            Some(last) if last.len() + c.len_utf8() <= WORD_BYTES_MAX => last.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let word = |part: &String| format!("=?UTF-8?B?{}?=", STANDARD.encode(part));
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ascii_is_encoded_in_words_of_whole_characters() {
        assert_eq!(encoded("w/s failed"), "w/s failed");
        assert_eq!(encoded("ü"), "=?UTF-8?B?w7w=?=");
        assert!(encoded("=?UTF-8?B?w7w=?=").starts_with("=?UTF-8?B?PT9"));
        let long = encoded(&"ü".repeat(60));
        let words: Vec<&str> = long.split(' ').collect();
        assert_eq!(words.len(), 3);
        for word in words {
            assert!(word.len() <= 75, "{word}");
            let inner = &word["=?UTF-8?B?".len()..word.len() - 2];
            String::from_utf8(STANDARD.decode(inner).unwrap()).unwrap();
        }
        assert!(!encoded("a\r\nBcc: x").contains('\n'));
    }
}
