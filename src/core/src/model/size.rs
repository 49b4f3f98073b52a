//! Amounts of bytes as people write them: `512MiB`, `1GiB`, `2GB`.

/// Why a text is not an amount of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not digits followed by a unit.
    #[error("expected a size such as `512MiB` or `1GiB`")]
    Shape,
    /// More than can be counted.
    #[error("a size must be less than 16 EiB")]
    TooLarge,
}

/// Reads an amount of bytes; without a unit it is bytes.
///
/// # Errors
/// The text is no amount of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(SizeError::Shape),
    };
    if number.is_empty() {
        return Err(SizeError::Shape);
    }
    let number: u64 = number.parse().map_err(|_| SizeError::TooLarge)?;
    number.checked_mul(factor).ok_or(SizeError::TooLarge)
}

/// Writes an amount for people: `512 B`, `1.2 KiB`, `3.0 GiB`.
pub fn show_bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1_024 {
        return format!("{count} B");
    }
    let mut unit = 0;
    // Tenths, so that no floating point is needed.
    let mut tenths = u128::from(count) * 10 / 1_024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("4096", Ok(4_096)),
            ("12 B", Ok(12)),
            ("2kB", Ok(2_000)),
            ("512MiB", Ok(536_870_912)),
            ("1 GiB", Ok(1_073_741_824)),
            ("2GB", Ok(2_000_000_000)),
            ("1TiB", Ok(1_099_511_627_776)),
            ("", Err(SizeError::Shape)),
            ("GiB", Err(SizeError::Shape)),
            ("1.5GiB", Err(SizeError::Shape)),
            ("-1", Err(SizeError::Shape)),
            ("1G", Err(SizeError::Shape)),
            ("99999999999999999999", Err(SizeError::TooLarge)),
            ("99999999TiB", Err(SizeError::TooLarge)),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
    }
}
