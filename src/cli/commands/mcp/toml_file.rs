//! Our table at the end of a TOML file. The file is not parsed, only looked through for a table that is ours: where
//! one could be, nothing is written.

use super::json_file::Change;

/// Our table.
pub(super) const TABLE: &str =
    "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"mcp\"]\n";

/// The text with our table.
pub(super) fn with_table(text: &str) -> Change {
    let lines: Vec<String> = text.lines().map(bare).collect();
    let ours = TABLE.lines().map(bare).collect::<Vec<_>>();
    let is_ours = |line: &String| {
        let named = line
            .trim_start_matches('[')
            .strip_prefix("mcp_servers.workerctl");
        named.is_some_and(|rest| rest.starts_with(['.', '=', ']']))
    };
    // A table of all servers that is written in one line takes none behind it.
    let is_closed = |line: &String| line.starts_with("mcp_servers=");
    let mut above = "";
    let within = lines.iter().any(|line| {
        if line.starts_with('[') {
            above = line;
        }
        above == "[mcp_servers]"
            && (line.starts_with("workerctl=") || line.starts_with("workerctl."))
    });
    let at = lines.iter().position(|line| *line == ours[0]);
    if let Some(at) = at {
        let own = lines[at..].iter().filter(|line| !line.is_empty());
        let own: Vec<&String> = own
            .enumerate()
            .take_while(|(nth, line)| *nth == 0 || !line.starts_with('['))
            .map(|(_, line)| line)
            .collect();
        let alone = lines.iter().filter(|line| is_ours(line)).count() == 1;
        if alone && own.iter().copied().eq(ours.iter()) {
            return Change::Present;
        }
    }
    if within || lines.iter().any(|line| is_ours(line) || is_closed(line)) {
        return Change::Unclear("it has servers in a form that is not rewritten".to_owned());
    }
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Change::Written {
        text: format!("{text}{gap}{TABLE}"),
        replaced: None,
    }
}

/// A line without blanks, quotes and its comment, so that all ways to write a key are one.
fn bare(line: &str) -> String {
    let line = line.split('#').next().unwrap_or_default();
    line.chars()
        .filter(|sign| !sign.is_whitespace() && !['"', '\''].contains(sign))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        match with_table(text) {
            Change::Written { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_table_stands_behind_all_that_is_there() {
        assert_eq!(written(""), TABLE);
        for text in [
            "model = \"x\"",
            "# [mcp_servers.workerctl]\n",
            "[mcp_servers.other]\ncommand = \"workerctl\"\n",
            "[mcp_servers.workerctl2]\n",
            "[mcp_servers]\n",
        ] {
            let all = written(text);
            assert!(
                all.starts_with(text) && all.ends_with(&format!("\n\n{TABLE}")),
                "{all}"
            );
        }
    }

    #[test]
    fn one_that_is_there_stays() {
        for text in [
            TABLE.to_owned(),
            written("model = \"x\"\n"),
            format!("{TABLE}\n[mcp_servers.other]\ncommand = \"a\"\n"),
            "[ mcp_servers . \"workerctl\" ] # ours\ncommand='workerctl'\n\nargs=[ \"mcp\" ]\n"
                .to_owned(),
        ] {
            assert!(matches!(with_table(&text), Change::Present), "{text}");
        }
        for text in [
            "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"-C\", \"/a\", \"mcp\"]\n",
            "[mcp_servers.workerctl.env]\nA = \"b\"\n",
            "mcp_servers.workerctl.command = \"a\"\n",
            "mcp_servers = {}\n",
            "[mcp_servers]\nworkerctl = {command = \"a\"}\n",
            "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"mcp\"]\n[mcp_servers.workerctl.env]\nA = \"b\"\n",
        ] {
            assert!(matches!(with_table(text), Change::Unclear(_)), "{text}");
        }
    }
}
