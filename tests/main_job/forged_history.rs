//! A command writes files into the object store of its run that state other parents of commits than the commits do.

use serde_json::Value;

use crate::workspace::Workspace;

/// Writes a commit graph in which the only parent of commit `$1` is `$2`. The layout is fixed: a header, the fan-out
/// table, the sorted ids and 36 bytes for each commit, of which the parent is the 21st to 24th.
const FORGE: &str = r#"
set -e
printf '%s\n%s\n' "$1" "$2" |
  git -c commitGraph.generationVersion=1 commit-graph write --stdin-commits
git rev-list "$1" "$2" | sort > "$TMPDIR/ids"
count=$(wc -l < "$TMPDIR/ids")
child=$(($(grep -n "$1" "$TMPDIR/ids" | cut -d: -f1) - 1))
claimed=$(($(grep -n "$2" "$TMPDIR/ids" | cut -d: -f1) - 1))
graph=.git/objects/info/commit-graph
chmod u+w "$graph"
printf "$(printf '\\000\\000\\000\\%03o' "$claimed")" |
  dd of="$graph" bs=1 seek=$((1080 + 20 * count + 36 * child + 20)) conv=notrunc 2> "$TMPDIR/dd"
"#;

const SKILLS: &str = r#"
  - id: rewinds
    description: d
    mutating: true
    run: |
      set -e
      base=$(git rev-parse HEAD)
      echo y > y; git add y
      child=$(git commit-tree -p HEAD~1 -m child "$(git write-tree)")
      git update-ref HEAD "$child"
      sh forge.sh "$child" "$base"
  - id: leaves-out
    description: d
    mutating: true
    run: |
      set -e
      base=$(git rev-parse HEAD)
      echo x > x; git add x; git commit -qm middle
      echo y > y; git add y; git commit -qm child
      sh forge.sh "$(git rev-parse HEAD)" "$base"
  - id: shallow
    description: d
    mutating: true
    run: |
      set -e
      hidden=$(git commit-tree -m hidden "HEAD^{tree}")
      side=$(git commit-tree -p "$hidden" -m side "HEAD^{tree}")
      child=$(git commit-tree -p HEAD -p "$side" -m child "HEAD^{tree}")
      git update-ref HEAD "$child"
      echo "$side" > .git/shallow
  - id: shallow-without-parent
    description: d
    mutating: true
    run: |
      set -e
      hidden=$(git commit-tree -m "hidden too" "HEAD^{tree}")
      side=$(git commit-tree -p "$hidden" -m side "HEAD^{tree}")
      child=$(git commit-tree -p HEAD -p "$side" -m child "HEAD^{tree}")
      git update-ref HEAD "$child"
      echo "$side" > .git/shallow
      rm -f .git/objects/"$(echo "$hidden" | cut -c1-2)/$(echo "$hidden" | cut -c3-)"
  - id: other-derived-files
    description: d
    mutating: true
    run: |
      set -e
      echo x > x; git add x; git commit -qm one
      mkdir -p .git/objects/info/commit-graphs
      echo forged > .git/objects/info/commit-graphs/commit-graph-chain
      echo forged > .git/objects/pack/multi-pack-index
      echo forged > .git/objects/pack/pack-1.bitmap
      echo forged > .git/objects/pack/pack-1.rev
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("forge.sh", FORGE);
    workspace.commit_all("the script");
    workspace.write("persons.txt", "a person's work\n");
    workspace.commit_all("a person's commit");
    workspace
}

fn failure(detail: &Value) -> &Value {
    &detail["summary"]["outcome"]["failure"]
}

fn is_sound(workspace: &Workspace) {
    workspace.git(&["fsck", "--strict"]);
    workspace.git(&["gc", "-q", "--prune=now"]);
}

#[test]
fn a_forged_commit_graph_removes_no_commit_of_the_branch() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace.run(&["run", "rewinds", "--json"]).value();
    assert_eq!(failure(&detail)["code"], "history_rewritten", "{detail}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    is_sound(&workspace);
}

#[test]
fn what_a_forged_commit_graph_leaves_out_is_imported_all_the_same() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    workspace.run(&["run", "leaves-out"]).expect_code(0);
    is_sound(&workspace);
    assert_eq!(workspace.git(&["rev-parse", "HEAD~2"]), before);
}

#[test]
fn a_run_cannot_make_its_history_shallow() {
    let workspace = workspace();
    workspace.run(&["run", "shallow"]).expect_code(0);
    is_sound(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let done = workspace.run(&["run", "shallow-without-parent"]);
    assert_ne!(done.code, 0, "{}", done.stdout);
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    is_sound(&workspace);
}

#[test]
fn other_derived_files_of_a_run_are_not_read() {
    let workspace = workspace();
    workspace
        .run(&["run", "other-derived-files"])
        .expect_code(0);
    is_sound(&workspace);
}
