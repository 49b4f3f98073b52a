//! What a person does while a commit lands, and what must be true of it afterwards.

use std::collections::BTreeSet;

use crate::rig::Scene;

/// One thing that a person does.
pub(crate) struct Action {
    pub(crate) name: &'static str,
    act: fn(&Scene),
    /// Text that the person wrote, to be found in the work tree or in a commit.
    mark: Option<&'static str>,
    /// Paths that may differ from `HEAD` because of it.
    touches: &'static [&'static str],
    /// Paths of the run that the person's commits may change.
    means: &'static [&'static str],
}

/// What a person has done, and how they left the repository.
pub(crate) struct Deed {
    actions: Vec<&'static Action>,
    head: String,
    main: Option<String>,
    commits: Vec<String>,
}

const MINE: &str = "written by a person";

fn append(scene: &Scene, path: &str) {
    let before = scene.read(path).unwrap_or_default();
    scene.write(path, &format!("{before}{MINE}\n"));
}

/// As an editor saves: another file takes the name, with what the person last saw and their line.
fn save_as_seen(scene: &Scene, path: &str) {
    let seen = scene.git(&["show", &format!("HEAD:{path}")]);
    scene.write("saved~", &format!("{seen}\n{MINE}\n"));
    std::fs::rename(scene.repo().join("saved~"), scene.repo().join(path)).unwrap();
}

fn quietly(scene: &Scene, args: &[&str]) {
    let _ = scene.try_git(args);
}

const fn plain(name: &'static str, act: fn(&Scene)) -> Action {
    Action {
        name,
        act,
        mark: None,
        touches: &[],
        means: &[],
    }
}

const fn writes(name: &'static str, act: fn(&Scene), touches: &'static [&'static str]) -> Action {
    Action {
        name,
        act,
        mark: Some(MINE),
        touches,
        means: touches,
    }
}

pub(crate) const ACTIONS: [Action; 31] = [
    writes(
        "edit the same file",
        |s| append(s, "shared.txt"),
        &["shared.txt"],
    ),
    writes(
        "save the same file",
        |s| save_as_seen(s, "shared.txt"),
        &["shared.txt"],
    ),
    writes(
        "edit another file",
        |s| append(s, "theirs.txt"),
        &["theirs.txt"],
    ),
    writes(
        "create the file that the commit creates",
        |s| append(s, "new/created.txt"),
        &["new/created.txt"],
    ),
    writes(
        "edit the file that the commit deletes",
        |s| append(s, "gone.txt"),
        &["gone.txt"],
    ),
    Action {
        touches: &["shared.txt"],
        means: &["shared.txt"],
        ..plain("delete", |s| {
            let _ = std::fs::remove_file(s.repo().join("shared.txt"));
        })
    },
    Action {
        touches: &["dir/deep.txt"],
        means: &["dir/deep.txt"],
        ..plain("chmod", |s| {
            use std::os::unix::fs::PermissionsExt;
            let path = s.repo().join("dir/deep.txt");
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        })
    },
    writes(
        "git add of the same file",
        |s| {
            append(s, "shared.txt");
            quietly(s, &["add", "shared.txt"]);
        },
        &["shared.txt"],
    ),
    writes(
        "git add of another file",
        |s| {
            append(s, "theirs.txt");
            quietly(s, &["add", "theirs.txt"]);
        },
        &["theirs.txt"],
    ),
    writes(
        "git commit -am",
        |s| {
            append(s, "theirs.txt");
            quietly(s, &["commit", "-q", "-am", "person"]);
        },
        &["theirs.txt"],
    ),
    writes(
        "git commit -am with the same file",
        |s| {
            append(s, "shared.txt");
            quietly(s, &["commit", "-q", "-am", "person"]);
        },
        &["shared.txt"],
    ),
    writes(
        "git commit of another file",
        |s| {
            append(s, "theirs.txt");
            quietly(s, &["commit", "-q", "-m", "person", "--", "theirs.txt"]);
        },
        &["theirs.txt"],
    ),
    writes(
        "git add, git commit",
        |s| {
            append(s, "theirs.txt");
            quietly(s, &["add", "theirs.txt"]);
            quietly(s, &["commit", "-q", "-m", "person"]);
        },
        &["theirs.txt"],
    ),
    plain("git commit --amend", |s| {
        quietly(s, &["commit", "-q", "--amend", "-m", "amended"]);
    }),
    plain("git switch", |s| quietly(s, &["switch", "-q", "other"])),
    plain("git switch to the same commit", |s| {
        quietly(s, &["branch", "-f", "feature", "HEAD"]);
        quietly(s, &["switch", "-q", "feature"]);
    }),
    plain("git switch -c", |s| {
        quietly(s, &["switch", "-q", "-c", "new"]);
    }),
    plain("git checkout --detach", |s| {
        quietly(s, &["checkout", "-q", "--detach"]);
    }),
    plain("git checkout -- file", |s| {
        quietly(s, &["checkout", "-q", "--", "shared.txt"]);
    }),
    plain("git checkout -- .", |s| {
        quietly(s, &["checkout", "-q", "--", "."]);
    }),
    plain("git reset --hard HEAD~1", |s| {
        quietly(s, &["reset", "-q", "--hard", "HEAD~1"]);
    }),
    plain("git reset --hard", |s| {
        quietly(s, &["reset", "-q", "--hard"]);
    }),
    writes(
        "git stash",
        |s| {
            append(s, "theirs.txt");
            quietly(s, &["stash", "-q"]);
        },
        &["theirs.txt"],
    ),
    Action {
        touches: &["second.txt"],
        mark: Some("stashed"),
        ..plain("git stash pop", |s| quietly(s, &["stash", "pop", "-q"]))
    },
    plain("git merge", |s| {
        quietly(s, &["merge", "-q", "--no-edit", "other"]);
    }),
    Action {
        touches: &["theirs.txt"],
        ..plain("git rebase that stops", |s| {
            quietly(s, &["rebase", "-q", "conflicting"]);
        })
    },
    plain("git pull", |s| {
        quietly(
            s,
            &["pull", "-q", "--no-rebase", "--no-edit", "origin", "main"],
        );
    }),
    plain("git gc --prune=now", |s| {
        quietly(s, &["gc", "-q", "--prune=now"]);
    }),
    plain("git pack-refs --all", |s| {
        quietly(s, &["pack-refs", "--all"]);
    }),
    plain("git worktree add, prune", |s| {
        quietly(s, &["worktree", "add", "-q", "../linked", "other"]);
        quietly(s, &["worktree", "prune"]);
    }),
    plain("git update-ref", |s| {
        let (ok, text) = s.try_git(&["commit-tree", "-p", "main", "-m", "person", "main^{tree}"]);
        if ok {
            quietly(s, &["update-ref", "refs/heads/main", text.trim()]);
        }
    }),
];

impl Action {
    /// Does it, after what the person has done `before`.
    pub(crate) fn perform(&'static self, scene: &Scene, before: Option<Deed>) -> Deed {
        let tip = scene.tip("HEAD");
        (self.act)(scene);
        let (mut actions, mut commits) = before.map_or((Vec::new(), Vec::new()), |deed| {
            // What this action takes away itself is not lost.
            let reachable = reachable(scene);
            let kept = deed
                .commits
                .into_iter()
                .filter(|one| reachable.contains(one));
            (deed.actions, kept.collect())
        });
        actions.push(self);
        commits.extend(scene.tip("HEAD").filter(|now| Some(now) != tip.as_ref()));
        Deed {
            actions,
            head: scene.head(),
            main: scene.tip("main"),
            commits,
        }
    }
}

/// Removes every lock, as git's own message advises.
pub(crate) fn remove_locks(scene: &Scene) {
    for lock in scene.locks() {
        let _ = std::fs::remove_file(lock);
    }
}

impl Deed {
    /// What is wrong afterwards, if anything. `left` are paths that the landing has named.
    pub(crate) fn check(&self, scene: &Scene, left: &BTreeSet<String>) -> Result<(), String> {
        scene.is_sound()?;
        if scene.head() != self.head {
            return Err(format!("`HEAD` was {}, is {}", self.head, scene.head()));
        }
        self.check_branch(scene)?;
        // What was written may have been taken away again by the action after it.
        if let Some(mark) = self.actions.last().and_then(|action| action.mark)
            && !is_kept(scene, mark)
        {
            return Err("what the person wrote is gone".into());
        }
        let mut allowed: BTreeSet<String> = left.clone();
        let touched = self.actions.iter().flat_map(|action| action.touches);
        allowed.extend(touched.map(|path| (*path).to_owned()));
        let changed = scene.changed();
        let more: Vec<_> = changed.difference(&allowed).collect();
        if more.is_empty() {
            Ok(())
        } else {
            Err(format!("changed although nobody did: {more:?}"))
        }
    }

    fn check_branch(&self, scene: &Scene) -> Result<(), String> {
        let reachable = reachable(scene);
        if self
            .commits
            .iter()
            .any(|commit| !reachable.contains(commit))
        {
            return Err("the person's commit is lost".into());
        }
        let now = scene.tip("main").unwrap_or_default();
        if let Some(main) = &self.main {
            let (forward, _) = scene.try_git(&["merge-base", "--is-ancestor", main, "main"]);
            if !forward {
                return Err(format!("main was at {main}, is at {now}"));
            }
        }
        self.check_not_reverted(scene)
    }

    /// A later commit must not take the run's change out again unless somebody meant it to.
    fn check_not_reverted(&self, scene: &Scene) -> Result<(), String> {
        let to = scene.to.to_string();
        let range = format!("{to}..main");
        let (landed, _) = scene.try_git(&["merge-base", "--is-ancestor", &to, "main"]);
        if !landed {
            return Ok(());
        }
        let since = scene.git(&["rev-list", "--no-merges", "--ancestry-path", &range]);
        for commit in since.lines() {
            let parent = format!("{commit}^");
            let changed = scene.git(&["diff", "--name-only", &parent, commit]);
            let ours = changed
                .lines()
                .filter(|path| crate::rig::RUN_PATHS.contains(path));
            for path in ours {
                let is_meant = |action: &&Action| action.means.contains(&path);
                if !self.actions.iter().any(is_meant) {
                    return Err(format!("{commit} takes `{path}` out again"));
                }
                let (_, text) = scene.try_git(&["show", &format!("{commit}:{path}")]);
                if path != "gone.txt" && !text.contains("RUN") {
                    return Err(format!("{commit} reverts `{path}`"));
                }
            }
        }
        Ok(())
    }
}

fn reachable(scene: &Scene) -> BTreeSet<String> {
    let commits = scene.git(&["rev-list", "--branches", "HEAD"]);
    commits.lines().map(str::to_owned).collect()
}

/// Whether a text stands in the work tree, or in any commit that is reachable.
fn is_kept(scene: &Scene, mark: &str) -> bool {
    let mut found = false;
    let repo = scene.repo();
    crate::rig::walk(&repo, &mut |path| {
        let inside = path
            .strip_prefix(&repo)
            .is_ok_and(|path| !path.starts_with(".git"));
        found |= inside && std::fs::read_to_string(path).is_ok_and(|text| text.contains(mark));
    });
    let search = format!("-S{mark}");
    found || {
        let stashes = scene.git(&["stash", "list", "--format=%H"]);
        let mut args = vec!["log", "--all", "-m", "--format=%H", &search];
        args.extend(stashes.lines());
        let (_, commits) = scene.try_git(&args);
        !commits.trim().is_empty()
    }
}
