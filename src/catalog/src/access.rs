//! `access` of workerctl.yaml: who may ask the engine for what, beside its own user and root.

use super::keys::{CONFIG_ACCESS, CONFIG_MEMBERS};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::bounds::ID_MAX;
use crate::model::access::{Access, Member, Members};

/// Users or groups in one list.
const MEMBERS_MAX: usize = 256;

/// What a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Principal {
    User,
    Group,
}

impl Principal {
    const fn word(self) -> &'static str {
        match self {
            Principal::User => "user",
            Principal::Group => "group",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Principal::User => "users",
            Principal::Group => "groups",
        }
    }

    /// The number of this name, in the system's own sources.
    fn number(self, name: &str) -> Option<u32> {
        match self {
            Principal::User => uzers::get_user_by_name(name).map(|user| user.uid()),
            Principal::Group => uzers::get_group_by_name(name).map(|group| group.gid()),
        }
    }
}

/// Reads who has which role. Names become numbers here, so that a connection waits for no directory service.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Access {
    if !CONFIG_ACCESS.is_map(view, "access", "a map with `admin` or `read`", report) {
        return Access::default();
    }
    let admin = members(view, "admin", &Members::default(), report);
    let read = members(view, "read", &admin, report);
    Access { admin, read }
}

/// Those of one role, of whom none may have `other` too.
fn members(access: View<'_>, role: &str, other: &Members, report: &mut Report) -> Members {
    let written = access.written(role);
    let Some(view) = written.filter(|view| {
        let expected = "a map with `users` or `groups`";
        CONFIG_MEMBERS.is_map(*view, role, expected, report)
    }) else {
        return Members::default();
    };
    Members {
        users: list(view, Principal::User, &other.users, report),
        groups: list(view, Principal::Group, &other.groups, report),
    }
}

fn list(role: View<'_>, named: Principal, other: &[Member], report: &mut Report) -> Vec<Member> {
    let key = named.key();
    let Some(view) = role.written(key) else {
        return Vec::new();
    };
    let Data::List(items) = view.data() else {
        view.wrong_type(key, "a list of names and numbers", report);
        return Vec::new();
    };
    if items.len() > MEMBERS_MAX {
        let message = format!("more than {MEMBERS_MAX} {key}");
        report.error("too-many", view.place(), message, "name a group of them");
        return Vec::new();
    }
    let found = view.items().filter_map(|item| {
        let member = member(item, named, report)?;
        if !other.iter().any(|one| one.id == member.id) {
            return Some(member);
        }
        let what = named.word();
        let message = format!(
            "the {what} `{}` has the role `admin` too",
            member.name.escape_debug()
        );
        let hint = "name them once: `admin` includes `read`";
        report.error("access-twice", item.place(), message, hint);
        None
    });
    found.collect()
}

fn member(view: View<'_>, named: Principal, report: &mut Report) -> Option<Member> {
    let key = named.key();
    if matches!(view.data(), Data::Number(_)) {
        let number = view.whole(key, 0..=ID_MAX, report)?;
        let id = u32::try_from(number).ok()?;
        let name = id.to_string();
        return Some(Member { name, id });
    }
    if !matches!(view.data(), Data::Text(_)) {
        let expected = format!("the name or number of a {}", named.word());
        view.wrong_type(key, &expected, report);
        return None;
    }
    let name = view.filled_text(key, report)?;
    if let Some(id) = named.number(&name) {
        return Some(Member { name, id });
    }
    let database = match named {
        Principal::User => "passwd",
        Principal::Group => "group",
    };
    // Who has left the machine gets no role; that is no reason to stop the schedules of those who stay.
    report.warning(
        "access-unknown",
        view.place(),
        format!(
            "there is no {} `{}` on this machine",
            named.word(),
            name.escape_debug()
        ),
        &format!(
            "`getent {database}` lists them; a number is written without quotes. `workerctl daemon reload` looks again"
        ),
    );
    None
}
