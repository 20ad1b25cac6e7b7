//! Finds the tensors in a PyTorch `.pth` file, in the archive format and in the format before PyTorch 1.6, which the
//! genuine FID weights use.

use std::collections::HashMap;
use std::io::{Cursor, sink};
use std::ops::Range;

use anyhow::{Context, bail, ensure};
use zip::{CompressionMethod, ZipArchive};

use super::pickle::{Pickle, Storage, Value};
use super::{Raw, Tensors};

/// The first number in a file of the old format.
const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;
/// The version of the old format, which never changed.
const PROTOCOL: i128 = 1001;

/// An archive: `NAME/data.pkl` with the dictionary, and a file `NAME/data/KEY` for each storage.
pub fn read_archive(bytes: &[u8]) -> anyhow::Result<Tensors<'_>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).context("it is not a complete zip archive")?;
    let mut dictionary = None;
    let mut storages = HashMap::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).context("it is not a PyTorch archive")?;
        let name = entry.name().context("it is not a PyTorch archive")?.into_owned();
        ensure!(
            entry.compression() == CompressionMethod::Stored,
            "`{name}` is compressed, which PyTorch never does"
        );
        // Reads to the end to verify the checksum.
        let length =
            std::io::copy(&mut entry, &mut sink()).with_context(|| format!("`{name}` is damaged"))?;
        let start = entry
            .data_start()
            .with_context(|| format!("`{name}` has no offset"))?;
        let range = start as usize..(start + length) as usize;
        let (_, path) = name.split_once('/').unwrap_or(("", &name));
        if path == "data.pkl" {
            dictionary = bytes.get(range);
        } else if path == "byteorder" {
            ensure!(
                bytes.get(range) == Some(b"little"),
                "its numbers are big-endian, expected little-endian"
            );
        } else if let Some(key) = path.strip_prefix("data/") {
            storages.insert(key.to_owned(), range);
        }
    }
    let dictionary = dictionary.context("it has no `data.pkl`: it was not written by torch.save")?;
    let pickle = Pickle::read(dictionary)?;
    tensors(&pickle, bytes, |storage| storages.get(storage.key).cloned())
}

/// Five pickles, then each storage after its length, in the order of the last pickle.
pub fn read_legacy(bytes: &[u8]) -> anyhow::Result<Tensors<'_>> {
    let mut at = 0;
    let mut next = || {
        let pickle = Pickle::read(&bytes[at..])?;
        at += pickle.length;
        anyhow::Ok(pickle)
    };
    ensure!(
        next()?.value == Value::Int(MAGIC) && next()?.value == Value::Int(PROTOCOL),
        "it is a pickle, but was not written by torch.save"
    );
    let little = (Value::Text("little_endian"), Value::Bool(true));
    ensure!(
        next()?.dict().is_some_and(|system| system.contains(&little)),
        "its numbers are big-endian, expected little-endian"
    );
    let (pickle, keys) = (next()?, next()?);
    let by_key: HashMap<_, _> = pickle
        .storages()
        .iter()
        .map(|storage| (storage.key, storage))
        .collect();
    let mut storages = HashMap::new();
    for key in keys.list().context("it has no list of storages")? {
        let Value::Text(key) = *key else {
            bail!("its list of storages holds {key:?}");
        };
        let storage = by_key
            .get(key)
            .with_context(|| format!("nothing uses storage {key}"))?;
        let header = bytes.get(at..).and_then(<[u8]>::first_chunk);
        let count = u64::from_le_bytes(*header.context("it ends early")?);
        ensure!(
            count == storage.count as u64,
            "storage {key} has {count} numbers, expected {}",
            storage.count
        );
        let end = length_in_bytes(storage).and_then(|length| length.checked_add(at + 8));
        let end = end.filter(|end| *end <= bytes.len()).context("it ends early")?;
        storages.insert(key, at + 8..end);
        at = end;
    }
    tensors(&pickle, bytes, |storage| storages.get(storage.key).cloned())
}

fn length_in_bytes(storage: &Storage) -> Option<usize> {
    storage.count.checked_mul(storage.kind.elt_size_in_bytes())
}

/// The tensors of a dictionary, each with the bytes of its storage.
fn tensors<'a>(
    pickle: &Pickle<'a>,
    bytes: &'a [u8],
    place: impl Fn(&Storage<'a>) -> Option<Range<usize>>,
) -> anyhow::Result<Tensors<'a>> {
    let entries = pickle
        .dict()
        .context("it does not hold a dictionary of tensors")?;
    let mut tensors = Tensors::new();
    for (name, value) in entries {
        let Value::Text(name) = *name else {
            bail!("its dictionary has the key {name:?}, expected names of tensors");
        };
        let view = pickle.tensor(*value).with_context(|| {
            format!("`{name}` is not a tensor: expected a state_dict, not a whole model or checkpoint")
        })?;
        let storage = &view.storage;
        let numbers = place(storage)
            .and_then(|range| bytes.get(range))
            .with_context(|| format!("the numbers of `{name}` are missing"))?;
        ensure!(
            length_in_bytes(storage) == Some(numbers.len()),
            "the storage of `{name}` has {} bytes, expected {} numbers of {} bytes",
            numbers.len(),
            storage.count,
            storage.kind.elt_size_in_bytes()
        );
        tensors.insert(
            name.to_owned(),
            Raw {
                kind: storage.kind,
                numbers,
                offset: view.offset,
                size: view.size.clone(),
                stride: view.stride.clone(),
            },
        );
    }
    Ok(tensors)
}
