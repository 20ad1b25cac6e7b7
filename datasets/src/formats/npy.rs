//! Reads arrays of bytes and of 32-bit numbers from NumPy's .npy files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::stream::{take, take_vec};
use crate::cache::Element;

/// An array of a file, whose numbers are read one after the other, the last index fastest.
pub struct Array {
    pub dims: Vec<usize>,
    pub element: Element,
    pub data: BufReader<File>,
}

/// Headers are a line or two.
const LONGEST_HEADER: u64 = 1 << 16;

/// Opens the array in a file.
pub fn open(path: &Path) -> anyhow::Result<Array> {
    read(path).with_context(|| format!("reading {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Array> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut data = BufReader::new(file);
    let [magic @ .., major, _] = take::<8>(&mut data).context("the file is too short")?;
    ensure!(magic == *b"\x93NUMPY", "this is no .npy file");
    let (prefix, size) = match major {
        1 => (10, u64::from(u16::from_le_bytes(take(&mut data)?))),
        2 | 3 => (12, u64::from(u32::from_le_bytes(take(&mut data)?))),
        _ => bail!("version {major} of .npy files is not known"),
    };
    ensure!(size <= LONGEST_HEADER, "the header says it has {size} bytes");
    let header = take_vec(&mut data, size).context("the header is truncated")?;
    let header = String::from_utf8(header).context("the header is damaged")?;

    let element = match value(&header, "descr")?.trim_matches(['\'', '"']) {
        "|u1" | "<u1" | "u1" => Element::U8,
        "<f4" => Element::F32,
        other => bail!("numbers of type `{other}`, expected uint8 (`|u1`) or float32 (`<f4`)"),
    };
    let dims = dims(value(&header, "shape")?)?;
    let bytes = dims.iter().try_fold(element.bytes() as u64, |bytes, dim| {
        bytes.checked_mul(*dim as u64)
    });
    let left = length - prefix - size;
    ensure!(
        bytes == Some(left),
        "the header says {dims:?} numbers of {} bytes, but {left} bytes follow",
        element.bytes()
    );
    let by_columns = value(&header, "fortran_order")? != "False";
    ensure!(
        !by_columns || dims.len() < 2,
        "the array is stored by columns: save numpy.ascontiguousarray of it"
    );
    Ok(Array { dims, element, data })
}

/// What stands behind a key of the header, a Python dictionary.
fn value<'a>(header: &'a str, key: &str) -> anyhow::Result<&'a str> {
    let found = || {
        let behind = header.split_once(&format!("'{key}'"))?.1;
        let value = behind.trim_start().strip_prefix(':')?.trim_start();
        let end = match value.strip_prefix('(') {
            Some(_) => value.find(')')? + 1,
            None => value.find([',', '}'])?,
        };
        Some(value[..end].trim_end())
    };
    found().with_context(|| format!("the header has no `{key}`"))
}

fn dims(text: &str) -> anyhow::Result<Vec<usize>> {
    let sizes = text.trim_matches(['(', ')']).split(',').map(str::trim);
    sizes
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().with_context(|| format!("the shape {text} is none")))
        .collect()
}

impl Array {
    /// The next bytes.
    pub fn read(&mut self, bytes: &mut [u8]) -> anyhow::Result<()> {
        self.data.read_exact(bytes).context("the file is truncated")
    }
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::testing::error;

    /// A file as numpy.save writes it.
    pub fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        with_header(
            &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"),
            data,
        )
    }

    fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
        let padded = format!("{header:<117}\n");
        [
            &b"\x93NUMPY\x01\0"[..],
            &118u16.to_le_bytes(),
            padded.as_bytes(),
            data,
        ]
        .concat()
    }

    #[test]
    fn bytes_and_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        fs::write(&path, file("|u1", "(2, 3)", b"abcdef")).unwrap();
        let mut array = open(&path).unwrap();
        assert_eq!((&array.dims[..], array.element), (&[2, 3][..], Element::U8));
        let mut bytes = [0; 6];
        array.read(&mut bytes).unwrap();
        assert_eq!(&bytes, b"abcdef");
        fs::write(&path, file("<f4", "(2,)", &[0; 8])).unwrap();
        let array = open(&path).unwrap();
        assert_eq!((&array.dims[..], array.element), (&[2][..], Element::F32));
    }

    #[test]
    fn lies_and_what_is_not_read_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let whole = file("|u1", "(2, 3)", b"abcdef");
        let mut long_header = whole.clone();
        long_header[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
        let by_columns = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }";
        for (bytes, word) in [
            (&whole[..whole.len() - 1], "5 bytes follow"),
            (&whole[..100], "truncated"),
            (&whole[..7], "too short"),
            (&long_header, "truncated"),
            (
                &file("|u1", "(2, 18446744073709551615)", b"abcdef"),
                "bytes follow",
            ),
            (&file("|u1", "(2, 99999999999999999999)", b"abcdef"), "is none"),
            (&file("|u1", "(-2, -3)", b"abcdef"), "is none"),
            (&file("<f8", "(2, 3)", &[0; 48]), "`<f8`"),
            (&file(">f4", "(2, 3)", &[0; 24]), "`>f4`"),
            (&with_header(by_columns, b"abcdef"), "ascontiguousarray"),
            (&with_header("{}", b"abcdef"), "no `descr`"),
            (b"\x93NUMPY\x09\0aaaa", "version 9"),
            (b"GIF89a..", "no .npy file"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = error(open(&path));
            assert!(error.contains(word), "no `{word}` in: {error}");
        }
    }
}
