//! Results that are too deep or too large for the engine's memory.

use std::fmt::Write;

use crate::workspace::Workspace;

/// Each skill with the code of its failure.
const SKILLS: [(&str, &str, &str); 9] = [
    (
        "deep",
        "path_name",
        "p=$(printf 'd/%.0s' $(seq 1 300)); mkdir -p $p; echo x > $p/f",
    ),
    (
        "deep_commit",
        "repository_damaged",
        "b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\\tf\\n' $b | git mktree); for i in $(seq 400); do t=$(printf '040000 tree %s\\td\\n' $t | git mktree); done; git update-ref HEAD $(git commit-tree -p HEAD -m d $t)",
    ),
    (
        "large_commit",
        "repository_damaged",
        "git update-ref HEAD $(yes aaaaaaaaaaaaaaa | head -c 17M | git commit-tree -p HEAD HEAD^{tree})",
    ),
    (
        "large_file",
        "repository_damaged",
        "git update-index --add --cacheinfo 100644,$(head -c 513M /dev/zero | git hash-object -w --stdin),f; git commit -qm f",
    ),
    (
        "many_paths",
        "repository_damaged",
        "t=$(printf '100644 blob %s\\tf\\n' $(echo x | git hash-object -w --stdin) | git mktree); for i in $(seq 12); do t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\\t%s\\n' $t $n; done | git mktree); done; git update-ref HEAD $(git commit-tree -p HEAD -m d $t)",
    ),
    (
        "unknown_mode",
        "repository_damaged",
        "t=$(printf '100666 blob %s\\tf\\n' $(echo x | git hash-object -w --stdin) | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m d $t)",
    ),
    (
        "nested_index",
        "repository_damaged",
        "perl -e 'my $t = join(\"\", map { ($_ ? \"d\" : \"\") . \"\\0-1 1\\n\" } 0..200000) . \"d\\0-1 0\\n\"; my $i = \"DIRC\" . pack(\"NN\", 2, 0) . \"TREE\" . pack(\"N\", length $t) . $t; use Digest::SHA; print $i . Digest::SHA::sha1($i)' > .git/index",
    ),
    (
        "macros",
        "rule_file",
        "for i in $(seq 40 -1 0); do echo \"[attr]m$i m$((i + 1)) m$((i + 1))\"; done > .gitattributes; echo '* m0' >> .gitattributes",
    ),
    ("sparse", "rule_file", "truncate -s 900G .gitignore"),
];

#[test]
fn a_result_that_is_too_deep_or_too_large_fails_and_ends_no_engine() {
    let mut skills = String::new();
    for (id, _, text) in SKILLS {
        writeln!(
            skills,
            "  - id: {id}\n    description: d\n    mutating: true\n    run: |\n      {text}"
        )
        .unwrap();
    }
    let workspace = Workspace::with_skills(&format!(
        "{skills}  - {{id: fine, description: d, mutating: true, run: echo x >> fine}}\n"
    ));
    workspace.write(".gitignore", "*.o\n");
    workspace.commit_all("rules");
    for (id, code, _) in SKILLS {
        let detail = workspace.run(&["run", id, "--json"]).value();
        assert_eq!(
            detail["summary"]["outcome"]["failure"]["code"], code,
            "{id}: {detail}"
        );
        let next = workspace.run(&["run", "fine"]);
        assert_eq!(next.code, 0, "{id}: {next:?}");
    }
}
