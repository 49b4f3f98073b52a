//! Bounds and defaults of keys, which their tables and their readers share.

/// The highest number of a user or group: the one above it stands for none.
pub(crate) const ID_MAX: u64 = u32::MAX as u64 - 1;

/// Limit of a check that names none, in milliseconds.
pub(crate) const CHECK_TIMEOUT_MS: u64 = 60_000;

/// Limit of a command that prints a secret where none is named, in milliseconds.
pub(crate) const SECRET_TIMEOUT_MS: u64 = 30_000;

/// Runs that may be active at once.
pub(crate) const PARALLEL_MAX: u64 = 1_024;

/// Runs that may wait.
pub(crate) const QUEUE_MAX: u64 = 1_000_000;

/// Bytes of one command's output that may be kept: 1 GiB.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Trees that runs may work in.
pub(crate) const TREES_MAX: u64 = 1_024;

/// Most runs of a skill that stay whatever their age.
pub(crate) const RUNS_MIN_MAX: u64 = 10_000;

/// Bytes that the list of skills in the description of a tool may have.
pub(crate) const LIST_BYTES_MIN: u64 = 200;
pub(crate) const LIST_BYTES_MAX: u64 = 1_048_576;

/// Turns of a model that a skill may ask for.
pub(crate) const ITERATIONS_MAX: u64 = 1_000;

/// Sessions that may be asked for.
pub(crate) const SESSIONS_MAX: u64 = 1_024;

/// Waits of one run for the end of a rate limit.
pub(crate) const RATE_LIMIT_WAITS_MAX: u64 = 100;

/// Processes that one command may have at a time; no kernel has more numbers for them.
pub(crate) const PROCESSES_MAX: u64 = 4_194_304;

/// Tokens that one answer may be asked for.
pub(crate) const OUTPUT_TOKENS_MAX: u32 = 1_000_000;

/// Tokens that one answer may have where nothing is said.
pub(crate) const OUTPUT_TOKENS: u32 = 8_192;

/// How often a schedule may run in all, and how many failures it may wait for.
pub(crate) const COUNT_MAX: u64 = 1_000_000_000;

/// Runs at once that `max_concurrent` may name.
pub(crate) const CONCURRENT_MAX: u64 = 1_024;

/// How long nothing may change before it counts where nothing is said, in milliseconds.
pub(crate) const SETTLE_MS: u64 = 2_000;

/// Limit of a hook that names none, in milliseconds.
pub(crate) const HOOK_TIMEOUT_MS: u64 = 60_000;

/// Attempts that may be asked for.
pub(crate) const ATTEMPTS_MAX: u64 = 100;

/// Wait before the second attempt where nothing else is said, in milliseconds.
pub(crate) const BACKOFF_INITIAL_MS: u64 = 1_000;

/// Limit of a command of a tool set that names none, in milliseconds.
pub(crate) const COMMAND_MS: u64 = 120_000;

/// Limit of the start of a server that names none, in milliseconds.
pub(crate) const START_MS: u64 = 30_000;

/// The shortest `silence` of an agent program, in milliseconds.
pub(crate) const SILENCE_MS: u64 = 1_000;

/// Limit of a call of a server that names none, in milliseconds.
pub(crate) const CALL_MS: u64 = 60_000;
