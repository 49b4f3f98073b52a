//! Memory of this process itself.

/// Has the C library give pages back to the system in which nothing lies any more, on all threads: it keeps most of
/// them, and after work that needed much once they would be held for good. Takes some milliseconds; the C library of
/// others than GNU gives them back by itself.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(
            unsafe_code,
            reason = "no library offers this call; it takes no pointer"
        )]
        // SAFETY: it may be called at any time on any thread, and changes nothing that is in use.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
