//! `config`

mod agent;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::check::counted;
use crate::cli::definitions::{Definitions, Weights};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times::bytes;
use crate::cli::session::Session;
use crate::model::Diagnostic;
use crate::model::access::{Access, Member};
use crate::model::config::CONFIG_FILE;
use crate::model::definition::HookText;
use crate::model::duration::exact_millis;
use crate::model::skill_roots::SkillRoots;
use crate::model::spec::Gate;
use crate::model::{Channel, Config, McpSettings, WebSettings};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// One value: its key, as people see it, as programs do.
struct Setting {
    key: Cow<'static, str>,
    shown: String,
    value: Value,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    let site = session.site_as_asked()?;
    let definitions = Definitions::load(&site.workspace);
    let config = definitions.config();
    let settings = settings(config);
    let origin = |key: &str| config.origins.get(key).map_or("default", String::as_str);
    if session.json() {
        let values: Vec<Value> = settings
            .iter()
            .map(|one| json!({"key": one.key, "value": one.value, "origin": origin(&one.key)}))
            .collect();
        let whole = json!({
            "workspace": site.workspace.display().to_string(),
            "state_dir": site.state_dir.display().to_string(),
            "values": values,
            "recorded_only": config.kept,
        });
        session.print_json(&whole, "config");
    } else {
        let mut table = Table::new(&[
            Column::new("KEY"),
            Column::new("VALUE").words(),
            Column::new("ORIGIN").words(),
        ]);
        for one in &settings {
            let from = Line::of(DIM, origin(&one.key));
            table.row(vec![(*one.key).into(), one.shown.as_str().into(), from]);
        }
        for key in config.kept.keys() {
            let value = Line::of(DIM, "kept, not evaluated");
            table.row(vec![key.as_str().into(), value, Line::of(DIM, CONFIG_FILE)]);
        }
        let width = session.io.table_width();
        table.print(&mut session.io.out, width);
    }
    let own = definitions
        .problems()
        .iter()
        .filter(|one| &*one.place.path == CONFIG_FILE);
    let weights = Weights::of(own);
    if weights.errors + weights.warnings > 0 && !session.json() {
        let text = format!(
            "`{CONFIG_FILE}` has {} and {}; `workerctl check` shows them",
            counted(weights.errors, "error"),
            counted(weights.warnings, "warning")
        );
        diagnostic::warning(&mut session.io.err, &text);
    }
    Ok(if weights.errors > 0 {
        Exit::InvalidDefinition
    } else {
        Exit::Ok
    })
}

fn hooks(key: &'static str, hooks: &[HookText]) -> Setting {
    let commands = hooks.iter().map(|hook| hook.command.as_str());
    Setting {
        key: key.into(),
        shown: match hooks {
            [] => "none".to_owned(),
            _ => commands.collect::<Vec<_>>().join("; "),
        },
        value: json!(hooks),
    }
}

fn channel(key: &'static str, channel: Option<&Channel>) -> Setting {
    Setting {
        key: key.into(),
        shown: channel.map_or_else(|| "none".to_owned(), Channel::to_string),
        // A list, as hooks are, from when there were only commands.
        value: json!(channel.as_slice()),
    }
}

/// Who is told how runs went, and asked whether they may go on; what holds commands back.
fn told(config: &Config) -> Vec<Setting> {
    let (notify, approval) = (&config.notify, &config.approval);
    let before = approval.before.map(Gate::name);
    vec![
        channel("notify.on_failure", notify.on_failure.as_ref()),
        channel("notify.on_recovery", notify.on_recovery.as_ref()),
        channel("notify.on_missed", notify.on_missed.as_ref()),
        channel("notify.on_approval", notify.on_approval.as_ref()),
        Setting {
            key: "notify.after".into(),
            shown: notify.after.unwrap_or_default().to_string(),
            value: json!(notify.after.unwrap_or_default().to_string()),
        },
        Setting {
            key: "notify.foreground".into(),
            shown: notify.foreground.unwrap_or(false).to_string(),
            value: json!(notify.foreground.unwrap_or(false)),
        },
        Setting {
            key: "approval.before".into(),
            shown: before
                .unwrap_or("landing, or execution where nothing lands")
                .to_owned(),
            value: json!(before),
        },
        Setting {
            key: "approval.expires".into(),
            shown: exact_millis(approval.expires_ms),
            value: json!(approval.expires_ms),
        },
        Setting {
            key: "on_rate_limit".into(),
            shown: config.on_rate_limit.map_or_else(
                || "a run fails".to_owned(),
                |waits| {
                    let wait = exact_millis(waits.wait_ms);
                    format!("a run waits up to {wait}, at most {} times", waits.times)
                },
            ),
            value: json!(config.on_rate_limit),
        },
        Setting {
            key: "sandbox".into(),
            shown: config.sandbox.to_string(),
            value: json!(config.sandbox),
        },
    ]
}

fn settings(config: &Config) -> Vec<Setting> {
    let text = |key: &'static str, value: &str| Setting {
        key: key.into(),
        shown: value.to_owned(),
        value: json!(value),
    };
    let number = |key: &'static str, value: u64| Setting {
        key: key.into(),
        shown: value.to_string(),
        value: json!(value),
    };
    let span = |key: &'static str, millis: u64| Setting {
        key: key.into(),
        shown: exact_millis(millis),
        value: json!(millis),
    };
    let parallel = Setting {
        key: "max_parallel".into(),
        shown: match config.max_parallel {
            0 => "number of processors, at least 2".to_owned(),
            some => some.to_string(),
        },
        value: json!(config.max_parallel),
    };
    let author = Setting {
        key: "commit.author".into(),
        shown: config
            .commit_author
            .clone()
            .unwrap_or_else(|| "git's configuration".to_owned()),
        value: json!(config.commit_author),
    };
    vec![
        text("timezone", &config.timezone),
        parallel,
        number("queue.max", u64::from(config.queue_max)),
        author,
        text("commit.message", &config.commit_message),
        text("threads.directory", &config.threads_dir),
        text("metrics.directory", &config.metrics_dir),
        hooks("hooks.post_tools", &config.post_tools_hooks),
        hooks("hooks.post_commit", &config.post_commit_hooks),
        span("timeout", config.timeout_ms),
        span("grace", config.grace_ms),
        span("drain_grace", config.drain_grace_ms),
        number("output_bytes_max", config.output_bytes_max),
        span("keep_refs", config.keep_refs_ms),
        span("retention.runs", config.retention.runs_ms),
        Setting {
            key: "retention.runs_min".into(),
            shown: config.retention.runs_min.to_string(),
            value: json!(config.retention.runs_min),
        },
        span("retention.approvals", config.retention.approvals_ms),
        Setting {
            key: "retention.threads".into(),
            shown: bytes(config.retention.threads_bytes),
            value: json!(config.retention.threads_bytes),
        },
        span("retention.slots", config.retention.slots_ms),
        blocked_hours(&config.blocked_hours),
    ]
    .into_iter()
    .chain(told(config))
    .chain(landing(config))
    .chain([list("workers.paths", config.workers.patterns())])
    .chain(roots_of_skills(&config.skills))
    .chain(for_mcp(&config.mcp))
    .chain(for_people(config))
    .chain(agent::settings(config))
    .collect()
}

fn landing(config: &Config) -> Vec<Setting> {
    let span = |key: &'static str, millis: u64| Setting {
        key: key.into(),
        shown: exact_millis(millis),
        value: json!(millis),
    };
    let name = config.branch.as_ref().map(|branch| branch.name.as_str());
    vec![
        Setting {
            value: json!(config.branch),
            ..optional("branch", name, "none")
        },
        optional("push", config.push.as_deref(), "nothing is pushed"),
        span("push_timeout", config.push_timeout_ms),
        span("land_wait", config.land_wait_ms),
        list("protected_files", config.protected_files.patterns()),
        Setting {
            key: "trees.max".into(),
            shown: config.trees.max.to_string(),
            value: json!(config.trees.max),
        },
        Setting {
            key: "trees.min_free".into(),
            shown: bytes(config.trees.min_free_bytes),
            value: json!(config.trees.min_free_bytes),
        },
        span("trees.idle", config.trees.idle_ms),
        Setting {
            key: "limits.processes".into(),
            shown: config.limits.processes.to_string(),
            value: json!(config.limits.processes),
        },
        Setting {
            key: "limits.written".into(),
            shown: bytes(config.limits.written_bytes),
            value: json!(config.limits.written_bytes),
        },
    ]
}

fn roots_of_skills(skills: &SkillRoots) -> Vec<Setting> {
    let paths: Vec<String> = skills.extra.iter().map(|root| root.path.clone()).collect();
    vec![
        list("skills.families", &skills.families),
        Setting {
            key: "skills.personal".into(),
            shown: skills.personal.to_string(),
            value: json!(skills.personal),
        },
        Setting {
            value: json!(skills.extra),
            ..list("skills.roots", &paths)
        },
        list("skills.untrusted", &skills.untrusted),
    ]
}

/// The web page, and who may ask.
fn for_people(config: &Config) -> Vec<Setting> {
    let WebSettings { listen, read_only } = &config.web;
    let mut settings = vec![
        optional(
            "web.listen",
            listen.as_deref(),
            "only while `workerctl web` runs",
        ),
        Setting {
            key: "web.read_only".into(),
            shown: read_only.to_string(),
            value: json!(read_only),
        },
    ];
    settings.extend(access(&config.access));
    settings
}

fn for_mcp(mcp: &McpSettings) -> Vec<Setting> {
    let mutating = mcp.mutating.name();
    let span = |key: &'static str, millis| Setting {
        key: key.into(),
        shown: exact_millis(millis),
        value: json!(millis),
    };
    vec![
        Setting {
            key: "mcp.mutating".into(),
            shown: mutating.to_owned(),
            value: json!(mutating),
        },
        Setting {
            key: "mcp.list_bytes".into(),
            shown: mcp.list_bytes.to_string(),
            value: json!(mcp.list_bytes),
        },
        list("mcp.tools", &mcp.tools),
        Setting {
            key: "mcp.typed".into(),
            shown: mcp.typed.to_string(),
            value: json!(mcp.typed),
        },
        span("mcp.wait", mcp.wait_ms),
        span("mcp.refresh", mcp.refresh_ms),
        optional("mcp.http.listen", mcp.http.listen.as_deref(), "no TCP"),
        optional(
            "mcp.http.token_file",
            mcp.http.token_file.as_deref(),
            "mcp-token of the state directory",
        ),
        list("mcp.http.origins", &mcp.http.origins),
        Setting {
            key: "mcp.http.sessions".into(),
            shown: mcp.http.sessions.to_string(),
            value: json!(mcp.http.sessions),
        },
        span("mcp.http.idle", mcp.http.idle_ms),
    ]
}

/// Who may ask the engine; names with the numbers that they mean.
fn access(access: &Access) -> Vec<Setting> {
    let members = |key: &'static str, members: &[Member]| {
        let shown = |one: &Member| match one.id.to_string() {
            id if id == one.name => id,
            id => format!("{} ({id})", one.name),
        };
        let shown: Vec<String> = members.iter().map(shown).collect();
        Setting {
            value: json!(members),
            ..list(key, &shown)
        }
    };
    vec![
        members("access.admin.users", &access.admin.users),
        members("access.admin.groups", &access.admin.groups),
        members("access.read.users", &access.read.users),
        members("access.read.groups", &access.read.groups),
    ]
}

fn optional(key: &'static str, value: Option<&str>, otherwise: &str) -> Setting {
    Setting {
        key: key.into(),
        shown: value.unwrap_or(otherwise).to_owned(),
        value: json!(value),
    }
}

fn list(key: &'static str, items: &[String]) -> Setting {
    Setting {
        key: key.into(),
        shown: if items.is_empty() {
            "none".to_owned()
        } else {
            items.join(", ")
        },
        value: json!(items),
    }
}

fn blocked_hours(hours: &[u8]) -> Setting {
    let listed: Vec<String> = hours.iter().map(ToString::to_string).collect();
    Setting {
        key: "blocked_hours".into(),
        shown: if listed.is_empty() {
            "none".to_owned()
        } else {
            listed.join(", ")
        },
        value: json!(hours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_with_an_origin_is_shown() {
        let directory = xtest::tempdir();
        let text = "models:\n  a: {provider: openai, model: m, key: env:K, prices: {input: 3, output: 15}}\n\
             budget: {money: 2.5}\ntoolsets: {t: {builtin: [grep], mcp: {command: [x, --y]}}}\n";
        for text in ["", text] {
            std::fs::write(directory.path().join(CONFIG_FILE), text).unwrap();
            let definitions = Definitions::load(directory.path());
            let origins = &definitions.config().origins;
            let known: Vec<&str> = origins.keys().map(String::as_str).collect();
            let settings = settings(definitions.config());
            let mut keys: Vec<&str> = settings.iter().map(|one| &*one.key).collect();
            keys.sort_unstable();
            assert_eq!(keys, known);
            for (key, shown) in [
                ("models.a", "openai m, key env:K, prices 3.00 and 15.00"),
                ("budget.money", "2.50"),
                ("toolsets.t", "grep, mcp: x --y"),
            ] {
                let found = settings.iter().find(|one| one.key == key);
                let found = found.map(|one| one.shown.as_str());
                assert!(text.is_empty() || found == Some(shown), "{key}: {found:?}");
            }
        }
    }
}
