//! Names that tools have in lists such as `allowed-tools`, of whichever program the list was written for.

/// What an item of a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolName {
    /// This built-in tool.
    BuiltIn(&'static str),
    /// Tools of a server of the Model Context Protocol.
    Server,
    /// A tool of other programs that does not exist here.
    Elsewhere,
    /// No tool that is known; it may be one of a tool set.
    Unknown,
}

/// Our tools, each with the names that it has in other programs.
const BUILT_IN: [(&str, &[&str]); 11] = [
    ("read_file", &["read", "view", "readfile"]),
    ("write_file", &["write", "create_file", "writefile"]),
    (
        "edit_file",
        &[
            "edit",
            "multiedit",
            "replace",
            "patch",
            "apply_patch",
            "str_replace",
        ],
    ),
    ("list_directory", &["ls", "list", "list_dir", "list_files"]),
    ("glob", &["find_files", "file_search"]),
    (
        "grep",
        &["search_file_content", "grep_files", "grep_search"],
    ),
    (
        "bash",
        &[
            "shell",
            "run_shell_command",
            "local_shell",
            "exec_command",
            "shell_command",
            "execute_command",
        ],
    ),
    ("loadSkillFile", &[]),
    ("submit_output", &[]),
    ("list_skills", &[]),
    ("use_skill", &[]),
];

/// Tools of Claude Code, Codex, Gemini, Qwen and opencode that do not exist here.
const ELSEWHERE: [&str; 72] = [
    "activate_skill",
    "agent",
    "ask_user",
    "askuserquestion",
    "bashoutput",
    "batch",
    "browser",
    "close_agent",
    "codebase_investigator",
    "codesearch",
    "croncreate",
    "crondelete",
    "cronlist",
    "enter_plan_mode",
    "enterplanmode",
    "enterworktree",
    "exit_plan_mode",
    "exitplanmode",
    "exitworktree",
    "google_web_search",
    "js_repl",
    "killbash",
    "killshell",
    "listmcpresourcestool",
    "lsp",
    "memory",
    "monitor",
    "multi_tool_use",
    "notebookedit",
    "notebookread",
    "plan_enter",
    "plan_exit",
    "pushnotification",
    "question",
    "read_many_files",
    "readmcpresourcetool",
    "remotetrigger",
    "request_user_input",
    "resume_agent",
    "save_memory",
    "send_input",
    "sendmessage",
    "skill",
    "slashcommand",
    "spawn_agent",
    "structuredoutput",
    "task",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskoutput",
    "taskstop",
    "taskupdate",
    "teamcreate",
    "teamdelete",
    "todo_write",
    "todoread",
    "todowrite",
    "toolsearch",
    "update_plan",
    "view_image",
    "wait_agent",
    "web_fetch",
    "web_search",
    "webfetch",
    "websearch",
    "write_stdin",
    "write_todos",
    "computer",
    "fetch",
    "think",
    "wait",
];

/// Returns the tool that a misspelt name most likely means: as it is called here, in other programs in lower case, or,
/// if the name begins with a capital letter, as Claude Code writes it.
pub fn similar_tool(item: &str) -> Option<String> {
    let name = item.split('(').next().unwrap_or(item).trim();
    let wanted = name.to_lowercase();
    let own = BUILT_IN.iter().flat_map(|(own, others)| {
        let others = others.iter().copied();
        std::iter::once(*own).chain(others)
    });
    let (_, found) = own
        .chain(ELSEWHERE)
        .map(|known| (strsim::osa_distance(&wanted, &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= if known.len() >= 7 { 2 } else { 1 })
        .min_by_key(|(distance, _)| *distance)?;
    let camel = [
        ("websearch", "WebSearch"),
        ("webfetch", "WebFetch"),
        ("todowrite", "TodoWrite"),
        ("multiedit", "MultiEdit"),
        ("notebookedit", "NotebookEdit"),
    ];
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Some(found.to_owned());
    }
    let camel = camel.iter().find(|(plain, _)| *plain == found);
    Some(camel.map_or_else(
        || {
            let (first, rest) = found.split_at(1);
            first.to_ascii_uppercase() + rest
        },
        |(_, camel)| (*camel).to_owned(),
    ))
}

/// Reads an item such as `Read`, `Bash(git:*)` or `mcp__server__tool`. Case does not count.
///
/// # Errors
/// It is no such item: says why.
pub fn tool_of_item(item: &str) -> Result<ToolName, &'static str> {
    let item = item.trim();
    let (name, pattern) = match item.split_once('(') {
        None => (item, None),
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').ok_or("the bracket is not closed")?;
            (name, Some(inner.trim()))
        }
    };
    if pattern == Some("") {
        return Err("the brackets are empty");
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if let Some(server) = name.strip_prefix("mcp__") {
        let is_named = !server.is_empty() && server.chars().all(|c| is_name(c) || c == '*');
        return match pattern {
            Some(_) => Err("tools of servers have no patterns"),
            None if is_named => Ok(ToolName::Server),
            None => Err("a server's tool is written `mcp__server__tool`"),
        };
    }
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("it is no name of a tool");
    }
    Ok(tool_named(name))
}

fn tool_named(name: &str) -> ToolName {
    let is = |other: &&str| other.eq_ignore_ascii_case(name);
    let has_name = |(own, others): &&(&str, &[&str])| is(own) || others.iter().any(&is);
    match BUILT_IN.iter().find(has_name) {
        Some((own, _)) => ToolName::BuiltIn(own),
        None if ELSEWHERE.iter().any(is) => ToolName::Elsewhere,
        None => ToolName::Unknown,
    }
}

/// An item with our name of its tool.
pub fn with_own_name(item: &str) -> String {
    let item = item.trim();
    let name = item.split('(').next().unwrap_or(item);
    match tool_of_item(item) {
        Ok(ToolName::BuiltIn(own)) => format!("{own}{}", &item[name.len()..]),
        _ => item.to_owned(),
    }
}

/// The names of the tools that exist here, for a message.
pub fn known_names() -> String {
    let names = BUILT_IN.iter().map(|(own, _)| format!("`{own}`"));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_programs_are_known() {
        let table = [
            ("Read", Ok(ToolName::BuiltIn("read_file"))),
            ("read", Ok(ToolName::BuiltIn("read_file"))),
            ("Bash(git add:*)", Ok(ToolName::BuiltIn("bash"))),
            ("run_shell_command(ls)", Ok(ToolName::BuiltIn("bash"))),
            ("apply_patch", Ok(ToolName::BuiltIn("edit_file"))),
            ("replace", Ok(ToolName::BuiltIn("edit_file"))),
            ("LS", Ok(ToolName::BuiltIn("list_directory"))),
            ("WebFetch(domain:example.org)", Ok(ToolName::Elsewhere)),
            ("TodoWrite", Ok(ToolName::Elsewhere)),
            ("mcp__server__tool", Ok(ToolName::Server)),
            ("mcp__server__*", Ok(ToolName::Server)),
            ("Raed", Ok(ToolName::Unknown)),
            ("Bash(git", Err("the bracket is not closed")),
            ("Bash()", Err("the brackets are empty")),
            ("Bash git", Err("it is no name of a tool")),
            ("*", Err("it is no name of a tool")),
        ];
        for (item, expected) in table {
            assert_eq!(tool_of_item(item), expected, "{item}");
        }
        assert_eq!(with_own_name(" Bash(git:*)"), "bash(git:*)");
        assert_eq!(with_own_name("mcp__a__b"), "mcp__a__b");
        assert!(known_names().starts_with("`read_file`, `write_file`"));
    }
}
