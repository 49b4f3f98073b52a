//! Pushes: the command that a run executes after its result has landed, and the same without a run after it failed.

use std::time::Duration;

use super::super::names;
use super::super::work::{PushResult, Pushing};
use super::Performer;
use super::command::{TAIL_BYTES_MAX, Tail};
use super::hooks::telling_line;
use super::notify::Heard;
use crate::model::FailedPush;
use crate::model::definition::Shell;
use crate::model::diagnostic::chain;
use crate::model::spec::Program;
use crate::process::{self, Owner, Stdin};

/// Variables of the engine that a push is given, so that it reaches its remote as a push of the user would. Skills and
/// hooks do not get them, because they may lead to keys.
const PASSED_ON: [&str; 7] = [
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "XDG_CONFIG_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Git, which takes no directory for a bare repository: a result can make one look like that.
const GIT: &str = "git -c safe.bareRepository=explicit";

/// Prefix of variables that hold settings of git, which a push is given too.
const GIT_SETTINGS: &str = "GIT_CONFIG_";

/// Returns the command that pushes `$WORKERCTL_COMMIT` to the branch `$WORKERCTL_BRANCH` of a remote.
///
/// Hooks of the repository are off. Nothing asks for a password, because `ssh` would wait at a terminal. A push that is
/// refused because the remote is ahead has succeeded if the remote-tracking branch contains the commit: another run,
/// or the user, has pushed it.
pub(in super::super) fn push_command(remote: &str) -> Program {
    let remote = remote.replace('\'', "'\\''");
    let text = format!(
        "export SSH_ASKPASS=false SSH_ASKPASS_REQUIRE=force; \
         {GIT} -c core.hooksPath=/dev/null push --quiet '{remote}' \"$WORKERCTL_COMMIT:refs/heads/$WORKERCTL_BRANCH\" && exit 0; \
         status=$?; \
         {GIT} merge-base --is-ancestor \"$WORKERCTL_COMMIT\" 'refs/remotes/{remote}'/\"$WORKERCTL_BRANCH\" 2> /dev/null || exit $status"
    );
    Program::Shell {
        shell: names::shell_program(Shell::Sh).to_owned(),
        text,
    }
}

/// Returns the command that pushes again. The user may have rewritten the branch meanwhile, as `git pull --rebase`
/// does; then it has succeeded once the remote-tracking branch contains the branch.
fn push_again_command(remote: &str) -> String {
    let quoted = remote.replace('\'', "'\\''");
    let Program::Shell { text, .. } = push_command(remote) else {
        return String::new();
    };
    format!(
        "{GIT} merge-base --is-ancestor \"$WORKERCTL_COMMIT\" \"refs/heads/$WORKERCTL_BRANCH\" || {{ \
         {GIT} merge-base --is-ancestor \"refs/heads/$WORKERCTL_BRANCH\" 'refs/remotes/{quoted}'/\"$WORKERCTL_BRANCH\" && exit 0; \
         echo \"fatal: the branch was rewritten and has commits that were not pushed\" >&2; exit 1; }}; {text}"
    )
}

impl Performer {
    /// Returns the variables of the engine that a push is given.
    pub(super) fn push_variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let is_passed_on = |name: &str| PASSED_ON.contains(&name) || name.starts_with(GIT_SETTINGS);
        let own = self.parts.environment.iter();
        let passed_on = own.filter(move |(name, _)| is_passed_on(name));
        passed_on.map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Pushes a branch once, without a run.
    pub(super) fn push_branch(&self, pushing: &Pushing) -> PushResult {
        let push = &pushing.push;
        let mut heard = Heard {
            tail: Tail::of(TAIL_BYTES_MAX),
        };
        let ran = process::run(&self.branch_push(push), &pushing.stop, &mut heard);
        if pushing.stop.requested().is_some() {
            return PushResult::Stopped;
        }
        let ended = match ran {
            Err(error) => chain(&error),
            Ok(finished)
                if finished.ended == process::EndCause::ByItself
                    && finished.status == process::ExitStatus::Exited(0) =>
            {
                return PushResult::Pushed;
            }
            Ok(finished) => super::command::ended(&finished).describe(),
        };
        let masker = self.logs.masker_of(&push.skill);
        let said = masker.mask_text(&heard.tail.text()).into_owned();
        PushResult::Failed {
            message: match telling_line(said.trim()) {
                Some(line) => format!("{ended}: {line}"),
                None => ended,
            },
        }
    }

    fn branch_push(&self, push: &FailedPush) -> process::Command {
        let scratch = self.parts.state_dir.join("scratch");
        let owner = Owner {
            run: format!(
                "push of {} to {} in {}",
                push.branch, push.remote, push.repository
            ),
            attempt: 1,
        };
        let mut variables: Vec<_> = self.push_variables().collect();
        variables.push(("WORKERCTL_COMMIT".to_owned(), push.commit.clone()));
        variables.push(("WORKERCTL_BRANCH".to_owned(), push.branch.clone()));
        let config = &self.parts.definitions.current().config;
        let grace = Duration::from_millis(self.parts.grace_ms);
        process::Command {
            program: process::Program::Shell {
                shell: names::shell_program(Shell::Sh).into(),
                text: push_again_command(&push.remote),
            },
            cwd: push.repository.clone().into(),
            env: process::environment(&self.parts.environment, &scratch, variables, &owner),
            stdin: Stdin::Null,
            stdout_file: None,
            scratch: Some(scratch),
            limits: process::Limits {
                timeout: Some(Duration::from_millis(config.push_timeout_ms)),
                resources: config.limits,
                grace,
                ..process::Limits::default()
            },
            owner,
            may_control: true,
            wall: None,
        }
    }
}
