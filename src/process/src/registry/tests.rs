use super::*;

const EARLY: u64 = 1_000_000_000;
const LATE: u64 = 2_000_000_000;

fn command(pid: u32, started_us: u64, run: &str) -> Arc<Live> {
    Arc::new(Live {
        tag: 0x5743 << 48 | started_us,
        announced_at: started_us / 10_000,
        owner: Owner {
            run: run.to_owned(),
            attempt: 1,
        },
        may_control: false,
        thread: gettid(),
        pipes: [started_us, started_us + 7],
        pid: AtomicU32::new(pid),
        tagged_at: AtomicU64::new(NEVER),
        reaped_bytes: AtomicU64::new(0),
        reaped: AtomicU64::new(0),
        running: AtomicBool::new(true),
    })
}

/// An adopted process in a group of its own that carries nothing, started at `us`.
fn bare(us: u64) -> Evidence {
    Evidence {
        identity: (900, us / 10_000),
        group: 900,
        in_own_group: false,
        mark: Mark::Own,
        run: None,
        attempt: None,
        pipes: Vec::new(),
    }
}

/// To which of two commands, `a` older than `b`, the process belongs.
fn owners(evidence: &Evidence, a: &Arc<Live>, b: &Arc<Live>) -> (bool, bool) {
    let both = [Arc::clone(a), Arc::clone(b)];
    (belongs(evidence, a, &both), belongs(evidence, b, &both))
}

#[test]
fn group_tag_and_marker_each_name_one_command() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "b"));
    let in_group = Evidence {
        group: 10,
        ..bare(LATE)
    };
    assert_eq!(owners(&in_group, &a, &b), (true, false));
    let tagged = Evidence {
        mark: Mark::Command(b.tag),
        ..bare(LATE)
    };
    assert_eq!(owners(&tagged, &a, &b), (false, true));
    let marked = Evidence {
        run: Some("a".to_owned()),
        attempt: Some(1),
        ..bare(LATE)
    };
    assert_eq!(owners(&marked, &a, &b), (true, false));
    let older_attempt = Evidence {
        attempt: Some(2),
        ..marked
    };
    assert_eq!(owners(&older_attempt, &a, &b), (false, false));
}

#[test]
fn the_tag_outweighs_a_copied_group_or_marker() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "b"));
    let evidence = Evidence {
        group: 20,
        run: Some("b".to_owned()),
        attempt: Some(1),
        mark: Mark::Command(a.tag),
        ..bare(LATE)
    };
    assert_eq!(owners(&evidence, &a, &b), (true, false));
}

#[test]
fn what_cannot_be_told_apart_waits_for_the_last_possible_origin() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "b"));
    assert_eq!(owners(&bare(LATE), &a, &b), (false, false));
    a.running.store(false, Ordering::SeqCst);
    assert_eq!(owners(&bare(LATE), &a, &b), (false, true));
    b.running.store(false, Ordering::SeqCst);
    assert_eq!(owners(&bare(LATE), &a, &b), (true, true));
}

#[test]
fn a_later_command_is_not_a_possible_origin() {
    let (a, b) = (command(10, EARLY, "a"), command(20, LATE, "b"));
    assert_eq!(owners(&bare(EARLY + 500_000), &a, &b), (true, false));
    assert_eq!(owners(&bare(EARLY - 500_000), &a, &b), (false, false));
}

#[test]
fn two_commands_of_one_attempt_leave_the_marked_to_the_later_end() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "a"));
    let marked = Evidence {
        run: Some("a".to_owned()),
        attempt: Some(1),
        ..bare(LATE)
    };
    assert_eq!(owners(&marked, &a, &b), (false, false));
    a.running.store(false, Ordering::SeqCst);
    assert_eq!(owners(&marked, &a, &b), (false, true));
}

#[test]
fn a_bare_child_in_our_own_group_is_somebody_elses() {
    let a = command(10, EARLY, "a");
    let foreign = Evidence {
        in_own_group: true,
        ..bare(LATE)
    };
    assert!(!belongs(&foreign, &a, &[Arc::clone(&a)]));
    let hiding = Evidence {
        mark: Mark::Command(a.tag),
        ..foreign
    };
    assert!(belongs(&hiding, &a, &[Arc::clone(&a)]));
}

#[test]
fn a_command_whose_processes_all_carry_the_tag_did_not_start_one_without() {
    let older = command(10, EARLY, "a");
    older.tagged_at.store(EARLY / 10_000 + 1, Ordering::SeqCst);
    let b = command(20, EARLY + 1, "b");
    assert_eq!(owners(&bare(LATE), &older, &b), (false, true));
    assert_eq!(owners(&bare(EARLY + 5_000), &older, &b), (false, false));
    let shed = Evidence {
        mark: Mark::Absent,
        ..bare(LATE)
    };
    assert_eq!(owners(&shed, &older, &b), (false, false));
}

#[test]
fn what_a_command_forks_before_its_start_returns_is_not_taken_by_another() {
    let (a, starting) = (command(10, EARLY, "a"), command(0, EARLY + 1, "b"));
    let forked = Evidence {
        run: Some("b".to_owned()),
        attempt: Some(1),
        group: 77,
        ..bare(LATE)
    };
    assert_eq!(owners(&forked, &a, &starting), (false, true));
    assert_eq!(owners(&bare(LATE), &a, &starting), (false, false));
}

#[test]
fn a_pipe_names_its_command_where_nothing_else_does() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "b"));
    let evidence = Evidence {
        pipes: vec![3, b.pipes[1]],
        ..bare(LATE)
    };
    assert_eq!(owners(&evidence, &a, &b), (false, true));
}

#[test]
fn the_first_process_of_a_container_takes_no_process_of_others_for_its_own() {
    tag::set_own();
    assert!(is_foreign(Mark::Absent, 1));
    assert!(
        !is_foreign(Mark::Absent, 2),
        "whoever is given it here started it"
    );
    assert!(!is_foreign(Mark::Own, 1));
    assert!(!is_foreign(Mark::Command(7), 1));
}

#[test]
fn who_died_before_its_command_was_marked_is_counted_for_the_one_that_can_have_started_it() {
    let (a, b) = (command(10, EARLY, "a"), command(20, EARLY + 1, "b"));
    let both = [Arc::clone(&a), Arc::clone(&b)];
    let dead = Stat {
        pid: u32::MAX,
        state: b'Z',
        threads: 1,
        parent: std::process::id(),
        group: 900,
        start: EARLY / 10_000 + 1,
    };
    let of = |live: &Live, dead| adopted::has_left(live, &dead, Mark::Own, &both);
    assert_eq!(
        (of(&a, dead), of(&b, dead)),
        (false, false),
        "it may be either's"
    );
    b.tagged_at.store(EARLY / 10_000, Ordering::SeqCst);
    assert_eq!((of(&a, dead), of(&b, dead)), (true, false));
}
