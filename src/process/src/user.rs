//! Names of users, as the system's own sources have them.

/// What a user is called; one without a name by their number.
pub fn name_of_user(uid: u32) -> String {
    match uzers::get_user_by_uid(uid) {
        Some(user) => user.name().to_string_lossy().into_owned(),
        None => format!("uid {uid}"),
    }
}

/// What the user of this process is called.
pub fn own_name() -> String {
    name_of_user(rustix::process::getuid().as_raw())
}
