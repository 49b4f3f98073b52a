use super::*;
use crate::catalog;

/// Asks with a home directory of its own and an empty workspace.
fn with_grounds<T>(home: &Path, ask: impl FnOnce(&Grounds<'_>) -> T) -> T {
    let environment = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    ask(&Grounds {
        workspace: &home.join("workspace"),
        state_dir: &home.join("state"),
        trees: None,
        repository: &[],
        keys: &[],
        environment: &environment,
        catalog: &catalog::load(&home.join("workspace"), catalog::Options::default()),
    })
}

#[test]
fn a_restriction_needs_a_kernel_that_holds_it() {
    let reads = |paths: &[&str]| Sandbox {
        reads: Some(paths.iter().map(ToString::to_string).collect()),
        ..Sandbox::default()
    };
    let of = |level: Level, network: NetworkChoice| Sandbox {
        level,
        network,
        ..Sandbox::default()
    };
    let (any, none) = (NetworkChoice::Any, NetworkChoice::None);
    let tcp = NetworkChoice::Tcp(vec![443]);
    // What is lacking on a kernel with ABI 0, 2, 3 and 4.
    for (sandbox, wanted) in [
        (Sandbox::default(), [0, 0, 0, 0]),
        (of(Level::Auto, none.clone()), [4, 4, 4, 0]),
        (of(Level::Auto, tcp), [4, 4, 4, 0]),
        (of(Level::Required, any.clone()), [3, 3, 0, 0]),
        (of(Level::Required, none), [4, 4, 4, 0]),
        (of(Level::Private, any), [3, 3, 0, 0]),
        (reads(&["/usr", "~/x"]), [3, 3, 0, 0]),
        (reads(&[]), [3, 3, 0, 0]),
        (reads(&["/", "~/.config/gh"]), [0, 0, 0, 0]),
        (reads(&["/usr", "/./"]), [0, 0, 0, 0]),
    ] {
        let found = [0, 2, 3, 4].map(|abi| {
            let lacking = with_grounds(Path::new("/nowhere"), |grounds| {
                grounds.lacking(&sandbox, abi)
            });
            lacking.map_or(0, |lacking| lacking.abi)
        });
        assert_eq!(found, wanted, "{sandbox}");
    }
}
