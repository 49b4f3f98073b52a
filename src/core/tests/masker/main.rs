//! Random secrets in every form that programs give them, among other text and cut anywhere: none passes the masker, and
//! nothing else is changed. The encoders here share nothing with those of the masker.
#![expect(
    clippy::unwrap_used,
    reason = "what prepares a test fails by panicking"
)]

use std::borrow::Cow;
use std::fmt::Write;

use workerctl_core::thread::mask::Masker;

/// A small generator: the same cases on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A text of at least so many bytes.
    fn text(&mut self, alphabet: &[char], bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            text.push(*self.one(alphabet));
        }
        text
    }

    /// A secret as people have them: a token, a password, or text of several lines such as a key.
    fn secret(&mut self) -> String {
        const TOKEN: &str = "abcdefXYZ0189_-";
        const PASSWORD: &str = "abXY09 '\"\\$&/+-_=%!{}<>#;é\u{1f4a9}\t`";
        const KEY: &str = "ABCDwxyz0189+/";
        let bytes = 6 + self.below(60);
        let token: Vec<char> = TOKEN.chars().collect();
        let password: Vec<char> = PASSWORD.chars().collect();
        let key: Vec<char> = KEY.chars().collect();
        match self.below(4) {
            0 | 1 => self.text(&token, bytes),
            2 => self.text(&password, bytes),
            _ => {
                let lines = 1 + self.below(4);
                let lines: Vec<String> = (0..lines).map(|_| self.text(&key, 48)).collect();
                lines.join("\n")
            }
        }
    }
}

/// Six bits of a byte string at a time, by arithmetic on bits.
fn sixes(bytes: &[u8], url: bool) -> String {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let count = (bytes.len() * 8).div_ceil(6);
    let digits = (0..count).map(|six| (0..6).fold(0u8, |all, at| all << 1 | bit(six * 6 + at)));
    digits
        .map(|digit| match (digit, url) {
            (0..=25, _) => char::from(b'A' + digit),
            (26..=51, _) => char::from(b'a' + digit - 26),
            (52..=61, _) => char::from(b'0' + digit - 52),
            (62, false) => '+',
            (62, true) => '-',
            (_, false) => '/',
            (_, true) => '_',
        })
        .collect()
}

fn escaped(text: &str, escape: impl Fn(char) -> Option<String>) -> String {
    text.chars()
        .map(|c| escape(c).unwrap_or_else(|| c.to_string()))
        .collect()
}

fn percent(text: &str, kept: &str, upper: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        match (
            c.is_ascii_alphanumeric() || byte.is_ascii() && kept.contains(c),
            upper,
        ) {
            (true, _) => out.push(c),
            (false, true) => write!(out, "%{byte:02X}").unwrap(),
            (false, false) => write!(out, "%{byte:02x}").unwrap(),
        }
    }
    out
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As a program writes text in ASCII alone, such as Python's `json.dumps`.
fn in_ascii_json(text: &str) -> String {
    escaped(&in_json(text), |c| {
        let mut units = [0u16; 2];
        let units: Vec<String> = c
            .encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        (!c.is_ascii()).then(|| units.concat())
    })
}

fn in_lines(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    let lines: Vec<String> = chars
        .chunks(width)
        .map(|line| line.iter().collect())
        .collect();
    lines.join("\n")
}

/// Base64 of the secret among other text, padded or not, in one line or in several.
fn base64_form(
    url: bool,
    broken: bool,
    secret: &str,
    random: &mut Random,
) -> (String, Vec<String>) {
    let before = &"some text"[..random.below(5)];
    let after = &"behind it"[..random.below(5)];
    let mut text = sixes(format!("{before}{secret}{after}").as_bytes(), url);
    let from = (before.len() * 8).div_ceil(6);
    let to = (before.len() + secret.len()) * 8 / 6;
    let own = text[from..to].to_owned();
    if random.below(2) == 0 {
        text += &"=="[..(4 - text.len() % 4) % 4 % 3];
    }
    if !broken {
        return (text, vec![own]);
    }
    let width = *random.one(&[64, 76]);
    let lines = from / width..=(to - 1) / width;
    let pieces = lines.map(|line| &text[from.max(line * width)..to.min((line + 1) * width)]);
    // A rest of a line with fewer characters than six bytes take is none of it.
    let pieces = pieces
        .filter(|piece| piece.len() >= 12)
        .map(str::to_owned)
        .collect();
    (in_lines(&text, width), pieces)
}

/// A form of `secret` as it stands in a text, and what of it must not be found afterwards.
fn form(kind: usize, secret: &str, random: &mut Random) -> (String, Vec<String>) {
    let whole = |text: String| (text.clone(), vec![text]);
    let hex = |upper: bool| {
        let bytes = secret.bytes();
        bytes.fold(String::new(), |mut all, byte| {
            if upper {
                write!(all, "{byte:02X}").unwrap();
            } else {
                write!(all, "{byte:02x}").unwrap();
            }
            all
        })
    };
    match kind {
        0 => whole(secret.to_owned()),
        1..=4 => base64_form(kind.is_multiple_of(2), kind > 2, secret, random),
        5 => whole(hex(false)),
        6 => whole(hex(true)),
        7 => {
            let text = hex(false);
            let lines = in_lines(&text, 60);
            let pieces = lines
                .lines()
                .filter(|line| line.len() >= 12)
                .map(str::to_owned)
                .collect();
            (lines, pieces)
        }
        8 => whole(percent(secret, "-_.~", true)),
        9 => whole(percent(secret, "-_.~", false)),
        10 => whole(percent(secret, "-_.!~*'()", true)),
        11 => whole(percent(secret, "-_.~", true).replace("%20", "+")),
        12 => whole(in_json(secret)),
        13 => whole(in_ascii_json(secret)),
        14 => whole(in_json(secret).replace('/', "\\/")),
        15 => whole(in_json(&in_json(secret))),
        16 => whole(in_json(&in_ascii_json(secret))),
        17 => whole(secret.replace('\'', r"'\''")),
        18 => whole(secret.replace('\'', r#"'"'"'"#)),
        19 => whole(escaped(secret, |c| {
            "\"\\$`!".contains(c).then(|| format!("\\{c}"))
        })),
        // One line of several.
        _ => {
            let lines: Vec<&str> = secret.lines().filter(|line| line.len() >= 6).collect();
            whole(
                if lines.is_empty() {
                    secret
                } else {
                    *random.one(&lines)
                }
                .to_owned(),
            )
        }
    }
}

const KINDS: usize = 21;

fn in_chunks(masker: &Masker, bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut stream, mut out, mut rest) = (masker.stream(), Vec::new(), bytes);
    let longest = *random.one(&[1, 2, 7, 64, 4_096]);
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(1 + random.below(rest.len().min(longest)));
        stream.push(chunk, &mut out);
        rest = tail;
    }
    stream.finish(&mut out);
    out
}

/// Up to four secrets, some of which overlap with others or lie in them.
fn secrets(random: &mut Random) -> Vec<String> {
    let mut found = vec![random.secret()];
    for _ in 0..random.below(4) {
        let first = found[0].clone();
        let middle = first.floor_char_boundary(first.len() / 2);
        found.push(match random.below(4) {
            0 => format!("{first}{}", random.secret()),
            1 => format!("{}{}", &first[middle..], random.secret()),
            2 if first.len() - middle >= 6 => first[middle..].to_owned(),
            _ => random.secret(),
        });
    }
    found
}

/// Texts that each masker is tried with: to make one takes most of the time.
const TEXTS: usize = 8;

#[test]
fn no_form_of_any_secret_passes_and_nothing_else_is_changed() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test is told how long it may take"
    )]
    let asked = std::env::var("WORKERCTL_TEST_ROUNDS").ok();
    let rounds: usize = asked.and_then(|text| text.parse().ok()).unwrap_or(800);
    for round in 0..rounds.div_ceil(TEXTS) {
        let mut random = Random((round as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let secrets = secrets(&mut random);
        let masker = Masker::new(secrets.iter().map(|one| ("S", one.as_bytes()))).unwrap();
        for _ in 0..TEXTS {
            check(round, &masker, &secrets, &mut random);
        }
    }
}

/// One text with some of the secrets, and one without any.
fn check(round: usize, masker: &Masker, secrets: &[String], random: &mut Random) {
    // Nothing of this is part of any form, so it stands between them as it was.
    let quiet: Vec<char> = "~ghijk.\n|".chars().collect();
    let noise = random.below(200);
    let noise = random.text(&quiet, noise);
    let kept = masker.mask_text(&noise);
    assert!(matches!(kept, Cow::Borrowed(_)), "{round}: {noise:?}");

    let (mut text, mut hidden, mut between) = (String::new(), Vec::new(), Vec::new());
    for _ in 0..=random.below(4) {
        let secret = random.one(secrets).clone();
        let (form, pieces) = form(random.below(KINDS), &secret, random);
        let length = random.below(9);
        let apart = format!("|{}|", random.text(&quiet, length));
        text += &apart;
        between.push(apart);
        text += &form;
        hidden.extend(pieces);
    }
    let cut = in_chunks(masker, text.as_bytes(), random);
    let whole = masker.mask(text.as_bytes());
    assert_eq!(cut, whole.as_ref(), "{round}: {secrets:?}");
    let shown = String::from_utf8_lossy(&cut);
    for piece in &hidden {
        assert!(
            !shown.contains(piece),
            "{round}: {piece:?} of {secrets:?} is in {shown:?}"
        );
    }
    let mut rest = shown.as_ref();
    for apart in &between {
        let at = rest.find(apart);
        assert!(
            at.is_some(),
            "{round}: {apart:?} is not in {rest:?} of {text:?}"
        );
        rest = &rest[at.unwrap_or(0) + apart.len()..];
    }
}
