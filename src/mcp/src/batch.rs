//! Batches: several messages in one line, which version 2025-03-26 of the protocol has and no other.

use serde_json::Value;

/// Messages that one batch may hold.
pub(super) const MESSAGES_MAX: usize = 256;

/// Batches that may wait for answers at once.
pub(super) const BATCHES_MAX: usize = 16;

/// Batches whose answers are not complete.
#[derive(Debug, Default)]
pub(super) struct Batches(Vec<Batch>);

/// The answers to one batch, which go out together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    awaited: Vec<Value>,
    answers: Vec<Value>,
}

impl Batch {
    /// A request that will be answered.
    pub(super) fn awaits(&mut self, id: Value) {
        self.awaited.push(id);
    }

    /// A message that is answered already.
    pub(super) fn answered(&mut self, answer: Value) {
        self.answers.push(answer);
    }
}

impl Batches {
    /// Whether one more may come.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= BATCHES_MAX
    }

    /// Takes a batch in; its answers, where none is missing.
    pub(super) fn begin(&mut self, batch: Batch) -> Option<Value> {
        self.0.push(batch);
        self.complete()
    }

    /// Whether an answer to `id` belongs to a batch.
    pub(super) fn await_answer_to(&self, id: &Value) -> bool {
        self.0.iter().any(|batch| batch.awaited.contains(id))
    }

    /// Takes the answer to `id`, or `None` where there will be none; the answers of its batch, where it was
    /// the last one.
    pub(super) fn settle(&mut self, id: &Value, answer: Option<Value>) -> Option<Value> {
        let batch = self.0.iter_mut().find(|batch| batch.awaited.contains(id))?;
        batch.awaited.retain(|awaited| awaited != id);
        batch.answers.extend(answer);
        self.complete()
    }

    fn complete(&mut self) -> Option<Value> {
        let at = self.0.iter().position(|batch| batch.awaited.is_empty())?;
        let answers = self.0.swap_remove(at).answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_of_a_batch_go_out_together() {
        let mut batches = Batches::default();
        assert_eq!(
            batches.begin(Batch::default()),
            None,
            "notifications alone have no answer"
        );
        let mut batch = Batch::default();
        batch.answered(json!("refused"));
        batch.awaits(json!(1));
        batch.awaits(json!("two"));
        batch.awaits(json!(3));
        assert_eq!(batches.begin(batch), None);
        assert!(batches.await_answer_to(&json!("two")) && !batches.await_answer_to(&json!(2)));
        assert_eq!(batches.settle(&json!("two"), Some(json!("b"))), None);
        assert_eq!(
            batches.settle(&json!(3), None),
            None,
            "a cancelled request has no answer"
        );
        let all = batches.settle(&json!(1), Some(json!("a")));
        assert_eq!(all, Some(json!(["refused", "b", "a"])));
        assert_eq!(batches.settle(&json!(1), Some(json!("a"))), None);
    }
}
