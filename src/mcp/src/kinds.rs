//! What files beside a skill are, as MIME types.

/// What is no text, whatever it holds, by the ending of its name.
const BINARY: [(&str, &str); 14] = [
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("zip", "application/zip"),
];

/// What is no text and does not say by its name what it is.
const UNKNOWN: &str = "application/octet-stream";

fn ending(path: &str) -> String {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ending.to_ascii_lowercase()
}

/// The type of what is no text, where the name alone says it.
pub(super) fn binary(path: &str) -> Option<&'static str> {
    let ending = ending(path);
    let found = BINARY.iter().find(|(known, _)| *known == ending);
    found.map(|(_, kind)| *kind)
}

/// A text's type.
pub(super) fn text(path: &str) -> &'static str {
    match ending(path).as_str() {
        "md" => "text/markdown",
        "json" => "application/json",
        _ => "text/plain",
    }
}

/// The type of a file that holds `bytes`.
pub(super) fn of(path: &str, bytes: &[u8]) -> &'static str {
    match binary(path) {
        Some(kind) => kind,
        None if std::str::from_utf8(bytes).is_ok() => text(path),
        None => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_no_text_and_else_what_it_holds_does() {
        for (path, bytes, expected) in [
            ("a.PNG", b"text".as_slice(), "image/png"),
            ("bin.dat", b"\xff\x00\x01", "application/octet-stream"),
            ("odd.md", b"\xff", "application/octet-stream"),
            ("ref/a.md", b"x", "text/markdown"),
            ("a.json", b"{}", "application/json"),
            ("LICENSE", b"", "text/plain"),
        ] {
            assert_eq!(of(path, bytes), expected, "{path}");
        }
    }
}
