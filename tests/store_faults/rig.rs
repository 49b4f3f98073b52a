//! What every test here uses.

/// `short` rounds, times what the environment asks for.
pub(crate) fn rounds(short: usize) -> usize {
    let factor = std::env::var("WORKERCTL_TEST_ROUNDS")
        .ok()
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(1);
    short * factor.max(1)
}

/// A repeatable sequence of numbers that looks random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

pub(crate) use xtest::skip;

/// Runs a program and answers whether it succeeded; what it says is shown when it did not.
pub(crate) fn run_tool(program: &str, arguments: &[&str]) -> bool {
    match std::process::Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            println!("{program} {arguments:?}: {said}");
            false
        }
        Err(error) => {
            println!("{program}: {error}");
            false
        }
    }
}
