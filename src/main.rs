//! The `workerctl` binary.

fn main() -> std::process::ExitCode {
    workerctl::cli::main()
}
