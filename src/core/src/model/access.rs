//! Who may ask an engine for what, beside its own user and root.

use serde::{Deserialize, Serialize};

/// What somebody may do over the control socket; the later one includes the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessRole {
    /// What changes nothing.
    Read,
    /// Everything.
    Admin,
}

impl AccessRole {
    /// Its name, which is its key in the configuration too.
    pub const fn name(self) -> &'static str {
        match self {
            AccessRole::Read => "read",
            AccessRole::Admin => "admin",
        }
    }
}

/// A user or a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// As it is written: a name, or the number itself.
    pub name: String,
    /// The number that the kernel knows it by.
    pub id: u32,
}

/// Those who have a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Users.
    pub users: Vec<Member>,
    /// Groups.
    pub groups: Vec<Member>,
}

impl Members {
    fn include(&self, uid: u32, groups: &[u32]) -> bool {
        self.users.iter().any(|user| user.id == uid)
            || self.groups.iter().any(|one| groups.contains(&one.id))
    }

    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }
}

/// Roles of others than the engine's own user and root, who have all rights.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Who may do everything.
    pub admin: Members,
    /// Who may look.
    pub read: Members,
}

impl Access {
    /// The role of a user who is in these groups; the higher one of two.
    pub fn role_of(&self, uid: u32, groups: &[u32]) -> Option<AccessRole> {
        if self.admin.include(uid, groups) {
            Some(AccessRole::Admin)
        } else {
            self.read.include(uid, groups).then_some(AccessRole::Read)
        }
    }

    /// Whether nobody has a role.
    pub fn is_empty(&self) -> bool {
        self.admin.is_empty() && self.read.is_empty()
    }

    /// The groups that have a role.
    pub fn groups(&self) -> impl Iterator<Item = u32> {
        let all = self.admin.groups.iter().chain(&self.read.groups);
        all.map(|group| group.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_role_counts_and_strangers_have_none() {
        let of = |ids: &[u32]| -> Vec<Member> {
            let member = |id: &u32| Member {
                name: id.to_string(),
                id: *id,
            };
            ids.iter().map(member).collect()
        };
        let access = Access {
            admin: Members {
                users: of(&[1]),
                groups: of(&[10]),
            },
            read: Members {
                users: of(&[2]),
                groups: of(&[20]),
            },
        };
        for (uid, groups, role) in [
            (1, &[20][..], Some(AccessRole::Admin)),
            (2, &[10], Some(AccessRole::Admin)),
            (2, &[], Some(AccessRole::Read)),
            (3, &[9, 20], Some(AccessRole::Read)),
            (10, &[1, 2], None),
        ] {
            assert_eq!(access.role_of(uid, groups), role, "{uid} {groups:?}");
        }
        assert_eq!(Access::default().role_of(1, &[10]), None);
        assert!(AccessRole::Admin > AccessRole::Read);
    }
}
