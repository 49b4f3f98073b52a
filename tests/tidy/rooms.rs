//! Who may name whom.

use std::collections::BTreeSet;

use crate::paths::paths;
use crate::source::{Rust, files, root, rust_files};
use crate::{Violations, places};

/// The rooms, from the left to the right. A room imports rooms of layers to its left, and no others.
const LAYERS: [&[&str]; 9] = [
    &["model"],
    &[
        "machine",
        "queue",
        "schedule",
        "inputs",
        "template",
        "protocol",
        "retention",
    ],
    &["thread", "upcoming"], // the machine's journal, and the future of schedules, as the protocol shows them
    &["sandbox", "process", "landing"], // paths below a directory; commands; landings of commits
    &["store", "git", "trees", "agent", "catalog", "clock", "web"],
    &["engine"],
    &["mcp"],
    &["daemon"],
    &["cli"],
];

/// A package, and the rooms that alone may name it.
const NAMED_ONLY_IN: [(&str, &[&str]); 14] = [
    ("clap_mangen", &["cli"]),
    ("serde_yaml", &["catalog"]),
    ("inotify", &["catalog", "daemon"]), // definitions, and what schedules wait for
    ("sled", &["store"]),
    ("duct", &["process"]),
    ("git2", &["git", "landing", "trees"]),
    ("tokio", &["agent", "daemon", "mcp"]),
    ("rmcp", &["agent", "mcp"]), // client and server
    ("reqwest", &["agent"]),
    ("workerctl_agent", &["agent", "engine"]),
    ("axum", &["daemon"]),
    ("hyper", &["daemon", "mcp"]),
    ("clap", &["cli"]),
    ("workerctl_web", &["daemon"]), // the files of the page
];

/// Which files of `cli` may name a room beside the protocol, its words and its data.
const CLI_DOORS: [(&str, &[&str]); 6] = [
    (
        "catalog",
        &[
            "src/cli/definitions.rs",
            "src/cli/definitions/readiness.rs",
            "src/cli/definitions/skill.rs",
        ],
    ),
    ("daemon", &["src/cli/engine.rs", "src/cli/entry.rs"]),
    (
        "engine",
        &[
            "src/cli/definitions.rs",
            "src/cli/definitions/readiness.rs",
            "src/cli/engine.rs",
        ],
    ),
    ("mcp", &["src/cli/engine.rs"]),
    ("store", &["src/cli/maintenance.rs"]),
    ("git", &["src/cli/repository.rs"]),
];

/// What the scheduler of the engine may name of its package: data and questions, and nothing that performs.
const SCHEDULER_NAMES: [&str; 13] = [
    "crate::model",
    "crate::pool::ProbeRequest",
    "crate::protocol",
    "crate::reading",
    "crate::request::ManualTrigger",
    "crate::request::Submission",
    "crate::schedule",
    "crate::schedules",
    "crate::store",
    "crate::stored_schedules",
    "crate::trigger_probe::ProbeResult",
    "crate::view::Agenda",
    "crate::work::OfSchedule",
];

/// Where clocks are read, and why there.
const CLOCK_READERS: [(&str, &str); 6] = [
    ("src/clock/", "the room whose work it is"),
    (
        "src/process/",
        "deadlines of one command, measured where it is watched",
    ),
    (
        "src/agent/",
        "deadlines of one turn, measured where its stream is read",
    ),
    (
        "src/trees/src/forms.rs",
        "the longest time for which rules of git are evaluated in one walk",
    ),
    (
        "src/engine/src/inbox.rs",
        "a wait on a condition variable returns early and needs to know what is left",
    ),
    (
        "src/engine/src/changes.rs",
        "how often a reader is told something, of which nothing is recorded",
    ),
];

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

#[test]
fn a_room_imports_only_rooms_to_its_left() {
    let mut violations = Violations::default();
    for file in rust_files() {
        let Some(room) = file.room() else { continue };
        let Some(own) = layer(room) else {
            violations.add(
                &file.path,
                1,
                format_args!("the room `{room}` has no layer"),
            );
            continue;
        };
        // One `super` for each level below `src` leads to the root of the crate.
        let levels =
            file.in_crate().split('/').count() - if file.path.ends_with("/mod.rs") { 2 } else { 1 };
        for path in paths(&file.shipped) {
            let supers = path
                .segments
                .iter()
                .take_while(|one| *one == "super")
                .count();
            if supers >= levels {
                violations.add(
                    &file.path,
                    path.line,
                    format_args!("`{}` leaves the room; write `crate::`", path.text()),
                );
            }
            let named = path.segments.get(1).filter(|_| path.segments[0] == "crate");
            let Some(other) = named.filter(|_| !file.is_of_a_package()) else {
                continue;
            };
            let allowed = other == room || layer(other).is_some_and(|other| other < own);
            if !allowed {
                violations.add(
                    &file.path,
                    path.line,
                    format_args!("`{room}` may not import `{other}`"),
                );
            }
        }
    }
    violations.none();
}

/// What Cargo cannot see: a dependency to the right that closes no circle.
#[test]
fn a_package_depends_only_on_rooms_to_its_left() {
    let mut violations = Violations::default();
    let manifests = files()
        .into_iter()
        .filter(|path| path.starts_with("src/") && path.ends_with("/Cargo.toml"));
    for path in manifests {
        let own = path.split('/').nth(1).unwrap();
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for (line, entry) in text.lines().enumerate() {
            let named = entry.split_once(" = ").map(|(name, _)| name);
            let Some(other) = named.and_then(|name| name.strip_prefix("workerctl-")) else {
                continue;
            };
            if layer_of_package(other) >= layer_of_package(own) {
                let what = format_args!("`{own}` may not depend on `{other}`");
                violations.add(&path, line + 1, what);
            }
        }
    }
    violations.none();
}

/// The layer of a package; of `core` the last one of its rooms.
fn layer_of_package(name: &str) -> usize {
    let room = if name == "core" { "thread" } else { name };
    layer(room).unwrap()
}

#[test]
fn every_room_is_declared_and_has_its_folder() {
    let rust = rust_files();
    let libraries = rust.iter().filter(|file| file.in_crate() == "src/lib.rs");
    let declared: BTreeSet<&str> = libraries
        .flat_map(|library| library.all.windows(2))
        .filter(|pair| pair[0].text == "mod")
        .map(|pair| pair[1].text.as_str())
        .collect();
    let of_library = rust.iter().filter(|file| !file.is_of_a_package());
    let folders: BTreeSet<&str> = of_library.filter_map(Rust::room).collect();
    assert_eq!(declared, folders);
    for room in declared {
        assert!(layer(room).is_some(), "the room `{room}` has no layer");
    }
}

#[test]
fn packages_are_named_in_their_room_only() {
    let mut violations = Violations::default();
    for file in rust_files() {
        let Some(room) = file.room() else { continue };
        for path in paths(&file.shipped) {
            for (package, rooms) in NAMED_ONLY_IN {
                if path.segments[0] == package && !rooms.contains(&room) {
                    violations.add(
                        &file.path,
                        path.line,
                        format_args!("only {rooms:?} may name `{package}`"),
                    );
                }
            }
        }
        // There they have the names that the rules above know.
        let renamed = [
            "catalog", "clock", "core", "engine", "git", "mcp", "process", "sandbox", "store",
        ];
        for path in paths(&file.shipped) {
            let own = path.segments[0].strip_prefix("workerctl_");
            if own.is_some_and(|own| renamed.contains(&own)) && file.is_of_the_program() {
                let named = &path.segments[0];
                let what = format_args!("`{named}` is a room: write `crate::`");
                violations.add(&file.path, path.line, what);
            }
        }
        if !["agent", "daemon", "mcp"].contains(&room) {
            for line in places(&file.shipped, &["async"]) {
                violations.add(&file.path, line, format_args!("`{room}` is synchronous"));
            }
        }
    }
    violations.none();
}

#[test]
fn commands_see_an_engine_only_through_its_protocol() {
    let mut violations = Violations::default();
    for file in rust_files() {
        if file.room() != Some("cli") {
            continue;
        }
        for path in paths(&file.shipped) {
            for (room, doors) in CLI_DOORS {
                if path.is_below(&format!("crate::{room}")) && !doors.contains(&file.path.as_str())
                {
                    violations.add(
                        &file.path,
                        path.line,
                        format_args!("only {doors:?} may name `{room}`"),
                    );
                }
            }
        }
    }
    violations.none();
}

#[test]
fn only_the_command_line_prints_and_only_main_exits() {
    let mut violations = Violations::default();
    for file in rust_files() {
        for name in ["print", "println", "eprint", "eprintln", "dbg"] {
            for line in places(&file.shipped, &[name, "!"]) {
                let may_print = file.room() == Some("cli") || file.path == "src/build.rs";
                if !may_print || name == "dbg" {
                    violations.add(&file.path, line, format_args!("`{name}!` outside `cli`"));
                }
            }
        }
        for path in paths(&file.shipped) {
            let output = path.is_below("std::io::stdout") || path.is_below("io::stdout");
            if output && file.room() != Some("cli") {
                violations.add(&file.path, path.line, "standard output belongs to `cli`");
            }
            let exit = path.is_below("std::process::exit") || path.is_below("process::exit");
            if exit && file.path != "src/main.rs" {
                violations.add(&file.path, path.line, "`exit` outside `main.rs`");
            }
        }
    }
    violations.none();
}

#[test]
fn the_scheduler_decides_and_performs_nothing() {
    let mut violations = Violations::default();
    for file in rust_files() {
        if !file.path.starts_with("src/engine/src/scheduler/") {
            continue;
        }
        for path in paths(&file.shipped) {
            let is_allowed = SCHEDULER_NAMES.iter().any(|one| path.is_below(one));
            if path.is_below("crate") && !is_allowed {
                let what = format_args!("the scheduler may not name `{}`", path.text());
                violations.add(&file.path, path.line, what);
            }
        }
        for line in places(&file.shipped, &[".", "commit"]) {
            violations.add(&file.path, line, "the core loop commits");
        }
    }
    violations.none();
}

#[test]
fn clocks_are_read_in_named_places_only() {
    let mut violations = Violations::default();
    for file in rust_files() {
        if CLOCK_READERS
            .iter()
            .any(|(place, _)| file.path.starts_with(place))
        {
            continue;
        }
        for path in paths(&file.shipped) {
            let read = path.segments.windows(2).any(|pair| {
                pair[1] == "now"
                    && ["Instant", "SystemTime", "Utc", "Local"].contains(&pair[0].as_str())
            });
            // tokio's clock drives the timers of the server and nothing that is recorded.
            if read && !path.is_below("tokio::time") {
                violations.add(
                    &file.path,
                    path.line,
                    format_args!("`{}` reads a clock", path.text()),
                );
            }
        }
    }
    violations.none();
}
