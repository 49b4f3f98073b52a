//! The definition of a worker that does what a crontab does.

use std::fmt::Write;

use super::{CronJob, Crontab, Shell};

/// The text of worker.yaml for the jobs of a crontab; `source` says where they come from, for people.
pub fn worker_yaml(crontab: &Crontab, id: &str, source: &str) -> String {
    let mut text = format!(
        "\
# Imported from a crontab. As cron does it, runs of a job may overlap, and what was missed stays missed; see
# `overlap` and `catch_up` for what else can be had. What was cut off by a crash is not started again: write
# `idempotent: true` where that does no harm.

worker:
  id: {id_text}
  name: {id_text}
  type: OpsWorker
  version: \"1.0\"
  description: {}

# cron has no limit of time.
timeout: 24h

skills:
",
        text_of(&format!("Jobs of {source}")),
        id_text = text_of(id)
    );
    for job in &crontab.jobs {
        write_job(&mut text, job);
    }
    text
}

fn write_job(text: &mut String, job: &CronJob) {
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "  # line {}: {}\n  - id: {}\n    description: {}\n    mutating: false\n    idempotent: false\n",
        job.line,
        job.text,
        text_of(&job.id),
        text_of(&job.description)
    );
    if job.shell == Shell::Bash {
        text.push_str("    shell: bash\n");
    }
    text.push_str("    run: |\n");
    for line in job.run.lines() {
        if line.is_empty() {
            text.push('\n');
        } else {
            let _ = writeln!(text, "      {line}");
        }
    }
    let mut keys = vec![format!("cron: {}", text_of(&job.expression))];
    keys.extend(
        job.timezone
            .iter()
            .map(|zone| format!("timezone: {}", text_of(zone))),
    );
    if job.jitter_minutes > 0 {
        keys.push(format!("jitter: {}m", job.jitter_minutes));
    }
    keys.push("overlap: allow_all".to_owned());
    if job.expression != "@reboot" {
        keys.push("catch_up: none".to_owned());
    }
    let _ = writeln!(text, "    schedule: {{{}}}", keys.join(", "));
}

/// A text of YAML; a text of JSON is one.
fn text_of(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
