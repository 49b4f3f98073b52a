//! The keys of a skill, in worker.yaml and in its own file.

use super::listing::{FileOf, Item};
use super::view::View;

/// The keys of a skill: those in worker.yaml win over those in its own file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers<'a> {
    pub(crate) inline: Option<View<'a>>,
    pub(crate) file: Option<View<'a>>,
}

impl<'a> Layers<'a> {
    /// Those of a listed or found skill; of a broken file those in worker.yaml alone.
    pub(crate) fn of(item: &Item<'a>) -> Layers<'a> {
        let file = match item.file {
            FileOf::Read(file) => file.keys(),
            FileOf::None | FileOf::Missing(_) | FileOf::Broken => None,
        };
        Layers {
            inline: item.inline,
            file,
        }
    }

    /// The value of a key, null included.
    pub(crate) fn written(&self, key: &str) -> Option<View<'a>> {
        let of = |layer: Option<View<'a>>| layer.and_then(|map| map.get(key));
        of(self.inline).or_else(|| of(self.file))
    }

    /// The value of a key where one is written.
    pub(crate) fn get(&self, key: &str) -> Option<View<'a>> {
        let of = |layer: Option<View<'a>>| {
            layer
                .and_then(|map| map.get(key))
                .filter(|value| !value.is_null())
        };
        of(self.inline).or_else(|| of(self.file))
    }

    /// Whether a value comes from the skill's own file.
    pub(crate) fn in_file(&self, key: &str) -> bool {
        self.inline
            .and_then(|map| map.get(key))
            .is_none_or(|value| value.is_null())
    }
}
