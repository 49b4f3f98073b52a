//! The index of the small repository, written here because building one entry by entry takes longer than
//! everything else together.

use rustix::fs::Stat;
use sha1::{Digest, Sha1};

use crate::known::{FileStamp, Item, Laid, Manifest};

/// `git update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = 0x8000;

/// The bytes of an index (version 2) with the base's entries and the stat data of the files.
///
/// What is laid over a tracked path is marked as unchanged, so that neither `git status` nor
/// `git commit -a` sees it.
pub(crate) fn encode(manifest: &Manifest, root: &Stat) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + manifest.known.len() * 120);
    out.extend_from_slice(b"DIRC\0\0\0\x02\0\0\0\0");
    let mut count: u32 = 0;
    for (known, stamp) in manifest.known.iter().zip(&manifest.stamps) {
        let Some(base) = known.base else { continue };
        count += 1;
        let flags = match known.laid {
            Laid::No => 0,
            Laid::Over(_) | Laid::Hidden => ASSUME_UNCHANGED,
        };
        put(&mut out, &known.path, base, stamp.as_ref(), (root, flags));
    }
    if let Some(place) = out.get_mut(8..12) {
        place.copy_from_slice(&count.to_be_bytes());
    }
    let sum = Sha1::digest(&out);
    out.extend_from_slice(&sum);
    out
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the format holds the lower 32 bits, and git compares those"
)]
fn put(
    out: &mut Vec<u8>,
    path: &[u8],
    item: Item,
    stamp: Option<&FileStamp>,
    (root, flags): (&Stat, u16),
) {
    let start = out.len();
    let mut number = |n: u32| out.extend_from_slice(&n.to_be_bytes());
    if let Some(stamp) = stamp {
        for time in [stamp.changed_ns, stamp.modified_ns] {
            number(time.div_euclid(1_000_000_000) as u32);
            number(time.rem_euclid(1_000_000_000) as u32);
        }
        number(root.st_dev as u32);
        number(stamp.inode as u32);
        number(item.plain_mode());
        number(root.st_uid);
        number(root.st_gid);
        number(stamp.size as u32);
    } else {
        for field in 0..10 {
            number(if field == 6 { item.plain_mode() } else { 0 });
        }
    }
    out.extend_from_slice(item.oid.as_bytes());
    let length = path.len().min(0xfff) as u16;
    out.extend_from_slice(&(flags | length).to_be_bytes());
    out.extend_from_slice(path);
    // One to eight zeros, so that the next entry starts at a multiple of eight.
    let padding = 8 - (out.len() - start) % 8;
    out.extend_from_slice(&[0; 8][..padding]);
}
