//! The `workerctl` binary.

fn main() -> std::process::ExitCode {
    workerctl::cli::handle_ignored();
    // What cannot be marked is told by nobody yet; the daemon's log would be the place, and there is none.
    let _ = workerctl::process::close_inherited_on_exec();
    workerctl::process::launched_within_container().unwrap_or_else(workerctl::cli::main)
}
