//! The record: what the last making equal left, in one file.
//!
//! Nothing syncs it: after a start of the machine it is not believed anyway.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::error::{TreeError, io_at};
use crate::known::{FileStamp, Item, Laid, Manifest, RecordedPath};

/// Its last byte is the version of the format; a record of another version is not believed.
const MAGIC: &[u8; 8] = b"wktree\0\x01";
/// How long before the record a file must have changed last to be believed: more than the longest tick
/// of a file system's clock.
const TICK_NS: i64 = 20_000_000;

/// What `list` reads of a record.
pub(crate) struct Figures {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// What this machine is called since it was started.
fn boot_id() -> Vec<u8> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut id: Vec<u8> = id.trim_ascii().to_vec();
    id.resize(36, 0);
    id
}

/// Writes the record beside the work tree; sets in the manifest what is believed from now on.
pub(crate) fn write(dir: &Path, manifest: &mut Manifest) -> Result<(), TreeError> {
    let beside = dir.join("record.new");
    let fail = io_at("write", &beside);
    let mut file = fs::File::create(&beside).map_err(&fail)?;
    file.write_all(MAGIC).map_err(&fail)?;
    // The file system's own clock, which need not be that of this machine.
    let stat = rustix::fs::fstat(&file).map_err(io_at("look at", &beside))?;
    manifest.believed_before_ns = FileStamp::of(&stat).modified_ns.saturating_sub(TICK_NS);
    let bytes = encode(manifest);
    file.write_all(bytes.get(MAGIC.len()..).unwrap_or_default())
        .map_err(&fail)?;
    let record = dir.join("record");
    fs::rename(&beside, &record).map_err(io_at("write", &record))
}

/// Reads the record; `None` where it is missing, damaged, or of another start of the machine.
pub(crate) fn read(dir: &Path) -> Option<Manifest> {
    decode(&fs::read(dir.join("record")).ok()?)
}

/// The head of the record.
pub(crate) fn figures(dir: &Path) -> Option<Figures> {
    use std::io::Read;
    let mut head = Vec::new();
    let file = fs::File::open(dir.join("record")).ok()?;
    file.take(HEAD as u64).read_to_end(&mut head).ok()?;
    let mut from = Reader(&head);
    (from.take(8)? == MAGIC).then_some(())?;
    let (files, bytes) = (from.number()?, from.number()?);
    Some(Figures { files, bytes })
}

/// Magic, files, bytes, boot, device, tree, rules, time, entries.
const HEAD: usize = 8 + 8 + 8 + 36 + 8 + 20 + 20 + 8 + 8;

/// Numbers are little-endian. How many files and bytes there are stands at the beginning, where [`figures`] finds it
/// without reading the rest; the checksum at the end tells a record that was cut off, since nothing is synced.
fn encode(manifest: &Manifest) -> Vec<u8> {
    let stamps = || manifest.stamps.iter().flatten();
    let bytes: u64 = stamps().map(|stamp| stamp.size).sum();
    let mut out = Vec::with_capacity(HEAD + manifest.known.len() * 140);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&(stamps().count() as u64).to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&boot_id());
    out.extend_from_slice(&manifest.device.to_le_bytes());
    out.extend_from_slice(manifest.tree.as_bytes());
    out.extend_from_slice(&manifest.rules);
    out.extend_from_slice(&manifest.believed_before_ns.to_le_bytes());
    out.extend_from_slice(&(manifest.known.len() as u64).to_le_bytes());
    for (known, stamp) in manifest.known.iter().zip(&manifest.stamps) {
        let length = u16::try_from(known.path.len()).unwrap_or(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&known.path);
        put_item(&mut out, known.base);
        match known.laid {
            Laid::No => out.push(0),
            Laid::Hidden => out.push(1),
            Laid::Over(item) => {
                out.push(2);
                put_item(&mut out, Some(item));
            }
        }
        out.push(u8::from(stamp.is_some()));
        if let Some(stamp) = stamp {
            out.extend_from_slice(&stamp.size.to_le_bytes());
            out.extend_from_slice(&stamp.modified_ns.to_le_bytes());
            out.extend_from_slice(&stamp.changed_ns.to_le_bytes());
            out.extend_from_slice(&stamp.inode.to_le_bytes());
            out.extend_from_slice(&stamp.mode.to_le_bytes());
        }
    }
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn put_item(out: &mut Vec<u8>, item: Option<Item>) {
    let mode = item.map_or(0, |item| item.mode);
    out.extend_from_slice(&mode.to_le_bytes());
    if let Some(item) = item {
        out.extend_from_slice(item.oid.as_bytes());
    }
}

fn decode(bytes: &[u8]) -> Option<Manifest> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut from = Reader(body);
    (from.take(8)? == MAGIC).then_some(())?;
    from.take(16)?;
    (from.take(36)? == boot_id()).then_some(())?;
    let device = from.number()?;
    let mut manifest = Manifest::empty(from.oid()?);
    manifest.device = device;
    manifest.rules = from.take(20)?.try_into().ok()?;
    manifest.believed_before_ns = from.signed()?;
    let count = usize::try_from(from.number()?).ok()?;
    manifest.known.reserve(count.min(body.len() / 8));
    manifest.stamps.reserve(count.min(body.len() / 8));
    for _ in 0..count {
        let length = u16::from_le_bytes(from.take(2)?.try_into().ok()?);
        let path = from.take(usize::from(length))?.to_vec();
        let base = from.item()?;
        let laid = match from.take(1)? {
            [0] => Laid::No,
            [1] => Laid::Hidden,
            _ => Laid::Over(from.item()??),
        };
        let stamp = match from.take(1)? {
            [0] => None,
            _ => Some(FileStamp {
                size: from.number()?,
                modified_ns: from.signed()?,
                changed_ns: from.signed()?,
                inode: from.number()?,
                mode: from.short()?,
            }),
        };
        manifest.known.push(RecordedPath { path, base, laid });
        manifest.stamps.push(stamp);
    }
    from.0.is_empty().then_some(manifest)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn signed(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn oid(&mut self) -> Option<git2::Oid> {
        git2::Oid::from_bytes(self.take(20)?).ok()
    }

    #[expect(
        clippy::option_option,
        reason = "the outer one is a record that ends too early"
    )]
    fn item(&mut self) -> Option<Option<Item>> {
        let mode = self.short()?;
        if mode == 0 {
            return Some(None);
        }
        let oid = self.oid()?;
        Some(Some(Item { oid, mode }))
    }
}
