//! Calls of sled, which panics where it finds damage: a panic becomes a message.
//!
//! The message would otherwise also reach standard error, where a service has no use for it. The
//! process's panic hook is therefore wrapped once: it stays silent for a thread that is inside
//! [`catch_panics`] and for the threads that sled names `sled-io-…`, and is the former hook for all others.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `call`; a panic in it comes back as its message.
pub(super) fn catch_panics<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let current = std::thread::current();
            let sleds_own = current
                .name()
                .is_some_and(|name| name.starts_with("sled-io-"));
            if !sleds_own && !SILENT.get() {
                former(info);
            }
        }));
    });
    let outer = SILENT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    SILENT.set(outer);
    result.map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_message() {
        assert_eq!(catch_panics(|| 7), Ok(7));
        assert_eq!(
            catch_panics(|| panic!("lost {}", 3)),
            Err::<(), _>("lost 3".to_owned())
        );
        assert!(!SILENT.get());
    }
}
