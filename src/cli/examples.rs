//! The example workers, as `init` writes them.

/// One file of an example.
pub(crate) struct Example {
    /// Path relative to the workspace.
    pub(crate) path: &'static str,
    /// Content.
    pub(crate) text: &'static str,
}

macro_rules! examples {
    ($($path:literal),* $(,)?) => {
        &[$(Example { path: concat!("workers/", $path), text: include_str!(concat!("../../workers/", $path)) }),*]
    };
}

/// Every file below `workers/` of the source tree.
pub(crate) const EXAMPLES: &[Example] = examples![
    "README.md",
    "doc-keeper/skills/broken-links.md",
    "doc-keeper/skills/broken-links.sh",
    "doc-keeper/worker.yaml",
    "host-watch/worker.yaml",
    "legible.sed",
    "news-writer/skills/weekly-news.md",
    "news-writer/worker.yaml",
    "repo-steward/skills/changelog-draft.md",
    "repo-steward/skills/todo-inventory.md",
    "repo-steward/skills/todo-inventory.sh",
    "repo-steward/worker.yaml",
];

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn files_below(directory: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, found);
            } else {
                // `init` writes no executable files.
                assert_eq!(
                    path.metadata().unwrap().permissions().mode() & 0o111,
                    0,
                    "{path:?}"
                );
                let root = Path::new(env!("CARGO_MANIFEST_DIR"));
                found.push(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }

    #[test]
    fn the_table_holds_exactly_the_folder() {
        let mut present = Vec::new();
        files_below(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("workers"),
            &mut present,
        );
        present.sort();
        let listed: Vec<&str> = EXAMPLES.iter().map(|example| example.path).collect();
        assert_eq!(listed, present);
    }
}
