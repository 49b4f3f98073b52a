//! Schedules that would start each other for ever.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::model::SkillRef;

/// Skills of a cycle that are named before the rest is left out.
const NAMED_MAX: usize = 8;

/// An end of a run of `from` starts `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    pub(super) from: &'a SkillRef,
    pub(super) to: &'a SkillRef,
}

/// The edges that lie on a cycle, each by its index with the cycle in words.
pub(super) fn on_cycles(edges: &[Edge<'_>]) -> BTreeMap<usize, String> {
    let kept = without_dead_ends(edges);
    let mut leaving: HashMap<&SkillRef, Vec<usize>> = HashMap::new();
    for index in &kept {
        leaving.entry(edges[*index].from).or_default().push(*index);
    }
    let mut found = BTreeMap::new();
    for index in &kept {
        if found.contains_key(index) {
            continue;
        }
        let Some(back) = path(edges, &leaving, edges[*index].to, edges[*index].from) else {
            continue;
        };
        let cycle: Vec<usize> = std::iter::once(*index).chain(back).collect();
        let text = in_words(edges, &cycle);
        for member in cycle {
            found.entry(member).or_insert_with(|| text.clone());
        }
    }
    found
}

/// Leaves out, again and again, what nothing leads to: what stays are cycles and what hangs on them.
fn without_dead_ends(edges: &[Edge<'_>]) -> BTreeSet<usize> {
    let mut arriving: HashMap<&SkillRef, usize> = HashMap::new();
    let mut leaving: HashMap<&SkillRef, Vec<usize>> = HashMap::new();
    for (index, edge) in edges.iter().enumerate() {
        *arriving.entry(edge.to).or_default() += 1;
        leaving.entry(edge.from).or_default().push(index);
    }
    let mut idle: Vec<&SkillRef> = leaving
        .keys()
        .filter(|skill| !arriving.contains_key(*skill))
        .copied()
        .collect();
    let mut kept: BTreeSet<usize> = (0..edges.len()).collect();
    while let Some(skill) = idle.pop() {
        for index in leaving.get(skill).into_iter().flatten() {
            kept.remove(index);
            let to = edges[*index].to;
            if let Some(count) = arriving.get_mut(to) {
                *count -= 1;
                if *count == 0 {
                    idle.push(to);
                }
            }
        }
    }
    kept
}

/// The shortest way from one skill to another, as indices of edges.
fn path(
    edges: &[Edge<'_>],
    leaving: &HashMap<&SkillRef, Vec<usize>>,
    from: &SkillRef,
    to: &SkillRef,
) -> Option<Vec<usize>> {
    let mut came: HashMap<&SkillRef, usize> = HashMap::new();
    let mut seen = HashSet::from([from]);
    let mut next = VecDeque::from([from]);
    while let Some(skill) = next.pop_front() {
        if skill == to {
            break;
        }
        for index in leaving.get(skill).into_iter().flatten() {
            if seen.insert(edges[*index].to) {
                came.insert(edges[*index].to, *index);
                next.push_back(edges[*index].to);
            }
        }
    }
    if !seen.contains(to) {
        return None;
    }
    let mut way = Vec::new();
    let mut at = to;
    while at != from {
        let index = *came.get(at)?;
        way.push(index);
        at = edges[index].from;
    }
    way.reverse();
    Some(way)
}

/// `a/x`, `b/y`, `a/x`: each starts the next.
fn in_words(edges: &[Edge<'_>], cycle: &[usize]) -> String {
    let mut names: Vec<String> = cycle
        .iter()
        .take(NAMED_MAX)
        .map(|index| format!("`{}`", edges[*index].from))
        .collect();
    if cycle.len() > NAMED_MAX {
        names.push("…".to_owned());
    }
    if let Some(first) = cycle.first() {
        names.push(format!("`{}`", edges[*first].from));
    }
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(pairs: &[(&str, &str)]) -> Vec<(usize, String)> {
        let skill = |name: &str| SkillRef {
            worker: "w".to_owned(),
            skill: name.to_owned(),
        };
        let owned: Vec<_> = pairs.iter().map(|(a, b)| (skill(a), skill(b))).collect();
        let edges: Vec<_> = owned.iter().map(|(from, to)| Edge { from, to }).collect();
        on_cycles(&edges).into_iter().collect()
    }

    #[test]
    fn every_edge_of_a_cycle_is_found_and_no_other() {
        assert_eq!(cycles(&[("a", "b"), ("b", "c"), ("a", "c")]), []);
        assert_eq!(cycles(&[("a", "a")]), [(0, "`w/a` → `w/a`".to_owned())]);
        // Two cycles, a way between them, a way in and a way out.
        let pairs = [
            ("in", "a"),
            ("a", "b"),
            ("b", "a"),
            ("b", "c"),
            ("c", "d"),
            ("d", "c"),
            ("d", "out"),
        ];
        let found: Vec<usize> = cycles(&pairs).into_iter().map(|(index, _)| index).collect();
        assert_eq!(found, [1, 2, 4, 5]);
    }

    #[test]
    fn long_cycles_are_shortened_and_take_no_time() {
        let names: Vec<String> = (0..5_000).map(|n| format!("s{n}")).collect();
        let pairs: Vec<(&str, &str)> = (0..5_000)
            .map(|n| (names[n].as_str(), names[(n + 1) % 5_000].as_str()))
            .collect();
        let found = cycles(&pairs);
        assert_eq!(found.len(), 5_000);
        assert!(found[0].1.len() < 200, "{}", found[0].1);
    }
}
