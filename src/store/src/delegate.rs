//! The trait for a type that wraps a [`super::keyed::Keyed`].

/// Implements [`super::Store`] for a type whose field `0` leads to a `Keyed`.
macro_rules! store_over_keyed {
    ($store:ty) => {
        impl crate::Store for $store {
            fn commit(&self, batch: &crate::Batch) -> Result<(), crate::StoreError> {
                self.0.commit(batch, true)
            }
            fn commit_lazily(&self, batch: &crate::Batch) -> Result<(), crate::StoreError> {
                self.0.commit(batch, false)
            }
            fn reopen(&self) -> Result<(), crate::StoreError> {
                self.0.reopen()
            }
            fn next_fence(&self) -> Result<u64, crate::StoreError> {
                self.0.next_fence()
            }
            fn active(&self) -> Result<Vec<crate::model::RunId>, crate::StoreError> {
                self.0.active()
            }
            fn spec(
                &self,
                run: crate::model::RunId,
            ) -> Result<Option<crate::model::RunSpec>, crate::StoreError> {
                self.0.spec(run)
            }
            fn journal(
                &self,
                run: crate::model::RunId,
            ) -> Result<Vec<crate::machine::Entry>, crate::StoreError> {
                self.0.journal(run)
            }
            fn summary(
                &self,
                run: crate::model::RunId,
            ) -> Result<Option<crate::protocol::RunSummary>, crate::StoreError> {
                self.0.summary(run)
            }
            fn summaries(
                &self,
                before: Option<crate::model::RunId>,
                callback: &mut dyn FnMut(crate::protocol::RunSummary) -> std::ops::ControlFlow<()>,
            ) -> Result<(), crate::StoreError> {
                self.0.summaries(before, callback)
            }
            fn find(
                &self,
                fragment: &str,
                limit: usize,
            ) -> Result<Vec<crate::model::RunId>, crate::StoreError> {
                self.0.find(fragment, limit)
            }
            fn key(
                &self,
                key: &str,
            ) -> Result<Option<(crate::model::RunId, crate::model::Timestamp)>, crate::StoreError>
            {
                self.0.key(key)
            }
            fn newest(&self) -> Result<Option<crate::model::RunId>, crate::StoreError> {
                self.0.newest()
            }
            fn schedules(
                &self,
                callback: &mut dyn FnMut(
                    &str,
                    Result<crate::model::schedule::ScheduleState, crate::Unreadable>,
                ),
            ) -> Result<(), crate::StoreError> {
                self.0.schedules(callback)
            }
            fn schedule(
                &self,
                id: &str,
            ) -> Result<Option<crate::model::schedule::ScheduleState>, crate::StoreError> {
                self.0.schedule(id)
            }
            fn slots(
                &self,
                schedule: &str,
                before: Option<crate::model::Timestamp>,
                callback: &mut dyn FnMut(
                    Result<crate::model::schedule::SlotRow, crate::Unreadable>,
                ) -> std::ops::ControlFlow<()>,
            ) -> Result<(), crate::StoreError> {
                self.0.slots(schedule, before, callback)
            }
            fn notices(
                &self,
                callback: &mut dyn FnMut(Result<crate::model::Notices, crate::Unreadable>),
            ) -> Result<(), crate::StoreError> {
                self.0.notices(callback)
            }
            fn counters(&self) -> crate::StoreCounters {
                self.0.counters()
            }
        }
    };
}
pub(super) use store_over_keyed;
