//! The forms in which a secret may turn up in output.

use std::fmt::Write;

use super::SECRET_BYTES_MIN;

/// Most bytes of secrets whose encodings are also found in part, where a program breaks them into lines: their parts
/// take some hundred times their room.
pub(super) const BROKEN_BYTES_MAX: usize = 4 * 1024;

/// Length in characters of a part of such an encoding; every program's lines are longer.
const PART: usize = 24;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The value without the line ends that files and `echo` append.
pub(super) fn trimmed(value: &[u8]) -> &[u8] {
    let end = value
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    &value[..end]
}

/// Appends every form of `value` that is worth masking; with `in_parts`, also what a line holds of it.
pub(super) fn forms(value: &[u8], in_parts: bool, out: &mut Vec<Vec<u8>>) {
    let whole = trimmed(value);
    encodings(whole, out);
    if in_parts && whole.len() >= SECRET_BYTES_MIN {
        broken(whole, out);
    }
    if whole.contains(&b'\n') {
        for line in whole.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            encodings(line, out);
            encodings(line.trim_ascii(), out);
        }
    }
}

/// Appends the encodings of one text; a line too short to be told from others is left out.
fn encodings(value: &[u8], out: &mut Vec<Vec<u8>>) {
    if value.len() < SECRET_BYTES_MIN {
        return;
    }
    out.push(value.to_vec());
    for alphabet in [STANDARD, URL_SAFE] {
        for shift in 0..3 {
            base64(value, alphabet, shift, out);
        }
    }
    for upper in [true, false] {
        out.push(hex(value, upper));
        for keep in [
            &b"-_.~"[..],
            b"-_.~/",
            b"-_.!~*'()",
            b"-_.!~*'();/?:@&=+$,#",
        ] {
            out.push(percent(value, upper, keep, false));
        }
        out.push(percent(value, upper, b"-_.*", true));
        out.push(percent(value, upper, b"-_.~", true));
    }
    json(value, out);
    json_within_json(value, out);
    shell(value, out);
}

/// Appends parts of Base64 and hexadecimal texts, of which `base64` and `xxd -p` break long ones into lines. Lines end
/// behind whole groups, so parts that begin with each group hide all of a line but a rest too short to be told from
/// other text.
fn broken(value: &[u8], out: &mut Vec<Vec<u8>>) {
    for alphabet in [STANDARD, URL_SAFE] {
        for shift in 0..3 {
            let (text, head, whole) = base64_text(value, alphabet, shift);
            parts(&text[..whole], head, 4, out);
        }
    }
    parts(&hex(value, false), 0, 2, out);
}

/// Parts of what stands in `text` from `head` on, in groups of so many characters from its beginning.
fn parts(text: &[u8], head: usize, group: usize, out: &mut Vec<Vec<u8>>) {
    let shortest = SECRET_BYTES_MIN * if group == 4 { 4 } else { 6 } / 3;
    let first = head.next_multiple_of(group);
    let starts = std::iter::once(head).chain((first..text.len()).step_by(group));
    for start in starts {
        let end = text.len().min(start + PART);
        if end - start >= shortest {
            out.push(text[start..end].to_vec());
        }
    }
    // What a line holds of its beginning.
    let ends = (first..text.len().min(head + PART)).step_by(group);
    out.extend(
        ends.filter(|end| end - head >= shortest)
            .map(|end| text[head..end].to_vec()),
    );
}

/// The characters of a Base64 text that depend on the secret alone when `shift` bytes stand before it;
/// with and without the characters that end a text after it.
fn base64(value: &[u8], alphabet: &[u8; 64], shift: usize, out: &mut Vec<Vec<u8>>) {
    let (text, head, whole) = base64_text(value, alphabet, shift);
    out.push(text[head..whole].to_vec());
    if whole < text.len() {
        let mut ended = text[head..].to_vec();
        out.push(ended.clone());
        ended.resize(ended.len() + (4 - text.len() % 4) % 4, b'=');
        out.push(ended);
    }
}

/// The Base64 text of a secret that `shift` bytes stand before, and where in it the characters begin and end that depend
/// on the secret alone.
fn base64_text(value: &[u8], alphabet: &[u8; 64], shift: usize) -> (Vec<u8>, usize, usize) {
    let mut bits = vec![0u8; shift];
    bits.extend_from_slice(value);
    let mut text = Vec::with_capacity(bits.len().div_ceil(3) * 4);
    for group in bits.chunks(3) {
        let word = (u32::from(group[0]) << 16)
            | (u32::from(group.get(1).copied().unwrap_or(0)) << 8)
            | u32::from(group.get(2).copied().unwrap_or(0));
        for place in 0..=group.len() {
            let index = (word >> (18 - 6 * place)) & 63;
            text.push(alphabet[index as usize]);
        }
    }
    // The first characters hold bits of what stands before: 8 or 16 bits reach into 2 or 3 characters.
    let head = if shift == 0 { 0 } else { shift + 1 };
    let whole = bits.len() * 8 / 6;
    (text, head, whole)
}

fn hex(value: &[u8], upper: bool) -> Vec<u8> {
    let mut text = String::with_capacity(value.len() * 2);
    for byte in value {
        push_hex(&mut text, *byte, upper);
    }
    text.into_bytes()
}

fn push_hex(text: &mut String, byte: u8, upper: bool) {
    // Writing to a string cannot fail.
    let _ = if upper {
        write!(text, "{byte:02X}")
    } else {
        write!(text, "{byte:02x}")
    };
}

fn percent(value: &[u8], upper: bool, keep: &[u8], plus: bool) -> Vec<u8> {
    let mut text = String::with_capacity(value.len() * 3);
    for byte in value {
        match *byte {
            b' ' if plus => text.push('+'),
            kept if kept.is_ascii_alphanumeric() || keep.contains(&kept) => {
                text.push(char::from(kept));
            }
            other => {
                text.push('%');
                push_hex(&mut text, other, upper);
            }
        }
    }
    text.into_bytes()
}

/// As JSON strings hold it: short, with `/` escaped, and with everything beyond ASCII escaped.
fn json(value: &[u8], out: &mut Vec<Vec<u8>>) {
    let Ok(value) = std::str::from_utf8(value) else {
        return;
    };
    for (slash, ascii, upper, html) in [
        (false, false, false, false),
        (true, false, false, false),
        (false, true, false, false),
        (false, true, true, false),
        (true, true, false, false),
        (false, false, false, true),
    ] {
        let mut text = String::with_capacity(value.len());
        for character in value.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '/' if slash => text.push_str("\\/"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\u{8}' => text.push_str("\\b"),
                '\u{c}' => text.push_str("\\f"),
                // Encoders that mean to be safe within HTML escape these three.
                '<' | '>' | '&' if html => escape_unicode(&mut text, character, false),
                control if control < ' ' => escape_unicode(&mut text, control, upper),
                wide if ascii && !wide.is_ascii() => escape_unicode(&mut text, wide, upper),
                plain => text.push(plain),
            }
        }
        out.push(text.into_bytes());
    }
}

/// As a JSON string holds it within a JSON string, such as the arguments of a tool's call.
fn json_within_json(value: &[u8], out: &mut Vec<Vec<u8>>) {
    let mut once = Vec::new();
    json(value, &mut once);
    once.sort_unstable();
    once.dedup();
    for text in once {
        json(&text, out);
    }
}

fn escape_unicode(text: &mut String, character: char, upper: bool) {
    let mut units = [0u16; 2];
    for unit in character.encode_utf16(&mut units) {
        text.push_str("\\u");
        for byte in unit.to_be_bytes() {
            push_hex(text, byte, upper);
        }
    }
}

/// As shells write a word back: within `'…'`, within `"…"`, and with backslashes.
fn shell(value: &[u8], out: &mut Vec<Vec<u8>>) {
    out.push(replaced(value, |byte| match byte {
        b'\'' => Some(&b"'\\''"[..]),
        _ => None,
    }));
    out.push(replaced(value, |byte| match byte {
        b'\'' => Some(&b"'\"'\"'"[..]),
        _ => None,
    }));
    let mut quoted = Vec::with_capacity(value.len());
    let mut bare = Vec::with_capacity(value.len());
    let mut dollar = Vec::with_capacity(value.len());
    for byte in value.iter().copied() {
        if matches!(byte, b'"' | b'\\' | b'$' | b'`' | b'!') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
        let safe = byte.is_ascii_alphanumeric() || b"_-./,:=@%+".contains(&byte) || byte >= 0x80;
        if !safe {
            bare.push(b'\\');
        }
        bare.push(byte);
        match byte {
            b'\'' => dollar.extend_from_slice(b"\\'"),
            b'\\' => dollar.extend_from_slice(b"\\\\"),
            b'\n' => dollar.extend_from_slice(b"\\n"),
            b'\r' => dollar.extend_from_slice(b"\\r"),
            b'\t' => dollar.extend_from_slice(b"\\t"),
            other => dollar.push(other),
        }
    }
    out.extend([quoted, bare, dollar]);
}

fn replaced(value: &[u8], by: impl Fn(u8) -> Option<&'static [u8]>) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        match by(*byte) {
            Some(other) => text.extend_from_slice(other),
            None => text.push(*byte),
        }
    }
    text
}
