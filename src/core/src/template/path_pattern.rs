//! The paths that a destination can become in any run, to find definitions that can write one file.

use super::names::{Lookup, Names, Projection, Reference, Scope};
use super::segment::{Segment, Setting, segments};

/// Patterns that one destination is expanded to; a placeholder that would exceed it stands for any text.
const PATTERNS_MAX: usize = 64;

/// The text that a placeholder in a path can become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathValue {
    /// One of these texts.
    OneOf(Vec<String>),
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A time of day, `HHMMSS`.
    Time,
    /// Any text without `/`.
    Any,
}

/// A set of paths: fixed text, digits of dates and times, and gaps for any text within one component.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern(Vec<Atom>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Atom {
    Char(char),
    /// A digit of a date or of a time, the same for all that run at that moment.
    Digit,
    /// Any text without `/`, and none.
    Gap,
}

impl PathPattern {
    /// Returns the patterns of a destination. `value` returns what a name can become.
    ///
    /// `None` if no other destination can become such a path, because `value` returned `None` for one of its
    /// names, or if that cannot be told, as for a Handlebars block.
    pub fn expand(
        text: &str,
        names: &Names,
        value: &dyn Fn(Scope, &str) -> Option<PathValue>,
    ) -> Option<Vec<PathPattern>> {
        let (segments, _) = segments(text, names, Setting::Text);
        let mut patterns = vec![PathPattern::default()];
        for segment in &segments {
            let reference = match segment {
                Segment::Text(text) => {
                    append(&mut patterns, &PathValue::OneOf(vec![text.clone()]));
                    continue;
                }
                Segment::Slot(_, reference) => *reference,
                Segment::Handlebars(tag) => tag_reference(tag, names)?,
            };
            let name = names.get(reference);
            let known = value(name.scope, &name.name)?;
            let is_whole = reference.projection == Projection::Value;
            append(
                &mut patterns,
                if is_whole { &known } else { &PathValue::Any },
            );
        }
        for pattern in &mut patterns {
            if pattern.0.starts_with(&[Atom::Char('.'), Atom::Char('/')]) {
                pattern.0.drain(..2);
            }
        }
        Some(patterns)
    }

    /// Whether it names a directory.
    pub fn is_directory(&self) -> bool {
        self.0.last() == Some(&Atom::Char('/'))
    }

    /// Appends what a value can become; only the first text of [`PathValue::OneOf`].
    pub fn push(&mut self, value: &PathValue) {
        match value {
            PathValue::OneOf(texts) => {
                let text = texts.first().map(String::as_str).unwrap_or_default();
                self.0.extend(text.chars().map(Atom::Char));
            }
            PathValue::Date => self.push_digits("0000-00-00"),
            PathValue::Time => self.push_digits("000000"),
            PathValue::Any => self.0.push(Atom::Gap),
        }
    }

    /// Each `0` stands for a digit.
    fn push_digits(&mut self, form: &str) {
        self.0.extend(form.chars().map(|letter| match letter {
            '0' => Atom::Digit,
            other => Atom::Char(other),
        }));
    }

    /// Returns the fixed text at its beginning, which every path in the set has.
    pub fn prefix(&self) -> String {
        let fixed = self.0.iter().map_while(|atom| match atom {
            Atom::Char(letter) => Some(*letter),
            Atom::Digit | Atom::Gap => None,
        });
        fixed.collect()
    }

    /// Whether the fixed texts at their beginnings or ends differ: then no path is in both sets. This is quick.
    pub fn ends_differ(&self, other: &PathPattern) -> bool {
        let differ = |(one, other): (&Atom, &Atom)| match (*one, *other) {
            (Atom::Gap, _) | (_, Atom::Gap) => Some(false),
            (one, other) => (!is_alike(one, other)).then_some(true),
        };
        let (mut begins, mut ends) = (
            self.0.iter().zip(&other.0),
            self.0.iter().rev().zip(other.0.iter().rev()),
        );
        begins.find_map(differ) == Some(true) || ends.find_map(differ) == Some(true)
    }

    /// Whether some path is in both sets.
    pub fn intersects(&self, other: &PathPattern) -> bool {
        if self.ends_differ(other) {
            return false;
        }
        // `row[j]`: the rest of `self` and `other` from `j` on have a text in common.
        let ends_empty = |atoms: &[Atom]| atoms.iter().all(|atom| *atom == Atom::Gap);
        let width = other.0.len();
        let mut below: Vec<bool> = (0..=width).map(|at| ends_empty(&other.0[at..])).collect();
        for (at, atom) in self.0.iter().enumerate().rev() {
            let mut row = vec![false; width + 1];
            row[width] = ends_empty(&self.0[at..]);
            for column in (0..width).rev() {
                row[column] = match (*atom, other.0[column]) {
                    (Atom::Gap, Atom::Gap) => below[column] || row[column + 1],
                    (Atom::Gap, there) => below[column] || (fills(there) && row[column + 1]),
                    (here, Atom::Gap) => row[column + 1] || (fills(here) && below[column]),
                    (here, there) => is_alike(here, there) && below[column + 1],
                };
            }
            below = row;
        }
        below[0]
    }
}

/// Whether a gap can hold it.
fn fills(atom: Atom) -> bool {
    atom != Atom::Char('/')
}

fn is_alike(one: Atom, other: Atom) -> bool {
    match (one, other) {
        (Atom::Char(letter), Atom::Digit) | (Atom::Digit, Atom::Char(letter)) => {
            letter.is_ascii_digit()
        }
        (one, other) => one == other,
    }
}

fn append(patterns: &mut Vec<PathPattern>, value: &PathValue) {
    let texts = match value {
        PathValue::OneOf(texts) => texts.as_slice(),
        PathValue::Date | PathValue::Time | PathValue::Any => &[],
    };
    if texts.len() < 2 {
        for pattern in patterns.iter_mut() {
            pattern.push(value);
        }
    } else if texts.len().saturating_mul(patterns.len()) > PATTERNS_MAX {
        append(patterns, &PathValue::Any);
    } else {
        let with = |pattern: &PathPattern, text: &String| {
            let mut pattern = pattern.clone();
            pattern.push(&PathValue::OneOf(vec![text.clone()]));
            pattern
        };
        let all = patterns.iter();
        *patterns = all
            .flat_map(|pattern| texts.iter().map(move |text| with(pattern, text)))
            .collect();
    }
}

/// The name that a tag such as `{{date}}` or `{{inputs.month}}` stands for.
fn tag_reference(tag: &str, names: &Names) -> Option<Reference> {
    let inside = tag.trim_matches(['{', '}', '~', ' ', '\t']);
    let (scope, name) = match inside.split_once('.') {
        None => (None, inside),
        Some(("inputs", name)) => (Some(Scope::Input), name),
        Some(("builtins", name)) => (Some(Scope::Builtin), name),
        Some(_) => return None,
    };
    match names.lookup(scope, name) {
        Lookup::One(index) => Some(Reference {
            index,
            projection: Projection::Value,
        }),
        Lookup::Several(_) | Lookup::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::{Kind, Name};
    use super::*;

    fn patterns(text: &str) -> Option<Vec<PathPattern>> {
        let declared = ["x", "lang"].map(|name| Name::new(Scope::Input, name, Kind::Text));
        let names = Names::new(declared.into(), "w", "s").unwrap();
        PathPattern::expand(text, &names, &|scope, name| match (scope, name) {
            (Scope::Builtin, "date") => Some(PathValue::Date),
            (Scope::Builtin, "time") => Some(PathValue::Time),
            (Scope::Builtin, "skill") => Some(PathValue::OneOf(vec!["s".to_owned()])),
            (Scope::Builtin, _) => None,
            (_, "lang") => Some(PathValue::OneOf(vec!["de".to_owned(), "en".to_owned()])),
            _ => Some(PathValue::Any),
        })
    }

    fn meet(one: &str, other: &str) -> bool {
        let (one, other) = (patterns(one).unwrap(), patterns(other).unwrap());
        let meets = |one: &PathPattern, other: &PathPattern| {
            assert_eq!(one.intersects(other), other.intersects(one));
            one.intersects(other)
        };
        one.iter()
            .any(|one| other.iter().any(|other| meets(one, other)))
    }

    #[test]
    fn patterns_meet_if_a_path_is_in_both() {
        for (one, other, expected) in [
            ("r/a.md", "r/a.md", true),
            ("r/a.md", "./r/a.md", true),
            ("r/a.md", "r/b.md", false),
            ("r/{date}.md", "r/{date}.md", true),
            ("r/{date}.md", "r/{{date}}.md", true),
            ("r/{date}-a.md", "r/{date}-b.md", false),
            ("r/{date}.md", "r/{time}.md", false),
            ("r/{date}.md", "r/2026-11-26.md", true),
            ("r/{date}.md", "r/today.md", false),
            ("r/{x}.md", "r/summary.md", true),
            ("r/{date}-{x}.md", "r/{date}-summary.md", true),
            ("r/{x}.md", "r/deep/summary.md", false),
            ("r/{x}/a.md", "r/{x}/b.md", false),
            ("r/{x}-a.md", "r/b-{x}.md", true),
            ("r/{x}.md", "r/{date}.json", false),
            ("r/{skill}.md", "r/s.md", true),
            ("r/{skill}.md", "r/t.md", false),
            ("r/{lang}.md", "r/en.md", true),
            ("r/{lang}.md", "r/fr.md", false),
            ("r/{x.json}.md", "r/fr.md", true),
            ("{x}", "", true),
        ] {
            assert_eq!(meet(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_path_of_one_run_meets_no_other() {
        assert_eq!(patterns("r/{run}.md"), None);
        assert_eq!(patterns("r/{{#if x}}a{{/if}}.md"), None);
    }

    #[test]
    fn many_values_are_any_text() {
        let long = "{lang}".repeat(8);
        assert!(patterns(&long).unwrap().len() <= PATTERNS_MAX);
        assert!(meet(
            &format!("r/{long}"),
            &format!("r/{}fr", "de".repeat(7))
        ));
    }

    #[test]
    fn the_prefix_ends_at_the_first_value() {
        let prefix = |text| patterns(text).unwrap()[0].prefix();
        assert_eq!(prefix("r/{skill}-{date}.md"), "r/s-");
        assert!(patterns("r/{skill}/").unwrap()[0].is_directory());
    }
}
