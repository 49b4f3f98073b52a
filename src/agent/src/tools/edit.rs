//! `edit_file`.

use rustix::io::Errno;

use super::arguments::CheckedArguments;
use super::reply::RefusedPath;
use super::reply::ToolError;
use super::root::{FileRoot, open_regular, read_whole};
use super::write::{Target, check_size};

pub(super) fn edit_file(root: &FileRoot, arguments: CheckedArguments) -> Result<String, ToolError> {
    let path = arguments.text("path");
    let (old, new) = (arguments.text("old_text"), arguments.text("new_text"));
    if old.is_empty() {
        let text = "`old_text` is empty: give the text to replace, or use write_file";
        return Err(ToolError::Arguments(text.to_owned()));
    }
    if old == new {
        let text = "`old_text` and `new_text` are the same: there is nothing to change";
        return Err(ToolError::Arguments(text.to_owned()));
    }
    let place = root.locate(path)?;
    let (Some(above), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(RefusedPath::of(path, Errno::ISDIR).into());
    };
    let directory = root.open_directory_at(above, path)?;
    let target = Target::find(root, &directory, name, path)?;
    let file = open_regular(&directory.file, name, path)?;
    let content = String::from_utf8(read_whole(file, root.bounds(), path)?).map_err(|_| {
        ToolError::Arguments(format!(
            "`{path}` is not UTF-8: edit it with a command that works on bytes"
        ))
    })?;
    let count = occurrences(&content, old);
    if count == 0 {
        return Err(ToolError::Arguments(not_found(path, &content, old)));
    }
    if count > 1 && !arguments.flag("replace_all") {
        return Err(ToolError::Arguments(format!(
            "`old_text` occurs {count} times in `{path}`: add surrounding lines until it occurs once, or set \
             `replace_all`"
        )));
    }
    // Before the new content is made: a short text that occurs often may become a very long one.
    let replaced = content.matches(old).count();
    check_size(
        root,
        path,
        (content.len() - replaced * old.len()).saturating_add(replaced.saturating_mul(new.len())),
    )?;
    target.replace(content.replace(old, new).as_bytes())?;
    let times = if replaced == 1 { "time" } else { "times" };
    Ok(format!(
        "replaced `old_text` {replaced} {times} in `{path}`"
    ))
}

/// How often a text occurs, where "aa" occurs twice in "aaa": either could be meant.
fn occurrences(content: &str, text: &str) -> usize {
    let apart = content.matches(text).count();
    let overlap = apart == 1 && content.find(text) != content.rfind(text);
    apart + usize::from(overlap)
}

fn not_found(path: &str, content: &str, old: &str) -> String {
    let remedy = if content.contains("\r\n") && old.replace("\r\n", "\n").contains('\n') {
        "its lines end in CR LF, so that `old_text` has to have `\\r\\n` too"
    } else {
        "read the file and copy the text exactly, blanks included"
    };
    format!("`old_text` does not occur in `{path}`: {remedy}")
}
