//! Reads arrays of bytes from idx files, plain or gzipped.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;

use super::stream::{can_hold, take};

/// An array in a file, whose bytes are read in order, the last index fastest.
pub struct Array {
    pub dims: Vec<usize>,
    data: Box<dyn Read>,
}

/// The path of a file in `folder`: as it is, or with `.gz`.
pub fn name_in(folder: &Path, name: &str) -> PathBuf {
    let plain = PathBuf::from(name);
    match folder.join(&plain).exists() {
        true => plain,
        false => format!("{name}.gz").into(),
    }
}

/// Opens a file with an array of `dimensions` dimensions.
pub fn open(path: &Path, dimensions: usize) -> anyhow::Result<Array> {
    read(path, dimensions).with_context(|| format!("reading {}", path.display()))
}

fn read(path: &Path, dimensions: usize) -> anyhow::Result<Array> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let compressed = path.extension().is_some_and(|end| end == "gz");
    let mut data: Box<dyn Read> = match compressed {
        true => Box::new(BufReader::new(GzDecoder::new(BufReader::new(file)))),
        false => Box::new(BufReader::new(file)),
    };
    let magic: [u8; 4] = take(&mut *data).context("the file is too short")?;
    let expected = [0, 0, 8, dimensions as u8];
    ensure!(
        magic == expected,
        "the file begins with {magic:?}, expected {expected:?}: an idx file of bytes in {dimensions} dimensions"
    );
    let mut dims = Vec::new();
    for _ in 0..dimensions {
        dims.push(u32::from_be_bytes(take(&mut *data).context("the file is too short")?) as usize);
    }
    let bytes = dims
        .iter()
        .try_fold(1u64, |bytes, dim| bytes.checked_mul(*dim as u64));
    let header = 4 + 4 * dimensions as u64;
    let fits = bytes.is_some_and(|bytes| match compressed {
        true => can_hold(length, bytes),
        false => length == bytes.saturating_add(header),
    });
    ensure!(
        fits,
        "the file declares the shape {dims:?}, which does not fit its {length} bytes"
    );
    Ok(Array { dims, data })
}

impl Array {
    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &mut [u8]) -> anyhow::Result<()> {
        self.data
            .read_exact(bytes)
            .context("the file is truncated or damaged")
    }

    /// Checks that nothing is left and that the data were intact: gzip has its checksum at the end.
    pub fn end(mut self) -> anyhow::Result<()> {
        let more = self.data.read(&mut [0]).context("the file is damaged")?;
        ensure!(
            more == 0,
            "the file has more bytes than the shape {:?} takes",
            self.dims
        );
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::testing::error;

    /// An idx file of these sizes.
    pub fn file(dims: &[u32], data: &[u8]) -> Vec<u8> {
        let sizes = dims.iter().flat_map(|dim| dim.to_be_bytes());
        [0, 0, 8, dims.len() as u8]
            .into_iter()
            .chain(sizes)
            .chain(data.iter().copied())
            .collect()
    }

    pub fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::default());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    }

    fn contents(path: &Path, dimensions: usize) -> anyhow::Result<(Vec<usize>, Vec<u8>)> {
        let mut array = open(path, dimensions)?;
        let dims = array.dims.clone();
        // Read in pieces, so that a false size does not cost memory here either.
        let mut bytes = Vec::new();
        for _ in 0..dims.iter().product() {
            let mut byte = [0];
            array.read(&mut byte)?;
            bytes.extend(byte);
        }
        array.end()?;
        Ok((dims, bytes))
    }

    #[test]
    fn plain_and_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let whole = file(&[2, 3], b"abcdef");
        fs::write(folder.path().join("one"), &whole).unwrap();
        fs::write(folder.path().join("two.gz"), gzip(&whole)).unwrap();
        for (name, found) in [("one", "one"), ("two", "two.gz")] {
            assert_eq!(name_in(folder.path(), name), Path::new(found));
            let contents = contents(&folder.path().join(found), 2).unwrap();
            assert_eq!(contents, (vec![2, 3], b"abcdef".to_vec()));
        }
    }

    #[test]
    fn false_sizes_and_truncations_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let whole = file(&[2, 3], b"abcdef");
        let huge = file(&[u32::MAX, u32::MAX], b"abcdef");
        let long = file(&[2, 3], b"abcdefg");
        let zipped = gzip(&whole);
        let mut broken = zipped.clone();
        // The checksum.
        let at = broken.len() - 6;
        broken[at] ^= 1;
        for (name, bytes, word) in [
            ("short", &whole[..3], "too short"),
            ("truncated", &whole[..whole.len() - 1], "does not fit"),
            ("long", &long, "does not fit"),
            ("huge", &huge, "does not fit"),
            ("huge.gz", &gzip(&huge), "does not fit"),
            ("other", &file(&[6], b"abcdef"), "in 2 dimensions"),
            ("truncated.gz", &zipped[..zipped.len() - 12], "damaged"),
            ("broken.gz", &broken, "damaged"),
            ("long.gz", &gzip(&long), "more bytes"),
            ("none.gz", b"not gzip at all", "too short"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let error = error(contents(&path, 2));
            assert!(error.contains(word), "{name}: no `{word}` in: {error}");
        }
    }
}
