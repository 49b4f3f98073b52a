//! The end of the core loop, however it comes: nobody waits for a loop that does not turn any more.

use std::sync::Arc;

use super::inbox::Inbox;
use super::view::View;
use crate::model::{Diagnostic, Kind};

/// Tells the end of the loop; one that is dropped without a word tells of a panic.
pub(super) struct AtEnd {
    inbox: Arc<Inbox>,
    view: Arc<View>,
}

impl AtEnd {
    /// For the loop behind this inbox and this view.
    pub(super) fn of(inbox: &Arc<Inbox>, view: &Arc<View>) -> AtEnd {
        AtEnd {
            inbox: Arc::clone(inbox),
            view: Arc::clone(view),
        }
    }

    /// The loop has ended like this.
    pub(super) fn tell(self, ended: Result<(), Diagnostic>) -> Result<(), Diagnostic> {
        self.view.end(ended.clone());
        ended
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        // The first end that is told counts.
        self.view.end(Err(panicked()));
        self.inbox.close();
    }
}

/// A fault of ours.
pub(super) fn panicked() -> Diagnostic {
    Diagnostic::new(Kind::Internal, "internal", "the core loop panicked")
        .hint("start the engine again: it recovers from what was committed")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::super::request::Request;
    use super::*;

    #[test]
    fn a_loop_that_panics_leaves_nobody_waiting() {
        let (inbox, view) = (Arc::new(Inbox::default()), Arc::new(View::default()));
        let at_end = AtEnd::of(&inbox, &view);
        let ask = || inbox.request(Request::Drain).unwrap();
        let run = "01JC0000000000000000000001".parse().unwrap();
        let watching = view.watch(run).unwrap();
        let (told, hears) = sync_channel(2);
        let again = told.clone();
        view.on_end(Box::new(move || told.send("waited").unwrap()));
        let before = ask();
        assert!(hears.try_recv().is_err());
        drop(at_end);
        view.on_end(Box::new(move || again.send("came late").unwrap()));
        assert_eq!(hears.iter().collect::<Vec<_>>(), ["waited", "came late"]);
        for answer in [before, ask()] {
            let refused = answer.recv().unwrap().unwrap_err();
            assert_eq!(refused.kind, Kind::Unreachable);
        }
        assert!(watching.events.recv().is_err());
        assert_eq!(view.ended(), Some(&Err(panicked())));
    }
}
