//! The environment variables that carry the values of names.

use std::collections::BTreeMap;

use super::names::{Kind, Name, Names, NamesProblem, Projection, Reference, Scope};

impl Names {
    /// The environment variable that carries a reference; for the value of a list, the stem of
    /// its elements' variables.
    pub(super) fn variable(&self, reference: Reference) -> String {
        let suffix = match reference.projection {
            Projection::Value => "",
            Projection::Json => "_JSON",
            Projection::Lines => "_LINES",
            Projection::File => "_FILE",
        };
        let entry = self.get(reference);
        format!("{}{suffix}", variable_stem(entry.scope, &entry.name))
    }

    /// Built-in names clash with nothing: their variables begin like no declared one, and none derives from them.
    pub(super) fn variable_clashes(&self) -> Vec<NamesProblem> {
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let mut found = Vec::new();
        let declared = self.entries[..self.declared].iter();
        let stems = declared.map(|entry| variable_stem(entry.scope, &entry.name));
        let mut clash = |first: usize, second: usize, variable: &str| {
            if self.entries[first].name != self.entries[second].name {
                found.push(NamesProblem::SameVariable {
                    first: self.entries[first].name.clone(),
                    second: self.entries[second].name.clone(),
                    variable: variable.to_owned(),
                });
            }
        };
        let stems: Vec<String> = stems.collect();
        for (index, stem) in stems.iter().enumerate() {
            match taken.get(stem) {
                Some(&other) => clash(other, index, stem),
                None => {
                    taken.insert(stem.clone(), index);
                }
            }
        }
        for (other, longer) in stems.iter().enumerate() {
            for (at, _) in longer.match_indices('_') {
                let (stem, rest) = (&longer[..at], &longer[at + 1..]);
                if let Some(&index) = taken.get(stem)
                    && derives(&self.entries[index], rest)
                {
                    clash(index, other, longer);
                }
            }
        }
        found
    }
}

/// Whether the variables of `name` include its stem followed by `_` and `rest`.
fn derives(name: &Name, rest: &str) -> bool {
    let number = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let projected = name.scope == Scope::Input && matches!(rest, "JSON" | "LINES" | "FILE");
    projected || (name.kind == Kind::List && (number || rest == "COUNT"))
}

fn variable_stem(scope: Scope, name: &str) -> String {
    match scope {
        Scope::Input => format!("WORKERCTL_INPUT_{}", name.replace('-', "_")),
        Scope::Output => format!("WORKERCTL_OUTPUT_{}", name.replace('-', "_")),
        Scope::Builtin => format!("WORKERCTL_{}", name.to_uppercase()),
    }
}
