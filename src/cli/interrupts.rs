//! Signals to a waiting command, as messages.

use std::io;
use std::thread::{Builder, JoinHandle};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU};
use signal_hook::iterator::{Handle, Signals};

use super::signals::is_ignored_at_start;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// A person pressed Ctrl-C.
    Interrupted,
    /// The process is to end, its terminal has gone, or it has used the processor time that it may.
    Terminated,
}

/// Takes one signal.
pub(crate) type SignalCallback = Box<dyn Fn(Interrupt) + Send>;

/// Where signals come from.
pub(crate) trait Interrupts {
    /// Tells each signal, from another thread, until what is returned is dropped.
    fn listen(&self, told: SignalCallback) -> io::Result<Listening>;
}

/// Signals are told as long as this lives.
pub(crate) struct Listening(Option<(Handle, JoinHandle<()>)>);

impl Listening {
    /// For signals that come from elsewhere.
    #[cfg(test)]
    pub(crate) fn to_nothing() -> Listening {
        Listening(None)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.0.take() {
            handle.close();
            // It only forwards: there is nothing to learn from how it ended.
            let _ = thread.join();
        }
    }
}

/// Signals of this process.
pub(crate) struct ProcessInterrupts;

impl Interrupts for ProcessInterrupts {
    fn listen(&self, told: SignalCallback) -> io::Result<Listening> {
        // At its limit of processor time (`ulimit -S -t`) it ends in order, before the hard limit kills it.
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGXCPU])?;
        // Whoever starts it by `nohup` wants it to outlive its terminal.
        if !is_ignored_at_start(SIGHUP) {
            signals.add_signal(SIGHUP)?;
        }
        let handle = signals.handle();
        let thread = Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                told(if signal == SIGINT {
                    Interrupt::Interrupted
                } else {
                    Interrupt::Terminated
                });
            }
        })?;
        Ok(Listening(Some((handle, thread))))
    }
}
