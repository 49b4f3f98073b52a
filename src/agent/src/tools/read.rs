//! `read_file`.

use super::arguments::CheckedArguments;
use super::reply::{ToolError, cut, with_notices};
use super::root::{FileRoot, read_whole};

pub(super) fn read_file(root: &FileRoot, arguments: CheckedArguments) -> Result<String, ToolError> {
    let path = arguments.text("path");
    let content = read_whole(root.open_file(path)?, root.bounds(), path)?;
    if content.contains(&0) {
        let size = content.len();
        return Err(ToolError::Arguments(format!(
            "`{path}` is binary ({size} bytes, with NUL bytes among them): there is no text to show"
        )));
    }
    let text = String::from_utf8_lossy(&content);
    // Only what had to be changed is owned.
    let replaced = matches!(text, std::borrow::Cow::Owned(_));
    let offset = arguments.number("offset").unwrap_or(1);
    let limit = arguments.number("limit").unwrap_or(usize::MAX);
    let total = text.split_inclusive('\n').count();
    if offset > total.max(1) {
        return Err(ToolError::Arguments(format!(
            "`{path}` has {total} lines: `offset` {offset} is beyond the last"
        )));
    }

    let mut reply = String::new();
    let bytes_max = root.bounds().reply_bytes_max;
    let mut next = offset;
    let mut notices = Vec::new();
    for line in text.split_inclusive('\n').skip(offset - 1).take(limit) {
        if reply.len() + line.len() > bytes_max {
            // A line that never fits would be asked for again and again.
            if next == offset {
                reply.push_str(cut(line, bytes_max));
                notices.push(format!(
                    "line {next} has {} bytes and is cut: grep or a command shows other parts of it",
                    line.len()
                ));
                next += 1;
            }
            break;
        }
        reply.push_str(line);
        next += 1;
    }
    if total == 0 {
        notices.push("the file is empty".to_owned());
    } else if next <= total {
        notices.push(format!(
            "lines {offset} to {} of {total}: go on with offset {next}",
            next - 1
        ));
    }
    if replaced {
        notices
            .push("the file is not UTF-8: what could not be read is shown as \u{fffd}".to_owned());
    }
    Ok(with_notices(reply, &notices))
}
