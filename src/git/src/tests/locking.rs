use super::*;

#[test]
fn a_lease_names_its_holder_and_ends_with_it() {
    let bed = Bed::with_commit();
    let facts = locate(&bed.path()).unwrap();
    let held = RepositoryLease::acquire(&facts, "/srv/state").unwrap();
    let refused = RepositoryLease::acquire(&facts, "/srv/other").unwrap_err();
    assert_eq!(refused.code(), "locked");
    assert!(refused.to_string().contains("/srv/state"), "{refused}");
    drop(held);
    RepositoryLease::acquire(&facts, "/srv/other").unwrap();
    assert_eq!(bed.status(), "", "the lock file is not in the work tree");
}

#[test]
fn what_an_engine_with_the_same_pid_left_stands_in_nobodys_way() {
    let bed = Bed::with_commit();
    let pid = std::process::id();
    for n in 0..2_000 {
        fs::write(bed.at(&format!(".git/workerctl-tmp-{pid}-{n}")), "").unwrap();
    }
    let _lease = RepositoryLease::acquire(&locate(&bed.path()).unwrap(), "x").unwrap();
    let names = fs::read_dir(bed.at(".git")).unwrap();
    let left = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("workerctl-tmp-")
    });
    assert_eq!(left.count(), 0);
}
