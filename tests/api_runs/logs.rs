//! The log of a run: its end, some of its streams, a text in it, and all of it.

use crate::api_runs::{Answer, Api};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

/// Each line is written before the next begins, so that their order in the log is known.
const SKILLS: &str = r#"
  - id: talk
    description: says much
    run: 'seq -f "say %g" 1 5000; printf "a \033[31mred\033[0m We\033[1mir\033[0md \033[2J line\n"; echo oops >&2'
"#;

/// Each of 1 KiB.
const MANY: u32 = 40_000;

fn texts(answer: &Answer) -> Vec<String> {
    let lines = answer.value();
    let lines = lines.as_array().unwrap().iter();
    lines
        .map(|line| line["text"].as_str().unwrap().to_owned())
        .collect()
}

/// How many lines the log has.
fn lines_of(answer: &Answer) -> usize {
    answer.header("workerctl-lines").unwrap().parse().unwrap()
}

fn bed() -> (Workspace, Daemon, Api, String) {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    let run = workspace.submit(&["w/talk"]);
    assert_eq!(workspace.wait(&run).0, 0);
    (workspace, daemon, api, run)
}

#[test]
fn the_end_of_a_log_its_streams_and_a_text_in_it_are_found() {
    let (workspace, daemon, api, run) = bed();
    let ask = |query: &str| api.get(&format!("/v1/runs/{run}/logs{query}"));
    let all = ask("");
    let total = all.value().as_array().unwrap().len();
    assert!(total > 5_000, "{total}");
    assert_eq!(all.header("workerctl-lines"), Some(&*total.to_string()));
    assert_eq!(all.next(), None);

    let last = ask("?tail=2");
    assert_eq!(
        last.value().as_array().unwrap()[..],
        all.value().as_array().unwrap()[total - 2..]
    );
    assert_eq!(last.header("workerctl-lines"), Some(&*total.to_string()));
    assert_eq!(
        texts(&ask("?tail=3&stream=stdout"))[..2],
        ["say 4999", "say 5000"]
    );
    assert_eq!(texts(&ask("?tail=5&stream=stderr")), ["oops"]);
    assert_eq!(texts(&ask("?tail=0")), [""; 0]);
    // The last of them come page by page.
    let first = ask("?tail=4000&limit=2500&stream=stdout");
    let (mut found, next) = (texts(&first), first.next().unwrap());
    assert_eq!(found.len(), 2_500);
    let second = api.get(next);
    found.extend(texts(&second));
    assert_eq!((found.len(), second.next()), (4_000, None));
    assert_eq!(found[0], "say 1002");

    assert_eq!(texts(&ask("?search=SAY%2042")).len(), 111);
    assert_eq!(
        texts(&ask("?search=say%20427&stream=stderr,event")),
        [""; 0]
    );
    let coloured = texts(&ask("?search=red%20weird"));
    assert!(
        coloured.len() == 1 && coloured[0].contains("\u{1b}[31m"),
        "{coloured:?}"
    );
    for wrong in ["?stream=out", "?tail=-1", "?search=%00", "?since=1"] {
        assert_eq!(ask(wrong).status, 400, "{wrong}");
    }
    let shown = workspace.run(&["logs", &run, "-n", "1", "--stream", "stderr"]);
    assert!(shown.stdout.ends_with("err   │ oops\n"), "{shown:?}");
    daemon.stop();
}

#[test]
fn a_log_is_given_as_text_and_followed_from_any_line() {
    let (workspace, daemon, api, run) = bed();
    let total = lines_of(&api.get(&format!("/v1/runs/{run}/logs?limit=1")));
    let text = api.get(&format!("/v1/runs/{run}/logs/raw?stream=stdout"));
    let whole = text.text();
    let said: Vec<String> = (1..=5_000)
        .map(|number| format!("say {number}\n"))
        .collect();
    let rest = whole.strip_prefix(&said.concat()).unwrap_or_default();
    // Nothing of it is obeyed by a terminal.
    assert_eq!(rest, "a red Weird \\x1b[2J line\n");
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let disposition = text.header("content-disposition").unwrap();
    assert!(disposition.starts_with(&format!("attachment; filename=\"{run}.log\"")));
    assert_eq!(text.header("cache-control"), Some("no-store"));
    let whole = api.get(&format!("/v1/runs/{run}/logs/raw")).text();
    assert_eq!(whole.lines().count(), total);
    assert!(
        whole.lines().any(|line| line.ends_with(" stderr oops")),
        "{whole}"
    );
    assert_eq!(api.get("/v1/runs/zzzz/logs/raw").refusal().0, 404);

    // Who has read the log up to a line follows from there, and goes on from where it was cut off.
    let path = format!("/v1/runs/{run}/events?from={}", total - 1);
    let told = api.get(&path).text();
    assert_eq!(told.matches("event: line\n").count(), 1, "{told}");
    let again = api.ask(
        "GET",
        &path,
        &format!("Last-Event-ID: {}\r\n", total - 3),
        "",
    );
    assert_eq!(again.text().matches("event: line\n").count(), 3);
    daemon.stop();
    assert!(workspace.runs().contains_key(&run));
}

#[test]
fn a_search_of_a_very_long_log_stops_at_its_bound_and_says_where_it_goes_on() {
    let skills = format!(
        "
  - id: flood
    description: says very much
    run: 'yes \"$(head -c 1000 /dev/zero | tr \"\\0\" x)\" | head -n {MANY}; echo needle'
"
    );
    let workspace = Workspace::with_skills(&skills);
    let config = workspace.read("workerctl.yaml").unwrap_or_default();
    workspace.write(
        "workerctl.yaml",
        &format!("{config}\noutput_bytes_max: 67108864\n"),
    );
    workspace.commit_all("more output");
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    let run = workspace.submit(&["w/flood"]);
    assert_eq!(workspace.wait(&run).0, 0);
    let first = api.get(&format!("/v1/runs/{run}/logs?search=needle"));
    assert_eq!(texts(&first), [""; 0]);
    let second = api.get(first.next().expect("it stopped"));
    assert_eq!(texts(&second), ["needle"]);
    assert_eq!(second.next(), None);
    let total: u64 = first.header("workerctl-lines").unwrap().parse().unwrap();
    assert!(total > u64::from(MANY), "{total}");
    assert_eq!(
        second.header("workerctl-lines"),
        first.header("workerctl-lines")
    );
    // Long lines fill an answer before their number does.
    let page = api.get(&format!("/v1/runs/{run}/logs?stream=stdout"));
    assert!(page.body.len() < 8 * 1024 * 1024, "{}", page.body.len());
    assert!(page.next().is_some());
    assert_eq!(
        texts(&api.get(&format!("/v1/runs/{run}/logs?tail=1&stream=stdout"))),
        ["needle"]
    );
    let pid = workspace.json(&["status"])["pid"].as_u64().unwrap();
    let peak = || peak_kib(pid);
    let before = peak();
    let text = api.get(&format!("/v1/runs/{run}/logs/raw?stream=stdout"));
    assert_eq!(text.body.len(), MANY as usize * 1_001 + 7);
    assert!(peak() < before + 32 * 1024, "{before} KiB, then {}", peak());
    daemon.stop();
}

/// The most memory that a process has had.
fn peak_kib(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .unwrap()
}
