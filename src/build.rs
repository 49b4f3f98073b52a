//! Chooses how the program is linked and how many tests run at the same time.

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    println!("cargo::rerun-if-env-changed=RUST_TEST_THREADS");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // The tests start the quick build thousands of times, and each start of a program that can be loaded at any
    // address would first adjust 270,000 addresses. A release keeps the protection by random addresses.
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    // Most tests of this package wait for a disk, a timer or a program. `cargo test` passes this variable on to them.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        println!("cargo::rustc-env=RUST_TEST_THREADS={}", 2 * processors);
    }
}
