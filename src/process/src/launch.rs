//! A program of the person's own, such as a browser, that goes on without us.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts a program that is found in `PATH`, apart from our terminal. How it ends interests nobody.
///
/// # Errors
/// There is none of that name, or it may not be started.
pub fn launch(program: &str, argument: &OsStr) -> io::Result<()> {
    let mut child = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends us, and no browser.
        .process_group(0)
        .spawn()?;
    // It is taken note of once it has ended, so that it does not stay as a zombie.
    std::thread::spawn(move || child.wait());
    Ok(())
}
