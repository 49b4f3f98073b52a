//! Signals that this process was started with, or that must not end it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGXFSZ;

/// The signals that were ignored when the program was started, as bits from signal 1 on.
static IGNORED_AT_START: OnceLock<u64> = OnceLock::new();

/// Handles every signal that this process was started with as ignored, and SIGXFSZ, by doing nothing. To be called
/// once at the start, before the first command.
///
/// For this process that is the same as to ignore it: a file that reaches its limit of size fails with an error. But a
/// handler does not survive `exec`, so that every command begins with the default action of each signal, however the
/// program was started (`nohup`, a parent that ignores SIGCHLD or SIGINT).
pub fn handle_ignored() {
    let ignored = ignored_signals();
    let _ = IGNORED_AT_START.set(ignored);
    let inherited = (1..=64).filter(|signal| ignored & bit(*signal) != 0);
    for signal in inherited.chain([SIGXFSZ]) {
        // Some cannot be handled, which the C library keeps for itself.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Whether the program was started with this signal ignored, as by `nohup`.
pub(crate) fn is_ignored_at_start(signal: i32) -> bool {
    IGNORED_AT_START
        .get()
        .is_some_and(|ignored| ignored & bit(signal) != 0)
}

fn bit(signal: i32) -> u64 {
    let place = u32::try_from(signal - 1).unwrap_or(u32::MAX);
    1_u64.checked_shl(place).unwrap_or_default()
}

/// None where `/proc` cannot be read.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The standard library ignores it itself and gives commands the default action.
    mask.unwrap_or_default() & !bit(signal_hook::consts::SIGPIPE)
}
