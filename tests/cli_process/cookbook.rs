//! Every recipe of the cookbook, in a repository of its own.

use super::*;

/// A recipe: its files with their paths, and the commands to try it.
struct Recipe {
    title: String,
    files: Vec<(String, String)>,
    commands: String,
}

/// Returns the path that a block names in its first line, `# PATH`.
fn path_of(block: &str) -> Option<&str> {
    let path = block.lines().next()?.strip_prefix("# ")?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    (path.contains('.') && path.chars().all(is_path)).then_some(path)
}

fn recipes(page: &str) -> Vec<Recipe> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    let text = fs::read_to_string(format!("{docs}/{page}")).unwrap();
    let sections = text.split("\n## ").skip(1);
    let recipe = |section: &str| {
        let mut recipe = Recipe {
            title: section.lines().next().unwrap().to_owned(),
            files: Vec::new(),
            commands: String::new(),
        };
        for fenced in section.split("\n```").skip(1).step_by(2) {
            let (language, block) = fenced.split_once('\n').unwrap();
            match path_of(block) {
                Some(path) => recipe.files.push((path.to_owned(), format!("{block}\n"))),
                None if language == "sh" => recipe.commands.push_str(block),
                None => {}
            }
        }
        recipe
    };
    let found = sections.map(recipe);
    found.filter(|recipe| !recipe.files.is_empty()).collect()
}

fn shell(place: &Place, commands: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_workerctl"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    Command::new("sh")
        .args(["-euc", commands])
        .current_dir(place.workspace())
        .env_clear()
        .env("PATH", path)
        .env("HOME", place.directory.path().join("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn every_recipe_of_the_cookbook_works() {
    let all = ["cookbook.md", "cookbook-agents.md"]
        .map(recipes)
        .into_iter()
        .flatten();
    let mut count = 0;
    for recipe in all {
        count += 1;
        let (title, place) = (&recipe.title, Place::new());
        fs::remove_dir_all(place.workspace()).unwrap();
        fs::create_dir(place.workspace()).unwrap();
        for (path, text) in &recipe.files {
            let path = place.workspace().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let commands = "git init -qb main; git config user.name Ada; git config user.email ada@example.com; git add -A; git commit -qm begin";
        let prepared = shell(&place, commands);
        assert!(prepared.status.success(), "{title}: {prepared:?}");
        assert!(!recipe.commands.is_empty(), "{title}");
        let done = shell(&place, &recipe.commands);
        assert!(
            done.status.success(),
            "{title}: {}\n{}",
            text(&done.stdout),
            text(&done.stderr)
        );
    }
    assert!(count >= 12, "only {count} recipes");
}
