//! What Wave's contract asks of a skill, and how it words its answers.

use std::fmt::Write;

/// Longest description in characters.
pub(crate) const DESCRIPTION_CHARS: usize = 1_024;

/// Why a skill is invalid, with what repairs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub fix: String,
}

/// What of the contract a skill breaks, all of it.
pub(crate) fn violations(name: &str, directory: &str, description: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if name != directory {
        found.push(Violation {
            error: format!("name `{name}` does not match its directory `{directory}`"),
            fix: format!("write `name: {directory}`, or rename the directory to `{name}`"),
        });
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(plain) {
        found.push(Violation {
            error: format!("name `{name}` holds other than lowercase letters, numbers, hyphens"),
            fix: "use lowercase letters, numbers and hyphens only".to_owned(),
        });
    }
    let characters = description.chars().count();
    if characters > DESCRIPTION_CHARS {
        found.push(Violation {
            error: format!("description has {characters} characters"),
            fix: format!("keep the description within {DESCRIPTION_CHARS} characters"),
        });
    }
    found
}

/// The contract's answer for a skill that is invalid.
pub fn invalid_text(name: &str, violations: &[Violation]) -> String {
    let errors: Vec<&str> = violations.iter().map(|one| one.error.as_str()).collect();
    let mut text = format!(
        "Skill '{name}' is invalid: {}\n\nFix by:\n",
        errors.join("; ")
    );
    for one in violations {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "- {}", one.fix);
    }
    text.push_str("\nSkill will be available after fixing these issues.");
    text
}

/// The contract's answer for a skill that is not there; `available` are names with descriptions.
pub fn not_found_text<'a>(
    name: &str,
    available: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut text = format!("Skill '{name}' not found.\n\nAvailable skills:\n");
    for (name, description) in available {
        let _ = writeln!(text, "- {name}: {description}");
    }
    let _ = write!(
        text,
        "\nTo create this skill:\n1. Create directory ~/.wave/skills/{name}/\n2. Add SKILL.md file with proper YAML frontmatter"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_violations_are_told_at_once_in_the_contracts_words() {
        let found = violations("My Skill", "mine", &"x".repeat(1_025));
        assert_eq!(found.len(), 3);
        let text = invalid_text("My Skill", &found[2..]);
        assert_eq!(
            text,
            "Skill 'My Skill' is invalid: description has 1025 characters\n\nFix by:\n\
             - keep the description within 1024 characters\n\n\
             Skill will be available after fixing these issues."
        );
        assert!(violations("a-1", "a-1", &"ä".repeat(1_024)).is_empty());
        assert_eq!(
            not_found_text("x", [("git", "Commits")]),
            "Skill 'x' not found.\n\nAvailable skills:\n- git: Commits\n\n\
             To create this skill:\n1. Create directory ~/.wave/skills/x/\n\
             2. Add SKILL.md file with proper YAML frontmatter"
        );
    }
}
