//! `list_directory` and `glob`.

use std::ffi::OsString;
use std::ops::ControlFlow;

use rustix::fs::{AtFlags, FileType};

use super::arguments::CheckedArguments;
use super::patterns::path_pattern;
use super::reply::RefusedPath;
use super::reply::{ReplyLines, ToolError};
use super::root::FileRoot;
use super::walk::{DirectoryWalk, entries, shown_path};

pub(super) fn list_directory(
    root: &FileRoot,
    arguments: CheckedArguments,
) -> Result<String, ToolError> {
    let path = arguments.text("path");
    let directory = root.open_directory(path)?;
    let bounds = root.bounds();
    let (mut entries, complete) = entries(&directory.file, bounds.visited_max)
        .map_err(|source| RefusedPath::of(path, source))?;
    let stat_of =
        |name: &OsString| rustix::fs::statat(&directory.file, name, AtFlags::SYMLINK_NOFOLLOW);
    entries.retain(|(name, _)| {
        root.permit(&directory.path.join(name), path).is_ok()
            && stat_of(name).is_ok_and(|stat| root.permit_found(&stat, path).is_ok())
    });
    let mut lines = ReplyLines::new(bounds.reply_bytes_max, bounds.entries_max);
    let mut notices = Vec::new();
    for (index, (name, kind)) in entries.iter().enumerate() {
        let shown = name.to_string_lossy();
        let line = match (*kind, stat_of(name)) {
            (FileType::Directory, _) => format!("{shown}/"),
            (FileType::RegularFile, Ok(stat)) => format!("{shown} ({} bytes)", stat.st_size),
            (FileType::RegularFile, Err(_)) => shown.into_owned(),
            (FileType::Symlink, _) => format!("{shown} (symbolic link)"),
            _ => format!("{shown} (not a regular file)"),
        };
        if !lines.push(&line) {
            notices.push(format!(
                "{index} of {} entries are shown: use glob with a pattern to find others",
                entries.len()
            ));
            break;
        }
    }
    if !complete {
        notices.push("the directory has more entries than were read".to_owned());
    }
    Ok(lines.finish("the directory is empty", &notices))
}

pub(super) fn glob(root: &FileRoot, arguments: CheckedArguments) -> Result<String, ToolError> {
    let pattern = path_pattern(arguments.text("pattern"), false)
        .map_err(|problem| ToolError::Arguments(format!("`pattern` is not usable: {problem}")))?;
    let start = arguments.text("path");
    let directory = root.open_directory(start)?;
    let bounds = root.bounds();
    let mut lines = ReplyLines::new(bounds.reply_bytes_max, bounds.entries_max);
    let mut full = false;
    let mut notices = DirectoryWalk::run(root, &directory, &mut |visited| {
        if !pattern.is_match(visited.path) {
            return ControlFlow::Continue(());
        }
        if lines.push(&shown_path(start, visited.path)) {
            return ControlFlow::Continue(());
        }
        full = true;
        ControlFlow::Break(())
    });
    if full {
        notices.push("there are more: narrow `pattern` or `path`".to_owned());
    }
    Ok(lines.finish("no file matches", &notices))
}
