//! Files of one package do not import each other in circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::Violations;
use crate::paths::{Named, paths};
use crate::source::{Rust, rust_files};

/// Packages that are held free of circles, besides the program itself.
const PACKAGES: [&str; 13] = [
    "agent", "catalog", "clock", "core", "engine", "git", "landing", "mcp", "process", "sandbox",
    "store", "trees", "web",
];

/// Circles that stay; why is said in the documentation of the room.
const ALLOWED: [&[&str]; 1] = [&["src/process/src/container.rs", "src/process/src/wall.rs"]];

/// How many re-exports are followed from one to the next.
const REEXPORTS_MAX: usize = 8;

/// A module's place in its package.
type Module = Vec<String>;

/// The files of a package, with the paths that each names.
struct Package<'a> {
    files: BTreeMap<Module, (&'a Rust, Vec<Named>)>,
}

impl<'a> Package<'a> {
    /// The files of a folder that `belongs` says are of the package.
    fn read(folder: &str, belongs: impl Fn(&Rust) -> bool) -> Package<'a> {
        let shipped = rust_files()
            .iter()
            .filter(|file| !file.shipped.is_empty() && belongs(file));
        let files = shipped.filter_map(|file| {
            let place = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            let mut module: Module = place.split('/').map(str::to_owned).collect();
            if ["lib", "mod"].contains(&module.last()?.as_str()) {
                module.pop();
            }
            Some((module, (file, paths(&file.shipped))))
        });
        Package {
            files: files.collect(),
        }
    }

    /// The module that a path named in `from` leads to, through re-exports; `None` outside of the package.
    fn target(&self, from: &Module, path: &[String], reexports: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Module::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), rest),
            child if self.files.contains_key(&below(from, child)) => (below(from, child), rest),
            _ => return None,
        };
        while let Some((next, after)) = rest.split_first() {
            let inner = below(&at, next);
            if next == "super" {
                at.pop();
            } else if self.files.contains_key(&inner) {
                at = inner;
            } else {
                return self.reexported(&at, next, reexports).or(Some(at));
            }
            rest = after;
        }
        Some(at)
    }

    /// Where a module has a name from that it does not declare itself.
    fn reexported(&self, module: &Module, name: &str, reexports: usize) -> Option<Module> {
        let deeper = reexports.checked_sub(1)?;
        let (_, named) = self.files.get(module)?;
        named
            .iter()
            .filter(|path| {
                path.segments.len() > 1 && path.segments.last().is_some_and(|s| s == name)
            })
            .find_map(|path| self.target(module, &path.segments, deeper))
            .filter(|found| found != module)
    }

    /// The modules that a module imports. What lies around it is its own: children share what their parent declares.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let (_, named) = &self.files[module];
        named
            .iter()
            .filter_map(|path| self.target(module, &path.segments, REEXPORTS_MAX))
            .filter(|other| !module.starts_with(other))
            .collect()
    }

    /// Files by the circle that they are in, the smallest file of it first.
    fn circles(&self) -> BTreeSet<Vec<&'a str>> {
        let imports: BTreeMap<&Module, BTreeSet<Module>> = self
            .files
            .keys()
            .map(|one| (one, self.imports(one)))
            .collect();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
            .keys()
            .map(|from| {
                let mut reached = BTreeSet::new();
                let mut open: Vec<&Module> = imports[from].iter().collect();
                while let Some(next) = open.pop() {
                    if reached.insert(next) {
                        open.extend(&imports[next]);
                    }
                }
                (*from, reached)
            })
            .collect();
        let in_circle = reached.iter().filter(|(one, found)| found.contains(*one));
        in_circle
            .map(|(one, found)| {
                let back = found.iter().filter(|other| reached[**other].contains(one));
                back.map(|other| self.files[*other].0.path.as_str())
                    .collect()
            })
            .collect()
    }
}

fn below(module: &Module, child: &str) -> Module {
    let mut inner = module.clone();
    inner.push(child.to_owned());
    inner
}

#[test]
fn files_of_a_package_import_each_other_in_no_circle() {
    let mut violations = Violations::default();
    let mut left: BTreeSet<&[&str]> = ALLOWED.into();
    let packages = PACKAGES.map(|name| Package::read(&format!("src/{name}/src/"), |_| true));
    let program = Package::read("src/", Rust::is_of_the_program);
    for circle in packages.iter().chain([&program]).flat_map(Package::circles) {
        if !left.remove(circle.as_slice()) {
            let what = format!(
                "these files import each other in a circle: {}",
                circle.join(", ")
            );
            violations.add(circle[0], 1, what);
        }
    }
    for gone in left {
        violations.add(
            gone[0],
            1,
            "a circle that is allowed is gone: take it off the list",
        );
    }
    violations.none();
}
