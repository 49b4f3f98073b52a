//! The bytes of an index file.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sha1::{Digest, Sha1};

use super::{ASSUME_UNCHANGED, Entries, EntryStat, STAGES, low};
use crate::error::GitError;

const EXTENDED: u16 = 0x4000;
const NAME_LENGTH: u16 = 0x0fff;

/// Bytes of an entry before its name, without the extended flags.
const FIXED: usize = 62;

/// Bytes of the checksum at the end.
const SUM: usize = 20;

impl Entries {
    /// Reads the bytes of an index file.
    ///
    /// # Errors
    /// It is damaged, or split or sparse, which is not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, GitError> {
        let (body, sum) = bytes
            .split_last_chunk::<SUM>()
            .ok_or_else(|| damaged("it is too short"))?;
        // `index.skipHash` leaves the sum empty.
        if *sum != [0; SUM] && Sha1::digest(body).as_slice() != sum {
            return Err(damaged("its checksum is another"));
        }
        let mut reader = Reader { rest: body };
        if reader.take(4)? != b"DIRC" {
            return Err(damaged("it does not begin as an index does"));
        }
        let version = reader.number()?;
        if !(2..=4).contains(&version) {
            let what = format!("version {version} of the index");
            return Err(GitError::UnsupportedFormat(what));
        }
        let mut found = Self {
            version,
            ..Self::default()
        };
        let count = reader.number()? as usize;
        // The count may be anything; what is there bounds the memory.
        let count_max = body.len() / FIXED;
        found.list.reserve(count.min(count_max));
        found.names.reserve(body.len() / 2);
        let mut is_in_order = true;
        for _ in 0..count {
            is_in_order &= found.read_entry(&mut reader)?;
        }
        while !reader.rest.is_empty() {
            let name = reader.take(4)?;
            let length = reader.number()? as usize;
            let content = reader.take(length)?;
            match name {
                b"TREE" => found.trees = content.to_vec(),
                b"REUC" => found.undone = content.to_vec(),
                [b'A'..=b'Z', ..] => {}
                _ => {
                    let name = String::from_utf8_lossy(name);
                    let what = format!("unsupported mandatory extension: '{name}'");
                    return Err(GitError::UnsupportedFormat(what));
                }
            }
        }
        // Those of a split index are not, which its extension has told by now.
        if is_in_order {
            Ok(found)
        } else {
            Err(damaged("its entries are not in order"))
        }
    }

    /// Reads one entry; answers whether it comes after the one before.
    fn read_entry(&mut self, reader: &mut Reader<'_>) -> Result<bool, GitError> {
        let begun = reader.rest.len();
        let noted = reader.noted()?;
        let start = self.names.len();
        if self.version == 4 {
            let dropped = reader.offset()?;
            let former = self.list.last().map_or(0..0, |(_, name)| name.clone());
            let kept = former.len().checked_sub(dropped);
            let kept = kept.ok_or_else(|| damaged("a name is cut by more than there is"))?;
            self.names
                .extend_from_within(former.start..former.start + kept);
            let rest = reader.until_zero()?;
            self.names.extend_from_slice(rest);
        } else {
            let name = reader.until_zero()?;
            self.names.extend_from_slice(name);
            // The zero that ends the name is the first of one to eight.
            let used = begun - reader.rest.len() - 1;
            reader.take(7 - used % 8)?;
        }
        let name = start..self.names.len();
        let is_after = self.list.last().is_none_or(|former| {
            let path = self.names.get(name.clone()).unwrap_or_default();
            self.order(former, path, noted.stage()) == Ordering::Less
        });
        self.list.push((noted, name));
        Ok(is_after)
    }

    /// Cached trees that a change reaches are not valid any more; damaged ones are left out.
    pub(super) fn keep_trees(&mut self, changes: &BTreeMap<&[u8], Option<EntryStat>>) {
        if self.trees.is_empty() {
            return;
        }
        let mut trees = Reader { rest: &self.trees };
        let mut kept = Vec::with_capacity(trees.rest.len());
        self.trees = match keep_trees(&mut trees, &mut Vec::new(), changes, &mut kept) {
            Some(()) if trees.rest.is_empty() => kept,
            _ => Vec::new(),
        };
    }

    /// The bytes of the index file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.names.len() + self.list.len() * (FIXED + 10));
        let is_extended = self.list.iter().any(|(noted, _)| noted.extended != 0);
        let version = match self.version {
            4 => 4,
            _ if is_extended => 3,
            _ => 2,
        };
        out.extend_from_slice(b"DIRC");
        put(&mut out, version);
        put(&mut out, low(self.list.len() as u64));
        let mut former: &[u8] = &[];
        for (noted, name) in &self.list {
            let name = self.name(name);
            let begun = out.len();
            noted.encode(name.len(), &mut out);
            if version == 4 {
                let same = former.iter().zip(name).take_while(|(a, b)| a == b).count();
                put_offset(&mut out, former.len() - same);
                out.extend_from_slice(name.get(same..).unwrap_or_default());
                out.push(0);
                former = name;
            } else {
                out.extend_from_slice(name);
                let padding = 8 - (out.len() - begun) % 8;
                out.extend_from_slice(&[0; 8][..padding]);
            }
        }
        for (name, content) in [(b"TREE", &self.trees), (b"REUC", &self.undone)] {
            if !content.is_empty() {
                out.extend_from_slice(name);
                put(&mut out, low(content.len() as u64));
                out.extend_from_slice(content);
            }
        }
        let sum = Sha1::digest(&out);
        out.extend_from_slice(&sum);
        out
    }
}

impl EntryStat {
    fn encode(&self, name: usize, out: &mut Vec<u8>) {
        let numbers = [
            self.changed.0,
            self.changed.1,
            self.modified.0,
            self.modified.1,
            self.device,
            self.inode,
            self.mode,
            self.owner.0,
            self.owner.1,
            self.size,
        ];
        for number in numbers {
            put(out, number);
        }
        out.extend_from_slice(self.oid.as_bytes());
        let length = u16::try_from(name).map_or(NAME_LENGTH, |length| length.min(NAME_LENGTH));
        let marks = self.flags & (STAGES | ASSUME_UNCHANGED);
        let extended = if self.extended == 0 { 0 } else { EXTENDED };
        out.extend_from_slice(&(marks | extended | length).to_be_bytes());
        if self.extended != 0 {
            out.extend_from_slice(&self.extended.to_be_bytes());
        }
    }
}

/// What is left to read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], GitError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(cut)?;
        self.rest = rest;
        Ok(taken)
    }

    fn until(&mut self, end: u8) -> Result<&'a [u8], GitError> {
        let at = self.rest.iter().position(|b| *b == end).ok_or_else(cut)?;
        let taken = self.take(at)?;
        self.take(1)?;
        Ok(taken)
    }

    fn until_zero(&mut self) -> Result<&'a [u8], GitError> {
        self.until(0)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GitError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u32, GitError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn noted(&mut self) -> Result<EntryStat, GitError> {
        let changed = (self.number()?, self.number()?);
        let modified = (self.number()?, self.number()?);
        let (device, inode, mode) = (self.number()?, self.number()?, self.number()?);
        let owner = (self.number()?, self.number()?);
        let size = self.number()?;
        let oid = git2::Oid::from_bytes(&self.array::<20>()?);
        let flags = u16::from_be_bytes(self.array()?);
        let extended = match flags & EXTENDED {
            0 => 0,
            _ => u16::from_be_bytes(self.array()?),
        };
        Ok(EntryStat {
            changed,
            modified,
            device,
            inode,
            mode,
            owner,
            size,
            oid: oid.map_err(|e| damaged(e.message()))?,
            flags,
            extended,
        })
    }

    /// A number as packs have it for offsets: seven bits in each byte, one added for each byte before.
    fn offset(&mut self) -> Result<usize, GitError> {
        let [mut byte] = self.array()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            [byte] = self.array()?;
            let shifted = value.checked_add(1).and_then(|v| v.checked_mul(128));
            value = shifted.ok_or_else(cut)? | usize::from(byte & 0x7f);
        }
        Ok(value)
    }
}

/// Passes cached trees on, without the ids of those that the changes reach; `None` where they are damaged.
fn keep_trees(
    reader: &mut Reader<'_>,
    path: &mut Vec<u8>,
    changes: &BTreeMap<&[u8], Option<EntryStat>>,
    out: &mut Vec<u8>,
) -> Option<()> {
    const PATH_BYTES_MAX: usize = 4_096;
    if path.len() > PATH_BYTES_MAX {
        return None;
    }
    let name = reader.until_zero().ok()?;
    let length = path.len();
    if !name.is_empty() {
        path.extend_from_slice(name);
        path.push(b'/');
    }
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<i64>().ok();
    let entries = number(reader.until(b' ').ok()?)?;
    let below = number(reader.until(b'\n').ok()?)?;
    let oid = match entries {
        ..0 => None,
        _ => Some(reader.take(20).ok()?),
    };
    let is_reached = {
        let changes: &BTreeMap<&[u8], _> = changes;
        let mut next = changes.range(path.as_slice()..);
        next.next()
            .is_some_and(|(changed, _)| changed.starts_with(path))
    };
    out.extend_from_slice(name);
    match oid.filter(|_| !is_reached) {
        Some(oid) => {
            out.extend_from_slice(format!("\0{entries} {below}\n").as_bytes());
            out.extend_from_slice(oid);
        }
        None => out.extend_from_slice(format!("\0-1 {below}\n").as_bytes()),
    }
    for _ in 0..below {
        keep_trees(reader, path, changes, out)?;
    }
    path.truncate(length);
    Some(())
}

fn put(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_offset(out: &mut Vec<u8>, number: usize) {
    let seven = |number: usize| number.to_le_bytes()[0] & 0x7f;
    let mut bytes = vec![seven(number)];
    let mut rest = number >> 7;
    while rest != 0 {
        rest -= 1;
        bytes.push(0x80 | seven(rest));
        rest >>= 7;
    }
    out.extend(bytes.iter().rev());
}

fn cut() -> GitError {
    damaged("it ends too early")
}

fn damaged(why: &str) -> GitError {
    let class = git2::ErrorClass::Index;
    GitError::Git {
        doing: "read the index",
        source: git2::Error::new(git2::ErrorCode::GenericError, class, why),
    }
}
