//! Verifies packs and their indexes without the git library, which follows a delta that leads to itself for ever.
//!
//! The format is that of gitformat-pack(5).

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::loose::inflate;

/// Largest object that is a delta or the base of one, in bytes: the git library holds both in memory.
const DELTA_BYTES_MAX: u64 = 513 << 20;

/// Most work to read one object, in bytes: the lengths of all objects of its chain of deltas, each of which counts for
/// at least [`LINK_COST`]. With that a chain has at most 4096 deltas, as git limits it.
const CHAIN_COST_MAX: u64 = 16 << 30;
const LINK_COST: u64 = 4 << 20;

/// Bytes of the index that do not depend on the number of its objects: header, fan-out and two checksums.
const INDEX_FRAME_BYTES: u64 = 8 + 1024 + 40;

/// Which object a delta changes.
enum Base {
    None,
    At(u64),
    Named([u8; 20]),
}

/// An object of a pack.
struct Packed {
    offset: u64,
    /// In bytes, unpacked and with all deltas applied.
    length: u64,
    base: Base,
}

/// An object of the index: id and offset.
type Indexed = ([u8; 20], u64);

/// Returns how many bytes the streams of a pack unpack to; `None` unless each is complete, at most `most` bytes are
/// unpacked, every delta has a base in the pack, and the index lists the objects of the pack.
pub(crate) fn pack_length(pack: &Path, most: u64) -> Option<u64> {
    let (objects, unpacked) = read_pack(pack, most)?;
    let index = read_index(&pack.with_extension("idx"), objects.len())?;
    let at = |offset: u64| {
        let found = objects.binary_search_by_key(&offset, |object| object.offset);
        found.ok()
    };
    let is_listed = |(_, offset): &Indexed| at(*offset).is_some();
    (index.iter().all(is_listed) && has_sound_chains(&objects, &index, &at)).then_some(unpacked)
}

/// Returns false if a base is missing, or the chain of a delta is endless or costs too much.
fn has_sound_chains(
    objects: &[Packed],
    index: &[Indexed],
    at: &dyn Fn(u64) -> Option<usize>,
) -> bool {
    let named = |name: &[u8; 20]| {
        let found = index.binary_search_by_key(&name, |(id, _)| id).ok()?;
        at(index.get(found)?.1)
    };
    // Zero until it is known.
    let mut costs = vec![0; objects.len()];
    for start in 0..objects.len() {
        let (mut chain, mut next, mut cost) = (Vec::new(), Some(start), 0);
        while let Some(place) = next {
            let Some((object, known)) = objects.get(place).zip(costs.get(place)) else {
                return false;
            };
            if object.length > DELTA_BYTES_MAX && !chain.is_empty() {
                return false;
            }
            if *known > 0 {
                cost = *known;
                break;
            }
            if u64::try_from(chain.len()).unwrap_or(u64::MAX) > CHAIN_COST_MAX / LINK_COST {
                return false;
            }
            chain.push((place, object.length));
            next = match &object.base {
                Base::None => None,
                Base::At(offset) => at(*offset),
                Base::Named(name) => named(name),
            };
            if next.is_none() && !matches!(object.base, Base::None) {
                return false;
            }
        }
        for (place, length) in chain.into_iter().rev() {
            let is_delta = cost > 0;
            cost += length.max(LINK_COST);
            if is_delta && (length > DELTA_BYTES_MAX || cost > CHAIN_COST_MAX) {
                return false;
            }
            if let Some(known) = costs.get_mut(place) {
                *known = cost;
            }
        }
    }
    true
}

/// Reads all objects of a pack in their order, and returns to how many bytes they unpack.
fn read_pack(pack: &Path, most: u64) -> Option<(Vec<Packed>, u64)> {
    let file = File::open(pack).ok()?;
    let length = file.metadata().ok()?.len();
    let mut input = Counted {
        input: BufReader::new(file),
        position: 0,
    };
    let head: [u8; 12] = bytes(&mut input)?;
    let [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3, count @ ..] = head else {
        return None;
    };
    let (mut objects, mut unpacked) = (Vec::new(), 0);
    for _ in 0..u32::from_be_bytes(count) {
        let (object, length) = read_object(&mut input, most - unpacked)?;
        unpacked += length;
        objects.push(object);
    }
    (length == input.position + 20).then_some((objects, unpacked))
}

/// Reads one object, and returns the unpacked length of its stream too.
fn read_object(input: &mut Counted, most: u64) -> Option<(Packed, u64)> {
    let offset = input.position;
    let first = byte(input)?;
    let mut declared = u64::from(first & 15);
    if first & 128 != 0 {
        declared |= varint(&mut || byte(input))?.checked_mul(16)?;
    }
    let base = match first >> 4 & 7 {
        1..=4 => Base::None,
        6 => Base::At(offset.checked_sub(distance(input)?)?),
        7 => Base::Named(bytes(input)?),
        _ => return None,
    };
    // A delta begins with the lengths of its base and of its result, of at most 10 bytes each.
    let mut begin = Vec::new();
    let unpacked = inflate(input, most, &mut |bytes| {
        let missing = 20 - begin.len();
        begin.extend(bytes.iter().take(missing));
    })?;
    let mut length = unpacked;
    if !matches!(base, Base::None) {
        let mut begin = begin.into_iter();
        varint(&mut || begin.next())?;
        length = varint(&mut || begin.next())?;
    }
    let object = Packed {
        offset,
        length,
        base,
    };
    (unpacked == declared).then_some((object, unpacked))
}

/// Reads the index of a pack with `count` objects: ids in ascending order, the table of how many begin with a byte or a
/// smaller one, and offsets.
fn read_index(index: &Path, count: usize) -> Option<Vec<Indexed>> {
    let objects = u64::try_from(count).ok()?;
    let length = fs::metadata(index).ok()?.len();
    // Offsets beyond 2 GiB take 8 bytes more each.
    let large = length.checked_sub(INDEX_FRAME_BYTES + 28 * objects)?;
    if large % 8 != 0 || large > 8 * objects {
        return None;
    }
    let content = fs::read(index).ok()?;
    let (head, content) = content.split_first_chunk::<8>()?;
    let (fans, content) = content.split_at_checked(1024)?;
    let (ids, content) = content.split_at_checked(20 * count)?;
    let (_, content) = content.split_at_checked(4 * count)?;
    let (offsets, large) = content.split_at_checked(4 * count)?;
    if head != b"\xfftOc\0\0\0\x02" {
        return None;
    }
    let number = |table: &[u8], place: usize| {
        let four = table.get(4 * place..)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*four))
    };
    let mut listed: Vec<Indexed> = Vec::with_capacity(count);
    for (place, id) in ids.chunks_exact(20).enumerate() {
        let id: [u8; 20] = id.try_into().ok()?;
        let mut offset = u64::from(number(offsets, place)?);
        if let Some(at) = offset.checked_sub(1 << 31) {
            let at = usize::try_from(at).ok()?.checked_mul(8)?;
            offset = u64::from_be_bytes(*large.get(at..)?.first_chunk::<8>()?);
        }
        if listed.last().is_some_and(|(former, _)| *former >= id) {
            return None;
        }
        listed.push((id, offset));
    }
    for fan in 0..=u8::MAX {
        let below = listed.partition_point(|(id, _)| id[0] <= fan);
        if usize::try_from(number(fans, usize::from(fan))?).ok()? != below {
            return None;
        }
    }
    Some(listed)
}

fn byte(input: &mut Counted) -> Option<u8> {
    let [byte] = bytes(input)?;
    Some(byte)
}

fn bytes<const N: usize>(input: &mut Counted) -> Option<[u8; N]> {
    let mut found = [0; N];
    input.read_exact(&mut found).ok()?;
    Some(found)
}

/// Seven bits in each byte, the lowest first; the highest bit says that another byte follows.
fn varint(next: &mut dyn FnMut() -> Option<u8>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

/// How far before a delta its base is: seven bits in each byte, the highest first, each further byte plus one.
fn distance(input: &mut Counted) -> Option<u64> {
    let mut next = byte(input)?;
    let mut value = u64::from(next & 127);
    while next & 128 != 0 {
        next = byte(input)?;
        value = (value + 1).checked_mul(128)? | u64::from(next & 127);
    }
    (value > 0).then_some(value)
}

/// A reader that knows where it is.
struct Counted {
    input: BufReader<File>,
    position: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.position += u64::try_from(count).unwrap_or_default();
        Ok(count)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.position += u64::try_from(count).unwrap_or_default();
        self.input.consume(count);
    }
}
