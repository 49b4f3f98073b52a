//! Files that other agent programs accept, and those that stay refused: what becomes of each, and in which words.

mod keys;

use super::super::roots::RootSkill;
use super::roots::found;
use super::{ERROR, WARNING, Workspace, show};
use crate::model::{Problem, Severity};
use keys::{RESTRICTIONS, SYNTAX};

/// A file, and what is said of it.
struct Irregular {
    path: &'static str,
    text: &'static str,
    /// `skipped`, `rejected`, or what [`told`] says of the skill.
    becomes: &'static str,
    code: &'static str,
    severity: Severity,
    message: &'static str,
    hint: &'static str,
}

const AGENTS: &str = ".agents/skills/a/SKILL.md";
const AGENT: &str = ".agent/skills/a/SKILL.md";
const CLAUDE: &str = ".claude/skills/a/SKILL.md";
const WAVE: &str = ".wave/skills/a/SKILL.md";
const WORKSPACE: &str = "workspace/skills/a/SKILL.md";

const fn accepted(
    path: &'static str,
    text: &'static str,
    becomes: &'static str,
    (code, message, hint): (&'static str, &'static str, &'static str),
) -> Irregular {
    Irregular {
        path,
        text,
        becomes,
        code,
        severity: WARNING,
        message,
        hint,
    }
}

const fn rejected(
    path: &'static str,
    text: &'static str,
    (code, message, hint): (&'static str, &'static str, &'static str),
) -> Irregular {
    Irregular {
        path,
        text,
        becomes: "rejected",
        code,
        severity: ERROR,
        message,
        hint,
    }
}

/// Names that are missing, or are none.
const NAMES: &[Irregular] = &[
    accepted(
        AGENTS,
        "---\ndescription: One\n---\nDo it.\n",
        "a",
        ("name-missing", "is called `a`", "write `name: a`"),
    ),
    accepted(
        AGENTS,
        "---\nname:\ndescription: One\n---\nDo it.\n",
        "a",
        ("name-missing", "no `name`", "write `name: a`"),
    ),
    accepted(
        ".agents/skills/team/My Skill/SKILL.md",
        "---\ndescription: One\n---\nDo it.\n",
        "My Skill",
        ("name-missing", "", "write `name: \"My Skill\"`"),
    ),
    rejected(
        ".agents/skills/a..b/SKILL.md",
        "---\ndescription: One\n---\nDo it.\n",
        (
            "name-forbidden",
            "taken for a path",
            "such as `name: my-skill`",
        ),
    ),
    rejected(
        AGENT,
        "---\ndescription: One\n---\nDo it.\n",
        ("missing-key", "no `name`", "write `name: a`"),
    ),
    rejected(
        CLAUDE,
        "---\ndescription: One\n---\nDo it.\n",
        ("missing-key", "no `name`", "write `name: a`"),
    ),
    rejected(
        WAVE,
        "---\ndescription: One\n---\nDo it.\n",
        ("missing-key", "no `name`", "write `name: a`"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\n---\nDo it.\n",
        ("missing-key", "no `description`", "when to use it"),
    ),
    accepted(
        CLAUDE,
        "---\nname: team/x\ndescription: One\n---\nDo it.\n",
        "team-x",
        (
            "name-escaped",
            "`team/x` is called `team-x`",
            "write `name: team-x`",
        ),
    ),
    accepted(
        WORKSPACE,
        "---\nname: a/b/c\ndescription: One\n---\nDo it.\n",
        "a-b-c",
        ("name-escaped", "called `a-b-c`", "write `name: a-b-c`"),
    ),
    rejected(
        WAVE,
        "---\nname: team/x\ndescription: One\n---\nDo it.\n",
        ("name-forbidden", "taken for a path", "such as `name: a`"),
    ),
    rejected(
        CLAUDE,
        "---\nname: ../x\ndescription: One\n---\nDo it.\n",
        ("name-forbidden", "taken for a path", "such as `name: a`"),
    ),
    rejected(
        AGENTS,
        "---\nname: .ssh/id_rsa\ndescription: One\n---\nDo it.\n",
        ("name-forbidden", "taken for a path", "such as `name: a`"),
    ),
    rejected(
        AGENTS,
        "---\nname: \"a\\e\"\ndescription: One\n---\nDo it.\n",
        (
            "name-forbidden",
            "holds a control character",
            "such as `name: a`",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: /etc\ndescription: One\n---\nDo it.\n",
        ("name-forbidden", "taken for a path", "such as `name: a`"),
    ),
];

/// What stands before the frontmatter, and what does not stand behind it.
const AROUND: &[Irregular] = &[
    accepted(
        AGENTS,
        "<!-- Copyright\n     of somebody\n-->\n\n---\nname: a\ndescription: One\n---\nDo it.\n",
        "a",
        (
            "comment-before-frontmatter",
            "a comment",
            "begin the file with `---`",
        ),
    ),
    accepted(
        CLAUDE,
        "<!--\n---\nname: old\n---\n-->\n---\nname: a\ndescription: One\n---\nDo it.\n",
        "a",
        (
            "comment-before-frontmatter",
            "a comment",
            "begin the file with `---`",
        ),
    ),
    accepted(
        CLAUDE,
        "# Written by a tool,\n# do not change\n---\nname: a\ndescription: One\n---\nDo it.\n",
        "a",
        (
            "comment-before-frontmatter",
            "a comment",
            "begin the file with `---`",
        ),
    ),
    accepted(
        CLAUDE,
        "<!-- nothing closes this\n---\nname: a\ndescription: One\n---\nDo it.\n",
        "a",
        (
            "comment-before-frontmatter",
            "a comment",
            "begin the file with `---`",
        ),
    ),
    accepted(
        AGENTS,
        "Read this first.\n\n---\nname: a\ndescription: One\n---\nDo it.\n",
        "skipped",
        ("no-frontmatter", "text precedes", "move the text above"),
    ),
    accepted(
        AGENTS,
        "# a\n\nDo it.\n",
        "skipped",
        (
            "no-frontmatter",
            "no frontmatter",
            "`name: …`, `description: …`",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nDo it.\n",
        (
            "frontmatter-unterminated",
            "nothing closes",
            "write a line `---`",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\n---\n\n",
        "a",
        (
            "empty-instructions",
            "no instructions",
            "below the frontmatter",
        ),
    ),
    accepted(
        WORKSPACE,
        "---\nname: a\ndescription: One\n---\n",
        "skipped",
        ("empty-instructions", "is left out", "below the frontmatter"),
    ),
    accepted(
        WAVE,
        "---\nname: a\ndescription: One\n---\n",
        "skipped",
        ("empty-instructions", "is left out", "below the frontmatter"),
    ),
];

/// What a list says of a skill.
fn told(skill: &RootSkill) -> String {
    let keys = skill.load().expect("it was read before").keys;
    let mut told = skill.name.clone();
    let tools = keys
        .allowed_tools
        .map(|tools| format!(", tools [{}]", tools.join(", ")));
    told.push_str(&tools.unwrap_or_default());
    for (holds, words) in [
        (!skill.model_invocable, ", not for models"),
        (!skill.user_invocable, ", not for people"),
        (skill.mutating, ", mutating"),
        (skill.approval_required, ", after approval"),
    ] {
        told.push_str(if holds { words } else { "" });
    }
    told
}

#[test]
fn each_irregular_file_becomes_what_it_does_elsewhere_or_is_refused_in_plain_words() {
    let all = [NAMES, AROUND, RESTRICTIONS, SYNTAX];
    let mut wrong = Vec::new();
    for one in all.into_iter().flatten() {
        let workspace = Workspace::new(&[(one.path, one.text)]);
        let catalog = workspace.load();
        let context = format!("{}\n{}\n{}", one.path, one.text, show(&catalog.problems));
        let skills = &catalog.root_skills;
        let becomes = match skills.skills.first() {
            Some(skill) => told(skill),
            None if catalog.has_errors() => "rejected".to_owned(),
            None => "skipped".to_owned(),
        };
        let fits = |problem: &Problem| {
            let hint = problem.hint.as_deref().unwrap_or_default();
            (problem.code.as_str(), problem.severity) == (one.code, one.severity)
                && &*problem.place.path == one.path
                && problem.message.contains(one.message)
                && hint.contains(one.hint)
        };
        let said = catalog.problems.iter().any(fits);
        let reached = skills.skills.len() + skills.refused.len() == 1;
        if becomes != one.becomes || !said || !reached {
            let (code, hint) = (one.code, one.hint);
            wrong.push(format!(
                "{becomes}, not {}, {code}: {hint}\n{context}",
                one.becomes
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all.into_iter().flatten().count() >= 36);
}

/// `team/x` and `team-x` are one name, of which the first keeps it; the other has its root's.
#[test]
fn an_escaped_name_that_another_skill_has_is_shadowed_as_any_is() {
    let page = |name: &str| format!("---\nname: {name}\ndescription: One\n---\nDo it.\n");
    let workspace = Workspace::new(&[
        (".agents/skills/team-x/SKILL.md", &page("team-x")),
        (".claude/skills/x/SKILL.md", &page("team/x")),
    ]);
    let catalog = workspace.load();
    assert_eq!(found(&catalog, "team-x"), ".agents/skills/team-x/SKILL.md");
    assert_eq!(
        found(&catalog, ".claude:team-x"),
        ".claude/skills/x/SKILL.md"
    );
    assert_eq!(found(&catalog, "team/x"), "unknown");
    assert!(
        catalog
            .problems
            .iter()
            .any(|one| one.code == "skill-shadowed")
    );
}
