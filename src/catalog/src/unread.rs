//! Files that look like definitions and are not read, because of their name or their directory.

use super::entries::Entry;
use super::open::Root;
use super::report::Report;
use super::source::whole_file;
use crate::model::config::CONFIG_FILE;

/// Code of a file that looks like a definition and is not read.
const UNREAD: &str = "worker-file-unread";

/// Another name of the configuration, which other programs would accept.
const CONFIG_YML: &str = "workerctl.yml";

/// Returns true if a line of a file begins with one of these keys.
pub(crate) fn has_key(root: &Root, file: &str, keys: &[&str]) -> bool {
    let bytes = root.read(file).unwrap_or_default();
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| keys.iter().any(|key| line.starts_with(key.as_bytes())))
}

/// Warns of a configuration with the wrong ending.
pub(crate) fn report_config(root: &Root, report: &mut Report) {
    if !root.path().join(CONFIG_YML).is_file() {
        return;
    }
    let hint = if root.path().join(CONFIG_FILE).exists() {
        format!("move its keys to `{CONFIG_FILE}`, and remove it")
    } else {
        format!("rename it to `{CONFIG_FILE}`")
    };
    let message = format!("the file is not read: the configuration is `{CONFIG_FILE}`");
    report.warning(UNREAD, whole_file(CONFIG_YML), message, &hint);
}

/// Warns of a directory `worker` or `skill` with definitions, which are read from `workers` and `skills` only.
pub(crate) fn report_singular(root: &Root, path: &str, listed: &[Entry], report: &mut Report) {
    for entry in listed {
        let below = format!("{path}/{}", entry.name);
        let has = |name: &str| root.path().join(&below).join(name).is_file();
        let file = match path.ends_with("worker") {
            true if has("worker.yaml") => format!("{below}/worker.yaml"),
            false if has("SKILL.md") => format!("{below}/SKILL.md"),
            false if has_frontmatter(root, &below) => below,
            _ => continue,
        };
        let expected = file.replacen(path, &format!("{path}s"), 1);
        let message = format!("the file is not read: it is in `{path}`, not in `{path}s`");
        report.warning(
            UNREAD,
            whole_file(&file),
            message,
            &format!("move it to `{expected}`"),
        );
    }
}

fn has_frontmatter(root: &Root, file: &str) -> bool {
    let is_markdown = file.to_lowercase().ends_with(".md");
    is_markdown && root.read(file).is_ok_and(|bytes| bytes.starts_with(b"---"))
}

/// Warns of a skill in a YAML file of `skills`.
pub(crate) fn report_skill(root: &Root, file: &str, report: &mut Report) {
    let Some((stem, "yaml" | "yml")) = file.rsplit_once('.') else {
        return;
    };
    if has_key(root, file, &["id:", "skill:", "run:"]) {
        let message = "the file is not read: a skill is defined in worker.yaml, or in a Markdown file of `skills`".to_owned();
        let hint = format!("rename it to `{stem}.md`, with a line `---` before and after its keys");
        report.warning(UNREAD, whole_file(file), message, &hint);
    }
}
