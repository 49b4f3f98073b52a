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

/// Commands that leave a damaged object in the run's own repository, which the git library would read for ever.
fn damaged_objects() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (kind, revision) in [
        ("commit", "HEAD"),
        ("tree", "HEAD^{tree}"),
        ("blob", "HEAD:q"),
    ] {
        let file = format!(
            "echo a > q; git add q; git commit -qm q; f=.git/objects/$(git rev-parse {revision} | sed 's,..,&/,'); chmod u+w $f"
        );
        for (how, damage) in [
            ("cut", "truncate -s -10 $f"),
            ("checksum", "truncate -s -2 $f"),
            ("garbage", "echo >> $f"),
        ] {
            found.push((format!("{kind}_{how}"), format!("{file}; {damage}")));
        }
        // The pack comes last, because git itself would read it for ever. It has one delta. Its id is `ab…`, and so is that of its base, or `cd…`, which nothing has.
        let id = "ab".repeat(20);
        let tip = match kind {
            "commit" => format!("echo {id} > .git/refs/heads/main"),
            "tree" => format!(
                "git update-ref HEAD $(printf 'tree {id}\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nx\\n' $(git rev-parse HEAD) | git hash-object -t commit -w --stdin)"
            ),
            _ => format!(
                "git update-ref HEAD $(git commit-tree -p HEAD -m x $(printf '100644 blob {id}\\tf\\n' | git mktree --missing))"
            ),
        };
        for (how, base) in [("itself", "ab"), ("baseless", "cd")] {
            found.push((
                format!("{kind}_delta_{how}"),
                format!("{tip}; BASE={base} perl -e '{DELTA_PACK}'"),
            ));
        }
        found.push((
            format!("{kind}_length"),
            format!(
                "i=$(KIND={kind} perl -e '{WRONG_LENGTH}'); {}",
                tip.replace(&id, "$i")
                    .replace("'tree $i", "'tree '$i'")
                    .replace("blob $i", "blob '$i'")
            ),
        ));
    }
    let planted = "t=$(git rev-parse HEAD^{tree} | sed 's,..,&/,'); mkdir -p .git/objects/${t%/*}; head -c 30 $(head -1 .git/objects/info/alternates)/$t > .git/objects/$t; echo x > q";
    found.push(("base_planted".to_owned(), planted.to_owned()));
    found
}

/// Writes a pack with one delta, and its index.
const DELTA_PACK: &str = "use Compress::Zlib; use Digest::SHA \"sha1\"; my $h = pack(\"H*\", \"ab\" x 20); my $d = \"\\x05\\x05\\x90\\x05\"; my $e = chr(0x70 | length $d) . pack(\"H*\", $ENV{BASE} x 20) . compress($d); my $p = \"PACK\" . pack(\"NN\", 2, 1) . $e; my $s = sha1($p); my $x = \"\\xfftOc\" . pack(\"N\", 2) . join(\"\", map { pack(\"N\", $_ >= 0xab ? 1 : 0) } 0..255) . $h . pack(\"N\", crc32($e)) . pack(\"N\", 12) . $s; my $n = \".git/objects/pack/pack-\" . \"e\" x 40; open(my $f, \">\", \"$n.pack\"); print $f $p . $s; close $f; open($f, \">\", \"$n.idx\"); print $f $x . sha1($x)";

/// Writes a loose object that is shorter than its header says, and prints its id.
const WRONG_LENGTH: &str = "use Compress::Zlib; use Digest::SHA \"sha1_hex\"; my $o = \"$ENV{KIND} 90000\\0abc\"; my $i = sha1_hex($o); my $d = \".git/objects/\" . substr($i, 0, 2); mkdir $d; open(my $f, \">\", \"$d/\" . substr($i, 2)); print $f compress($o); print $i";

#[test]
fn a_result_that_is_too_deep_or_too_large_fails_and_ends_no_engine() {
    let rows = SKILLS.map(|(id, code, text)| (id.to_owned(), code, text.to_owned()));
    fail_and_end_no_engine(&rows);
}

#[test]
fn a_damaged_object_of_a_run_fails_it_and_ends_no_engine() {
    let rows = damaged_objects().into_iter();
    let rows = rows.map(|(id, text)| (id, "repository_damaged", text));
    fail_and_end_no_engine(&rows.collect::<Vec<_>>());
}

/// Runs each skill, given by its id, the code of its failure and its command, and a sound one after it.
fn fail_and_end_no_engine(rows: &[(String, &str, String)]) {
    let mut skills = String::new();
    for (id, _, text) in rows {
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
    for (id, code, _) in rows {
        let detail = workspace.run(&["run", id, "--json"]).value();
        assert_eq!(
            detail["summary"]["outcome"]["failure"]["code"], *code,
            "{id}: {detail}"
        );
        let next = workspace.run(&["run", "fine"]);
        assert_eq!(next.code, 0, "{id}: {next:?}");
    }
}

#[test]
fn packs_of_a_run_with_chains_of_deltas_land() {
    let commits =
        "for i in $(seq 40); do seq $((2000 + i)) > n; git add n; git commit -qm $i; done";
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: offsets, description: d, mutating: true, run: '{commits}; git repack -adq --depth=40'}}\n  - {{id: names, description: d, mutating: true, run: '{}; git -c repack.useDeltaBaseOffset=false repack -adq'}}\n",
        commits.replace("2000", "4000")
    ));
    for skill in ["offsets", "names"] {
        let ran = workspace.run(&["run", skill]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}
