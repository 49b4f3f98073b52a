use proptest::prelude::*;

use super::*;
use crate::model::Timestamp;

fn id(n: u8) -> RunId {
    RunId::following(
        None,
        Timestamp::from_millis(1_000 + i64::from(n)),
        u128::from(n),
    )
}

fn needs(worker: &str, repository: Option<&str>) -> Needs {
    Needs {
        worker: worker.to_owned(),
        repository: repository.map(str::to_owned),
        destinations: Vec::new(),
        schedule: None,
    }
}

#[test]
fn a_waiting_mutation_holds_up_its_own_worker_only() {
    let mut queue = Queue::new(4, 10);
    queue.submit(id(1), needs("a", Some("repo"))).unwrap();
    queue.submit(id(2), needs("b", Some("repo"))).unwrap();
    queue.submit(id(3), needs("b", None)).unwrap();
    queue.submit(id(4), needs("c", None)).unwrap();
    assert_eq!(queue.admit(), [id(1), id(4)]);
    let lease = Lease::Repository("repo".to_owned());
    assert_eq!(
        queue.waiting_for(id(2)),
        Some(WaitingFor::Lease(lease, id(1)))
    );
    assert_eq!(queue.waiting_for(id(3)), Some(WaitingFor::Worker(id(2))));
    queue.release(id(1));
    assert_eq!(queue.admit(), [id(2), id(3)]);
}

#[test]
fn two_runs_never_share_a_destination() {
    let mut queue = Queue::new(4, 10);
    let wants = |path: &str| Needs {
        destinations: vec![path.to_owned()],
        schedule: None,
        ..needs(path, None)
    };
    let mut other = wants("x.md");
    other.worker = "other".to_owned();
    queue.submit(id(1), wants("x.md")).unwrap();
    queue.submit(id(2), other).unwrap();
    assert_eq!(queue.admit(), [id(1)]);
    assert!(queue.admit().is_empty());
    queue.release(id(1));
    assert_eq!(queue.admit(), [id(2)]);
}

#[test]
fn a_full_queue_refuses_and_forgets_nothing() {
    let mut queue = Queue::new(1, 1);
    queue.submit(id(1), needs("a", None)).unwrap();
    assert_eq!(queue.submit(id(2), needs("a", None)), Err(Refused::Full(1)));
    assert_eq!(queue.submit(id(1), needs("a", None)), Err(Refused::Known));
    assert_eq!(queue.admit(), [id(1)]);
    queue.submit(id(2), needs("a", None)).unwrap();
    assert_eq!(queue.waiting_for(id(2)), Some(WaitingFor::Place));
}

#[test]
fn a_parked_run_frees_its_place_and_keeps_its_leases() {
    let mut queue = Queue::new(1, 10);
    queue.submit(id(1), needs("a", Some("repo"))).unwrap();
    queue.submit(id(2), needs("b", None)).unwrap();
    queue.submit(id(3), needs("c", Some("repo"))).unwrap();
    assert_eq!(queue.admit(), [id(1)]);
    queue.park(id(1));
    assert_eq!(queue.admit(), [id(2)]);
    queue.release(id(2));
    assert!(queue.admit().is_empty(), "the repository is still leased");
    queue.unpark(id(1));
    queue.release(id(1));
    assert_eq!(queue.admit(), [id(3)]);
}

#[test]
fn a_held_back_run_is_left_for_the_daemon() {
    let mut queue = Queue::new(2, 10);
    queue.readmit(id(1), needs("a", None));
    queue.hold_back(id(1));
    queue.submit(id(2), needs("a", None)).unwrap();
    assert_eq!(queue.admit(), [id(2)]);
    assert_eq!(queue.waiting_for(id(1)), Some(WaitingFor::Daemon));
}

#[test]
fn a_requeued_run_keeps_its_place_in_line() {
    let mut queue = Queue::new(1, 10);
    queue.submit(id(1), needs("a", None)).unwrap();
    queue.submit(id(2), needs("b", None)).unwrap();
    assert_eq!(queue.admit(), [id(1)]);
    queue.requeue(id(1));
    assert_eq!(queue.admit(), [id(1)]);
}

#[derive(Debug, Clone)]
enum Step {
    Submit(u8, u8, Option<u8>),
    Admit,
    Release(u8),
    Park(u8),
    Unpark(u8),
    Requeue(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..40u8, 0..4u8, proptest::option::of(0..3u8)).prop_map(|(r, w, l)| Step::Submit(r, w, l)),
        Just(Step::Admit),
        (0..40u8).prop_map(Step::Release),
        (0..40u8).prop_map(Step::Park),
        (0..40u8).prop_map(Step::Unpark),
        (0..40u8).prop_map(Step::Requeue),
    ]
}

proptest! {
    /// Against a model: leases are exclusive, lanes keep order, the limit holds, nothing is lost.
    #[test]
    fn the_queue_keeps_its_promises(steps in prop::collection::vec(step(), 1..120)) {
        let mut queue = Queue::new(3, 20);
        let mut known: BTreeMap<RunId, (String, Option<String>)> = BTreeMap::new();
        let mut active: BTreeSet<RunId> = BTreeSet::new();
        let mut parked: BTreeSet<RunId> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Submit(run, worker, lease) => {
                    let (worker, lease) = (format!("w{worker}"), lease.map(|l| format!("r{l}")));
                    let fits = known.len() - active.len() < 20 && !known.contains_key(&id(run));
                    let accepted = queue.submit(id(run), needs(&worker, lease.as_deref())).is_ok();
                    prop_assert_eq!(accepted, fits);
                    if accepted { known.insert(id(run), (worker, lease)); }
                }
                Step::Admit => {
                    for run in queue.admit() {
                        let (worker, lease) = &known[&run];
                        let earlier = known.range(..run).any(|(r, (w, _))| w == worker && !active.contains(r));
                        prop_assert!(!earlier, "an earlier run of the worker still waits");
                        if let Some(lease) = lease {
                            let shared = active.iter().any(|r| known[r].1.as_ref() == Some(lease));
                            prop_assert!(!shared, "a lease has two holders");
                        }
                        active.insert(run);
                        prop_assert!(active.len() - parked.len() <= 3 + parked.len());
                    }
                }
                Step::Release(run) => {
                    queue.release(id(run));
                    known.remove(&id(run));
                    active.remove(&id(run));
                    parked.remove(&id(run));
                }
                Step::Park(run) => { queue.park(id(run)); if active.contains(&id(run)) { parked.insert(id(run)); } }
                Step::Unpark(run) => { queue.unpark(id(run)); parked.remove(&id(run)); }
                Step::Requeue(run) => { queue.requeue(id(run)); active.remove(&id(run)); parked.remove(&id(run)); }
            }
            prop_assert_eq!(queue.active(), active.len());
            prop_assert_eq!(queue.waiting(), known.len() - active.len());
        }
        for run in active.clone() { queue.release(run); known.remove(&run); }
        while queue.waiting() > 0 {
            let next = queue.admit();
            prop_assert!(!next.is_empty(), "a waiting run can always start once nothing is active");
            for run in next { queue.release(run); }
        }
    }
}
