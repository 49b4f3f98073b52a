use super::*;

/// A small generator with a fixed seed: the same cases on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

fn masker(values: &[&[u8]]) -> Masker {
    Masker::new(values.iter().map(|value| ("S", *value))).unwrap()
}

fn in_chunks(masker: &Masker, bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut stream, mut out, mut rest) = (masker.stream(), Vec::new(), bytes);
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(1 + random.below(rest.len().min(9)));
        stream.push(chunk, &mut out);
        rest = tail;
    }
    stream.finish(&mut out);
    out
}

/// Encoders written apart from those of the masker, by other means.
fn encoded(kind: usize, value: &[u8]) -> Vec<u8> {
    fn six(bytes: &[u8], url: bool) -> Vec<u8> {
        let eight: Vec<String> = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        let bits = eight.concat();
        let mut text = Vec::new();
        for at in (0..bits.len()).step_by(6) {
            let mut group = bits[at..bits.len().min(at + 6)].to_owned();
            while group.len() < 6 {
                group.push('0');
            }
            text.push(match u8::from_str_radix(&group, 2).unwrap() {
                n @ 0..26 => b'A' + n,
                n @ 26..52 => b'a' + n - 26,
                n @ 52..62 => b'0' + n - 52,
                62 => [b'+', b'-'][usize::from(url)],
                _ => [b'/', b'_'][usize::from(url)],
            });
        }
        text
    }
    let text = String::from_utf8(value.to_vec()).unwrap();
    match kind {
        0 => value.to_vec(),
        1 => six(value, false),
        2 => six(value, true),
        3 => six(&[b"x", value].concat(), false),
        4 => six(&[b"xy", value, b"tail"].concat(), true),
        5 => serde_json::to_string(&text).unwrap()[1..]
            .strip_suffix('"')
            .unwrap()
            .into(),
        6 => value
            .iter()
            .flat_map(|b| format!("{b:02x}").into_bytes())
            .collect(),
        7 => value
            .iter()
            .flat_map(|b| match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => vec![*b],
                _ => format!("%{b:02X}").into_bytes(),
            })
            .collect(),
        _ => text.replace('\'', r"'\''").into_bytes(),
    }
}

/// What must not be found of an encoded secret: all of it, less the characters of Base64 that also
/// hold bits of the neighbours.
fn telling(kind: usize, value: &[u8]) -> Vec<u8> {
    let whole = encoded(kind, value);
    match kind {
        1 | 2 => whole[..value.len() * 8 / 6].to_vec(),
        3 => whole[2..(value.len() + 1) * 8 / 6].to_vec(),
        4 => whole[3..(value.len() + 2) * 8 / 6].to_vec(),
        _ => whole,
    }
}

#[test]
fn no_form_of_a_secret_passes_however_the_stream_is_cut() {
    let alphabet: Vec<char> = "abcXYZ0189 '\"\\$&/+-_=%!{}<é\u{1f4a9}\t".chars().collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for case in 0..1_000 {
        let mut secret = String::new();
        let length = 6 + random.below(30);
        while secret.len() < length {
            secret.push(alphabet[random.below(alphabet.len())]);
        }
        let masker = masker(&[secret.as_bytes()]);
        for kind in 0..9 {
            let telling = telling(kind, secret.as_bytes());
            let mut text = vec![b'.'; random.below(5)];
            text.extend(encoded(kind, secret.as_bytes()));
            text.extend(vec![b'.'; random.below(5)]);
            for _ in 0..10 {
                let out = in_chunks(&masker, &text, &mut random);
                assert!(!contains(&out, &telling), "{case} {kind}: {secret:?}");
                assert!(contains(&out, b"***"), "{case} {kind}: {secret:?}");
            }
        }
    }
}

#[test]
fn the_cut_changes_nothing() {
    let mut random = Random(77);
    let masker = masker(&[b"abcabc", b"bcabcabb", b"aaaaaa", b"ab\ncd\nabcabcabcabca"]);
    for _ in 0..5_000 {
        let text: Vec<u8> = (0..80).map(|_| b"abcab\n"[random.below(6)]).collect();
        let whole = masker.mask(&text).into_owned();
        let cut = in_chunks(&masker, &text, &mut random);
        assert_eq!(cut, whole, "{}", text.escape_ascii());
        assert!(!contains(&whole, b"abcabc") && !contains(&whole, b"aaaaaa"));
    }
}

#[test]
fn overlapping_secrets_leave_no_rest() {
    let masker = masker(&[b"abcdefgh", b"efghijkl"]);
    assert_eq!(masker.mask(b"<abcdefghijkl>").as_ref(), b"<***>");
}

#[test]
fn each_line_of_a_secret_of_many_lines_is_one() {
    let masker = masker(&[b"-----BEGIN\nMIIEpAIBAAKCAQEA\r\n}\nlastline9\n"]);
    assert_eq!(masker.mask_text("> MIIEpAIBAAKCAQEA <"), "> *** <");
    assert_eq!(masker.mask_text("lastline9"), "***");
    assert_eq!(masker.mask_text("{}"), "{}");
}

#[test]
fn what_cannot_begin_a_secret_is_not_held_back() {
    let masker = masker(&[b"hunter2hunter2"]);
    let (mut stream, mut out) = (masker.stream(), Vec::new());
    stream.push(b"progress 10%", &mut out);
    assert_eq!(out, b"progress 10%");
    stream.push(b" hunt", &mut out);
    assert_eq!(out, b"progress 10% ");
    stream.push(b"ing", &mut out);
    assert_eq!(out, b"progress 10% hunting");
}

#[test]
fn a_secret_too_short_is_refused_and_nothing_shows_a_value() {
    let error = Masker::new([("PIN", &b"12345"[..])]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("12345"));
    assert!(check_secret("EMPTY", b"\n").is_ok());
    let masker = masker(&[b"swordfish"]);
    let mut stream = masker.stream();
    stream.push(b"swordf", &mut Vec::new());
    assert!(!format!("{masker:?} {stream:?}").contains("sword"));
}

#[test]
fn without_secrets_nothing_is_copied() {
    assert!(matches!(Masker::none().mask(b"abc"), Cow::Borrowed(_)));
    assert!(matches!(
        masker(&[b"abcdef"]).mask(b"abc"),
        Cow::Borrowed(_)
    ));
}
