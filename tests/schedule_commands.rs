//! What schedules will do, told by the program: `schedule next`, `explain`, `simulate`, `import-crontab`.

use crate::workspace;

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use workspace::Workspace;
use workspace::daemon::Daemon;

const SKILLS: &str = r#"
  - id: sync
    description: every twenty minutes
    run: "true"
    schedule: {cron: "*/20 * * * *", timezone: Europe/Berlin, blackout: {hours: "2-3"}}
  - id: report
    description: every morning
    run: "true"
    retry: {max_attempts: 3}
    schedule: {cron: "30 9 * * 1-5", timezone: Europe/Berlin, overlap: buffer_one, pause_on_failure: 2, max_actions: 9}
  - id: publish
    description: after the report
    run: "true"
    schedule: {after: {skill: report, on: succeeded}}
  - id: apology
    description: when the report fails
    run: "true"
    schedule: {after: {skill: report, on: failed}}
"#;

fn schedule(workspace: &Workspace, arguments: &[&str]) -> Value {
    let line = [&["schedule"], arguments].concat();
    workspace.json(&line)
}

/// What stands in a field of each item.
fn each(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items
        .map(|item| item[key].as_str().unwrap_or("null").to_owned())
        .collect()
}

#[test]
fn the_next_due_times_of_one_of_all_and_of_an_expression() {
    let workspace = Workspace::with_skills(SKILLS);
    let all = schedule(
        &workspace,
        &["next", "-n", "3", "--after", "2026-11-23T08:05:00Z"],
    );
    assert_eq!(
        each(&all["next"], "schedule"),
        ["w/sync", "w/report", "w/sync"]
    );
    assert_eq!(
        each(&all["next"], "local"),
        [
            "2026-11-23T09:20:00+01:00",
            "2026-11-23T09:30:00+01:00",
            "2026-11-23T09:40:00+01:00"
        ]
    );
    assert_eq!(all["by_events"], json!(["w/apology", "w/publish"]));
    // Six slots between 02:00 and 03:59 are blocked.
    let line = ["next", "W/SYNC", "-n", "2", "--after", "2026-11-23T01:30"];
    let one = schedule(&workspace, &line);
    assert_eq!(
        each(&one["next"], "local"),
        ["2026-11-23T01:40:00+01:00", "2026-11-23T04:00:00+01:00"]
    );
    assert_eq!(one["omitted"][0]["count"], 6);
    assert_eq!(one["omitted"][0]["status"], "blocked_hours");
    let line = [
        "schedule",
        "next",
        "--cron",
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--after",
        "2026-03-28T12:00",
        "-n",
        "2",
    ];
    let bare = workspace.run(&line);
    assert_eq!(
        bare.stdout,
        "2026-03-29T03:00:00+02:00\n2026-03-30T02:30:00+02:00\n"
    );
    let event = workspace.run(&["schedule", "next", "w/publish"]);
    assert_eq!(event.stdout, "");
    assert!(event.stderr.contains("follows no clock"), "{event:?}");
}

#[test]
fn what_is_no_schedule_is_refused_with_what_may_be_meant() {
    let workspace = Workspace::with_skills(SKILLS);
    let refused = workspace.run(&["schedule", "next", "w/snyc"]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("did you mean `w/sync`?"));
    for line in [
        &["next", "60 * * * *"][..],
        &["next", "w/sync", "-z", "UTC"],
        &["next", "--after", "2h"],
        &["next", "@daily", "-z", "Mars/Base"],
        &["simulate", "--to", "now"],
        &["simulate", "--from", "2026-01-01", "--to", "2027-02-01"],
        &["simulate", "--duration", "x"],
        &["simulate", "--down", "2026-01-01"],
        &["simulate", "--down", "+2h/now"],
        &["simulate", "--to", "+400d"],
    ] {
        let refused = workspace.run(&[&["schedule"], line].concat());
        assert_eq!(refused.code, 2, "{line:?}: {refused:?}");
        assert!(refused.stderr.contains("hint: ") || line[1] == "w/sync");
    }
}

#[test]
fn each_policy_is_told_in_a_sentence() {
    let workspace = Workspace::with_skills(SKILLS);
    let told = schedule(&workspace, &["explain", "w/report", "-n", "1"]);
    assert_eq!(
        told["description"],
        "at 09:30 on Monday to Friday, Europe/Berlin"
    );
    let policies = told["policies"].as_array().unwrap();
    let says = |about: &str| {
        let found = policies.iter().find(|one| one["key"] == about).unwrap();
        found["text"].as_str().unwrap().to_owned()
    };
    assert!(says("overlap").contains("one slot waits for its end"));
    assert!(says("catch_up").contains("the last of them runs later, within 1 day"));
    assert!(says("max_actions").contains("9 times in all: 0 used, 9 left"));
    assert!(says("retry").contains("up to 3 attempts"));
    assert!(says("pause_on_failure").contains("2 failures in a row"));
    let all = workspace.run(&["schedule", "explain"]).stdout;
    assert!(all.contains("each time a run of w/report has succeeded"));
    let bare = workspace
        .run(&["schedule", "explain", "0 9 * * 1-5"])
        .stdout;
    assert!(bare.starts_with("at 09:00 on Monday to Friday, UTC\n"));
}

#[test]
fn a_virtual_clock_runs_over_all_schedules() {
    let workspace = Workspace::with_skills(SKILLS);
    let line = [
        "simulate",
        "--from",
        "2026-11-23T00:00:00+01:00",
        "--to",
        "+1d",
        "--duration",
        "sync=25m",
        "--duration",
        "10m",
    ];
    let told = schedule(&workspace, &line);
    let of = |id: &str| {
        let all = told["schedules"].as_array().unwrap();
        all.iter()
            .find(|one| one["schedule"] == id)
            .unwrap()
            .clone()
    };
    // 66 slots are not blocked. Each second one from 00:00, and from 04:00, meets the run before it.
    assert_eq!(
        of("w/sync")["totals"],
        json!({"ran": 33, "skipped_overlap": 33, "blocked_hours": 6})
    );
    assert_eq!(of("w/report")["totals"], json!({"ran": 1}));
    assert_eq!(of("w/publish")["totals"], json!({"ran": 1}));
    assert_eq!(of("w/apology")["totals"], json!({}));
    let runs = told["runs"].as_array().unwrap();
    let publish = runs.iter().find(|run| run["schedule"] == "w/publish");
    assert_eq!(publish.unwrap()["due"], "2026-11-23T08:40:00.000Z");
    assert_eq!(told["overlaps"].as_array().unwrap().len(), 33);
    assert_eq!(schedule(&workspace, &line), told);
    let text = workspace.run(&[&["schedule"], &line[..]].concat()).stdout;
    assert!(
        text.contains("33 skipped_overlap, 6 blocked_hours"),
        "{text}"
    );
    assert!(text.contains("####"), "{text}");
}

#[test]
fn how_long_a_run_lasts_is_known_from_the_last_ones() {
    let workspace = Workspace::with_skills(SKILLS);
    assert_eq!(workspace.run(&["run", "w/report"]).code, 0);
    let told = schedule(&workspace, &["simulate"]);
    let durations = told["durations"].as_array().unwrap();
    let of = |skill: &str| durations.iter().find(|one| one["skill"] == skill).unwrap();
    assert_eq!(of("w/report")["source"], "median");
    assert_eq!(of("w/report")["run_count"], 1);
    assert_eq!(of("w/sync")["source"], "assumed");
    assert_eq!(of("w/sync")["duration_ms"], 60_000);
}

/// Crontabs as they are found on machines.
const CRONTABS: [(&str, usize); 4] = [
    (
        "# /etc/crontab: system-wide crontab\nSHELL=/bin/sh\nPATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin\n\n# m h dom mon dow user\tcommand\n17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n25 6\t* * *\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )\n47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.weekly )\n",
        3,
    ),
    (
        "SHELL=/bin/bash\nMAILTO=root\nCRON_TZ=America/New_York\n# Nightly dump: \"all\" databases, {date} and all\n30 2 * * * pg_dumpall | gzip > /backup/all-$(date +\\%Y\\%m\\%d).sql.gz && echo '{date}' \"{run}\" ${HOME}\n@hourly /usr/bin/flock -n /tmp/x.lock /opt/sync.sh >/dev/null 2>&1\n@reboot /opt/start\n0 0 1,15 * * find /tmp -name '*.tmp' -mtime +7 -exec rm -f {} \\;\n",
        4,
    ),
    (
        "*/10 * * * * docker ps --format '{{.Names}}: {{ .Status }}' | awk '{print $1}' # names\n0 9 * * 1-5 curl -fsS -m 10 --retry 5 'https://example.org/ping?a=1&b=2' > /dev/null\n0 22 * * 1-5 mail -s \"It's 10pm\" joe%Joe,%%Where are your kids?%\n5 4 * * sun echo \"run at 5 after 4 every sunday\"\n",
        4,
    ),
    (
        "LANG=de_DE.UTF-8\nNAME = 'Müller: #1'\n0 5 * * * tar -zcf /var/backups/home.tgz /home/\n0 6 * * * tar -zcf /var/backups/etc.tgz /etc/\n0 0 * * * [ -d /x ] && { cd /x; ./y; } || true\r\n",
        3,
    ),
];

#[test]
fn what_is_imported_loads_without_an_error() {
    let workspace = Workspace::new();
    for (index, (text, jobs)) in CRONTABS.iter().enumerate() {
        let (file, worker) = (format!("tab-{index}"), format!("imported-{index}"));
        workspace.write(&file, text);
        let line = ["schedule", "import-crontab", &file, "--worker", &worker];
        let dry = workspace.run(&[&line[..], &["--dry-run"]].concat());
        assert_eq!(dry.code, 0, "{dry:?}");
        let path = format!("workers/{worker}/worker.yaml");
        assert_eq!(workspace.read(&path), None);
        let done = workspace.json(&line);
        assert_eq!(done["jobs"].as_array().unwrap().len(), *jobs, "{done}");
        assert_eq!(
            (&done["refused"], &done["problems"]),
            (&json!([]), &json!([]))
        );
        assert_eq!(workspace.read(&path).unwrap(), dry.stdout);
        // Cron starts nothing again that a crash has cut off.
        let once = dry.stdout.matches("\n    idempotent: false\n").count();
        assert_eq!(once, *jobs, "{}", dry.stdout);
    }
    let checked = workspace.run(&["check", "--json"]);
    let checked = checked.value();
    let all = checked["problems"].as_array().unwrap().iter();
    let told: Vec<&Value> = all
        .filter(|one| one["code"] != "schedule-not-fired" && one["severity"] != "note")
        .collect();
    assert_eq!(told, Vec::<&Value>::new());
    let listed = schedule(&workspace, &["list"]);
    let of: Vec<String> = each(&listed["schedules"], "timezone");
    assert_eq!(of.len(), 14);
    assert_eq!(
        of.iter().filter(|zone| *zone == "America/New_York").count(),
        4
    );
}

#[test]
fn an_imported_job_does_what_cron_did() {
    let workspace = Workspace::new();
    let tab = "GREETING=good 'day' {date}\n0 1 * * * cat; pwd; echo \"$GREETING {date} 100\\%\"; true%one% two\\%\n";
    workspace.write("tab", tab);
    assert_eq!(
        workspace.run(&["schedule", "import-crontab", "tab"]).code,
        0
    );
    let done = workspace.run(&["run", "tab/cat"]);
    assert_eq!(done.code, 0, "{done:?}");
    let log = workspace.run(&["logs", "latest"]).stdout;
    let out: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once(" out   │ "))
        .map(|(_, text)| text)
        .collect();
    let home = workspace.home.to_str().unwrap();
    assert_eq!(out, ["one", " two%", home, "good 'day' {date} {date} 100%"]);
}

#[test]
fn what_is_refused_takes_nothing_with_it_and_nothing_is_written_over() {
    let workspace = Workspace::new();
    workspace.write("tab", "60 * * * * bad\nMAILTO=ada\n0 1 * * * good\n");
    let done = workspace.run(&["schedule", "import-crontab", "tab"]);
    assert_eq!(done.code, 4, "{done:?}");
    assert!(
        done.stderr
            .contains("line 1: not imported: `60 * * * *`, column 1")
    );
    assert!(done.stderr.contains("line 2: `MAILTO` is not carried over"));
    let path = "workers/tab/worker.yaml";
    let first = workspace.read(path).unwrap();
    workspace.write("tab", "0 2 * * * other\n");
    let again = workspace.run(&["schedule", "import-crontab", "tab"]);
    assert_eq!(again.code, 8, "{again:?}");
    assert_eq!(workspace.read(path).unwrap(), first);
    let dry = ["schedule", "import-crontab", "tab", "--dry-run"];
    workspace.run(&dry).expect_code(8);
    workspace
        .run(&[&dry[..], &["--force"]].concat())
        .expect_code(0);
    assert_eq!(workspace.read(path).unwrap(), first);
    let forced = workspace.run(&["schedule", "import-crontab", "tab", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(workspace.read(path).unwrap().contains("id: \"other\""));
    let entries = std::fs::read_dir(workspace.root.join("workers/tab")).unwrap();
    assert_eq!(entries.count(), 1, "nothing is left beside it");
    let missing = workspace.run(&["schedule", "import-crontab", "nowhere"]);
    assert_eq!(missing.code, 3);
    workspace.write("empty", "# nothing\n");
    let empty = workspace.run(&["schedule", "import-crontab", "empty"]);
    assert_eq!(
        (empty.code, workspace.read("workers/empty/worker.yaml")),
        (0, None)
    );
}

#[test]
fn a_crontab_comes_through_a_pipe() {
    let workspace = Workspace::new();
    let mut command =
        workspace.workerctl(&["schedule", "import-crontab", "-", "--system", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"0 1 * * * nobody /bin/true\n").unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(told["written"], "workers/crontab/worker.yaml");
    assert_eq!(told["jobs"][0]["user"], "nobody");
}

#[test]
fn users_before_commands_are_found_out_where_that_is_certain() {
    let workspace = Workspace::new();
    let user_of = |text: &str, name: &str| {
        workspace.write(name, text);
        let line = ["schedule", "import-crontab", name, "--dry-run", "--json"];
        let done = workspace.run(&line);
        (done.value()["jobs"][0]["user"].clone(), done.stderr)
    };
    let (user, _) = user_of("0 1 * * * root /bin/true\n", "a");
    assert_eq!(user, "root");
    // A command that is called as a user is.
    let (user, warning) = user_of("0 1 * * * nobody --all\n", "b");
    assert_eq!(user, Value::Null);
    assert!(warning.contains("`--system`"), "{warning}");
    let (user, warning) = user_of("0 1 * * * root x\n0 2 * * * /bin/true\n", "c");
    assert_eq!((user, warning.as_str()), (Value::Null, ""));
}

#[test]
fn a_time_is_read_or_its_fault_is_told() {
    let workspace = Workspace::with_skills(SKILLS);
    let slots = |since: &str| workspace.run(&["schedule", "slots", "--since", since]);
    slots("now").expect_code(0);
    let long = slots("400d").expect_code(2);
    assert!(long.stderr.contains("must not exceed 366 days"), "{long:?}");
    let line = ["schedule", "simulate", "--to", "+400d"];
    let long = workspace.run(&line).expect_code(2);
    assert!(long.stderr.contains("must not exceed 366 days"), "{long:?}");
    let line = ["schedule", "simulate", "--to", "+1h", "--down", "+2h/+1h"];
    let outside = workspace.run(&line).expect_code(0);
    assert!(outside.stderr.contains("is outside"), "{outside:?}");
    let line = ["schedule", "simulate", "--down", "2026-12-24/2026-12-23"];
    let backwards = workspace.run(&line).expect_code(2);
    assert!(
        backwards.stderr.contains("write the earlier time first"),
        "{backwards:?}"
    );
}

#[test]
fn what_is_switched_off_says_so_and_where() {
    let workspace = Workspace::with_skills(
        r#"
  - id: rests
    description: is switched off
    run: "true"
    schedule: {cron: "0 * * * *", enabled: false}
"#,
    );
    let daemon = Daemon::start(&workspace);
    for line in [
        &["next", "w/rests"][..],
        &["explain", "W/Rests"],
        &["trigger", "w/rests"],
        &["pause", "w/rests", "--reason", "a holiday"],
        &["backfill", "w/rests", "--from", "2026-01-01", "--to", "now"],
    ] {
        let refused = workspace.run(&[&["schedule"], line].concat());
        let refused = refused.expect_code(6);
        let place = "`w/rests` is switched off at workers/w/worker.yaml:";
        assert!(refused.stderr.contains(place), "{line:?}: {refused:?}");
    }
    daemon.stop();
    workspace
        .run(&["schedule", "list", "--worker", "ww"])
        .expect_code(3);
    workspace
        .run(&["schedule", "list", "--worker", "w"])
        .expect_code(0);
    workspace
        .run(&["schedule", "next", "-n", "0"])
        .expect_code(2);
    workspace
        .run(&["schedule", "simulate", "--to", "+366d"])
        .expect_code(0);
}

#[test]
fn what_cannot_run_is_not_shown_as_if_it_did() {
    let workspace = Workspace::with_skills(
        r#"
  - id: asks
    description: asks for more than there is
    run: "true"
    sandbox: theirown
    schedule: {cron: "0 * * * *"}
  - id: runs
    description: runs
    run: "true"
    schedule: {cron: "30 * * * *"}
"#,
    );
    let after = ["--after", "2026-11-23T08:05:00Z", "-n", "2"];
    let all = schedule(&workspace, &[&["next"], &after[..]].concat());
    assert_eq!(each(&all["next"], "schedule"), ["w/runs", "w/runs"]);
    assert_eq!(each(&all["blocked"], "schedule"), ["w/asks"]);
    let why = all["blocked"][0]["reason"].as_str().unwrap();
    assert!(why.contains("unavailable"), "{why}");
    let one = workspace.run(&["schedule", "next", "w/asks", "-n", "1"]);
    assert!(
        one.stderr.contains("cannot run as it is defined"),
        "{one:?}"
    );
    let told = schedule(&workspace, &["explain", "w/asks"]);
    assert!(
        told["policies"].to_string().contains("Nothing of it runs"),
        "{told}"
    );
    let line = ["simulate", "--from", "2026-11-23T08:00", "--to", "+4h"];
    let simulated = schedule(&workspace, &line);
    let totals = |nth: usize| simulated["schedules"][nth]["totals"].clone();
    assert_eq!(totals(0), json!({"blocked_config": 4}));
    assert_eq!(totals(1), json!({"ran": 4}));
    let reason = &simulated["schedules"][0]["rows"][0]["reason"];
    assert!(reason.as_str().unwrap().contains("unavailable"), "{reason}");
    let list = workspace.run(&["schedule", "list"]).stdout;
    assert_eq!(list.matches("(cannot run)").count(), 1, "{list}");
}

#[test]
fn a_command_that_no_shell_can_read_is_told_before_anything_is_written() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("good", "0 4 * * * echo fine\n");
    workspace.write("bad", "0 4 * * * echo fine\n0 5 * * * if true; then\n");
    let scratch = workspace.home.join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let import = |file: &str| {
        let line = ["schedule", "import-crontab", file, "--dry-run"];
        let mut command = workspace.workerctl(&line);
        workspace.start(command.env("TMPDIR", &scratch)).end()
    };
    import("good").expect_code(0);
    let told = import("bad").expect_code(4);
    assert!(told.stderr.contains("workers/bad/worker.yaml:"), "{told:?}");
    assert!(told.stdout.contains("if true; then"), "{told:?}");
    assert!(workspace.read("workers/bad/worker.yaml").is_none());
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}
