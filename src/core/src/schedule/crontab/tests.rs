use super::*;

fn user(text: &str) -> Crontab {
    read(text.as_bytes(), Form::User)
}

fn only(text: &str) -> CronJob {
    let crontab = user(text);
    assert!(crontab.notes.is_empty(), "{:?}", crontab.notes);
    assert_eq!(crontab.jobs.len(), 1);
    crontab.jobs[0].clone()
}

/// The command of a job, without the line that changes the directory.
fn command(text: &str) -> String {
    let run = only(text).run;
    run.strip_prefix("cd \"$HOME\" || exit\n")
        .unwrap()
        .to_owned()
}

#[test]
fn a_line_is_a_job() {
    let job = only("\t 5 0 * * Mon  $HOME/bin/daily.job >> $HOME/tmp/out 2>&1 \n");
    assert_eq!((job.line, job.expression.as_str()), (1, "5 0 * * Mon"));
    assert_eq!(job.id, "daily");
    assert!(
        job.run
            .ends_with("\n$HOME/bin/daily.job >> $HOME/tmp/out 2>&1")
    );
    let job = only("@reboot /opt/start --all");
    assert_eq!(
        (job.expression.as_str(), job.id.as_str()),
        ("@reboot", "start")
    );
    assert_eq!(only("-*/5 * * * * /bin/quiet").id, "quiet");
    assert_eq!(only("@daily x").expression, "@daily");
}

#[test]
fn percent_signs_are_ends_of_lines_and_input() {
    assert_eq!(command("0 1 * * * date +\\%F"), "date +%F");
    assert_eq!(
        command("0 1 * * * mail -s hi joe%Joe,%%Where are your 100\\% ?%"),
        "exec <<'END'\nJoe,\n\nWhere are your 100% ?\n\nEND\nmail -s hi joe"
    );
    assert_eq!(
        command("0 1 * * * cat%END%END_"),
        "exec <<'END__'\nEND\nEND_\nEND__\ncat"
    );
    assert_eq!(command("0 1 * * * echo \\\\ a\\b"), "echo \\\\ a\\b");
}

#[test]
fn variables_hold_for_the_lines_after_them() {
    let crontab = user(
        "0 1 * * * first\nPATH = /usr/bin:/bin\nNAME=\"it's { date }\"\n0 2 * * * second\nPATH=/opt\n0 3 * * * third\n",
    );
    assert!(crontab.notes.is_empty());
    assert!(!crontab.jobs[0].run.contains("export"));
    assert_eq!(
        crontab.jobs[1].run,
        "export PATH='/usr/bin:/bin'\nexport NAME='it'\\''s {'' date }'\ncd \"$HOME\" || exit\nsecond"
    );
    assert!(crontab.jobs[2].run.contains("export PATH='/opt'\n"));
    assert!(!crontab.jobs[2].run.contains("/usr/bin"));
}

#[test]
fn zones_shells_and_delays_are_carried_over() {
    let crontab = user(
        "SHELL=/bin/bash\nTZ=Asia/Tokyo\n0 1 * * * a\nCRON_TZ=Europe/Berlin\nRANDOM_DELAY=10\n0 2 * * * b\nSHELL=/bin/dash\nCRON_TZ=\n0 3 * * * c\n",
    );
    let told: Vec<usize> = crontab.notes.iter().map(|note| note.line).collect();
    assert_eq!(told, [2], "{:?}", crontab.notes);
    let of = |job: &CronJob| (job.shell, job.timezone.clone(), job.jitter_minutes);
    let of: Vec<_> = crontab.jobs.iter().map(of).collect();
    // Cron gives `TZ` to commands alone.
    assert_eq!(of[0], (Shell::Bash, None, 0));
    assert_eq!(of[1], (Shell::Bash, Some("Europe/Berlin".to_owned()), 10));
    assert_eq!(of[2], (Shell::Sh, None, 10));
    assert!(crontab.jobs[1].run.contains("export TZ='Asia/Tokyo'\n"));
}

#[test]
fn what_cannot_be_carried_over_is_told_with_its_line() {
    let crontab = user(
        "MAILTO=ada@example.org\nMAILTO=\"\"\nSHELL=/usr/bin/fish\nCRON_TZ=Mars/Base\nLOGNAME=x\n9x=1\nWORKERCTL_X=1\n",
    );
    let lines: Vec<usize> = crontab.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [1, 3, 4, 5, 6, 7]);
    assert!(crontab.notes.iter().all(|note| !note.refused));
    let hint = crontab.notes[0].hint.as_deref().unwrap();
    assert!(
        hint.contains("`notify: {on_failure: {sendmail: [ada@example.org]}}`"),
        "{hint}"
    );
}

#[test]
fn a_line_that_is_refused_takes_no_other_with_it() {
    let crontab = read(
        b"60 * * * * a\n0 1 * * *\n* * *\n@dialy b\n0 22-2 * * * c\n\xff 1\n0 1 * * * bell\x07\n0 5 * * * fine\n",
        Form::User,
    );
    assert_eq!(crontab.jobs.len(), 1);
    let lines: Vec<usize> = crontab.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 6, 7]);
    assert!(crontab.notes.iter().all(|note| note.refused));
    assert!(crontab.notes[0].message.contains("`60 * * * *`, column 1"));
    assert!(crontab.notes[3].hint.as_ref().unwrap().contains("@daily"));
}

#[test]
fn comments_directly_above_describe() {
    let crontab = user(
        "# m h  dom mon dow   command\n0 1 * * * a\n# Backs up\n# everything.\n0 2 * * * b\n# apart\n\n0 3 * * * c\n# Old:\n#0 4 * * * gone\n0 5 * * * d\n#----\n0 6 * * * e\n",
    );
    let told: Vec<&str> = crontab
        .jobs
        .iter()
        .map(|job| job.description.as_str())
        .collect();
    assert_eq!(told, ["a", "Backs up everything.", "c", "d", "e"]);
}

#[test]
fn the_systems_form_has_users() {
    let text = b"SHELL=/bin/sh\n17 * * * *\troot\tcd / && run-parts --report /etc/cron.hourly\n25 6 * * * www-data test -x /usr/sbin/anacron || x\n";
    let named = |text: &[u8]| users(text).into_iter().collect::<Vec<_>>();
    assert_eq!(named(text), ["root", "www-data"]);
    assert_eq!(named(b"0 1 * * * root x\n0 1 * * * alone\n"), [""; 0]);
    assert_eq!(
        named(b"60 * * * * root y\n0 1 * * * ada:staff x\n# 0\n"),
        ["ada"]
    );
    let crontab = read(text, Form::System);
    assert_eq!(crontab.jobs[0].user.as_deref(), Some("root"));
    assert_eq!(crontab.jobs[0].id, "run-parts");
    assert_eq!(crontab.notes.len(), 2);
    assert!(crontab.notes[1].message.contains("`www-data`"));
}

#[test]
fn ids_are_unique_and_say_what_runs() {
    let crontab = user(
        "0 1 * * * tar czf a\n0 2 * * * /bin/tar x\n0 3 * * * tar-2\n0 4 * * * nice -n 10 /usr/bin/python3 /opt/Report_Gen.py\n0 5 * * * [ -x /usr/bin/x ] && x\n0 6 * * * :\n0 7 * * * FOO=1 php /var/www/cron.php\n0 8 * * * tar\n",
    );
    let ids: Vec<&str> = crontab.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "tar",
            "tar-2",
            "tar-2-2",
            "report-gen",
            "x",
            "job",
            "cron",
            "tar-3"
        ]
    );
}

#[test]
fn braces_that_would_be_placeholders_are_kept_from_it() {
    assert_eq!(
        command("0 1 * * * echo '{date}' {1..3} ${HOME}"),
        "eval 'echo '\\''{''date}'\\'' {''1..3} ${''HOME}'"
    );
    assert_eq!(
        command(
            "0 1 * * * awk '{print $1}' x; find . -exec rm {} +; docker ps --format '{{.Names}}'"
        ),
        "awk '{print $1}' x; find . -exec rm {} +; docker ps --format '{{.Names}}'"
    );
}

#[test]
fn what_a_job_leaves_running_is_told() {
    let table = [
        ("nohup /opt/serve", Some("nohup")),
        ("cd /a && setsid b", Some("setsid")),
        ("sleep 9 & echo a", Some("&")),
        ("serve > log 2>&1 &", Some("&")),
        ("a && b", None),
        ("a > log 2>&1; b &> c; d >&2", None),
        ("echo 'a & b' \"c & d\" e\\&f", None),
        ("/opt/nohup.sh", None),
    ];
    for (command, word) in table {
        let crontab = user(&format!("0 1 * * * {command}\n"));
        let told = crontab.notes.first().map(|note| note.message.clone());
        let expected = word.map(|word| format!("`{word}` leaves a process running"));
        let begins = expected
            .as_ref()
            .is_none_or(|one| told.as_ref().unwrap().starts_with(one));
        assert!(
            begins && told.is_some() == word.is_some(),
            "{command}: {told:?}"
        );
        assert_eq!(crontab.jobs.len(), 1);
    }
}

#[test]
fn lines_of_an_anacrontab_are_told_with_what_to_write() {
    let crontab = user(
        "7 25 cron.weekly nice run-parts /etc/cron.weekly\n@monthly 45 tidy /opt/tidy\n0 5 1 * * x\n@daily 7z a\n",
    );
    assert_eq!(crontab.jobs.len(), 2, "{:?}", crontab.notes);
    let hints = crontab
        .notes
        .iter()
        .map(|note| note.hint.as_deref().unwrap());
    let hints: Vec<_> = hints.collect();
    assert!(
        hints[0].contains("@weekly") && hints[1].contains("@monthly"),
        "{hints:?}"
    );
    assert!(
        hints
            .iter()
            .all(|hint| hint.contains("catch_up: {mode: last}"))
    );
}
