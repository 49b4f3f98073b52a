//! The `workerctl` binary.

fn main() {}
