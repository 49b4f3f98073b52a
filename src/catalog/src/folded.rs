//! Names without their case, each with the places that have it; made once, when first asked for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Places in what does not change any more, by folded name.
#[derive(Debug)]
pub(crate) struct Folded<P> {
    places: OnceLock<HashMap<Box<str>, Vec<P>>>,
}

impl<P> Default for Folded<P> {
    fn default() -> Folded<P> {
        Folded {
            places: OnceLock::new(),
        }
    }
}

impl<P: Copy + PartialEq> Folded<P> {
    /// The places that have `wanted`, which is folded already, in the order in which `names` gives them. It is
    /// asked once.
    pub(crate) fn find<N>(&self, wanted: &str, names: impl FnOnce() -> N) -> &[P]
    where
        N: Iterator<Item = (String, P)>,
    {
        let places = self.places.get_or_init(|| {
            let mut places: HashMap<Box<str>, Vec<P>> = HashMap::new();
            for (name, place) in names() {
                places
                    .entry(name.to_lowercase().into())
                    .or_default()
                    .push(place);
            }
            places
        });
        places.get(wanted).map_or(&[], Vec::as_slice)
    }
}

/// Case does not tell ids apart. Hardly any has capitals, and there may be very many.
pub(crate) fn folded(id: &str) -> Cow<'_, str> {
    if id.chars().any(char::is_uppercase) {
        Cow::Owned(id.to_lowercase())
    } else {
        Cow::Borrowed(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_name_is_found_in_order() {
        let folded = Folded::default();
        let names = ["A", "b", "a", "Ä"];
        let all = || names.into_iter().map(str::to_owned).zip(0..);
        assert_eq!(folded.find("a", all), [0, 2]);
        assert_eq!(folded.find("ä", all), [3]);
        assert!(folded.find("A", all).is_empty(), "what is wanted is folded");
    }
}
