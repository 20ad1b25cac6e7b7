//! Small MATLAB files, valid and invalid.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;
use crate::testing::error;

/// The header of a file.
pub fn header() -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend([0, 1, b'I', b'M']);
    bytes
}

fn tagged(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend(data);
    bytes
}

fn padded(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = tagged(kind, data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A matrix element with numbers of this type.
pub fn matrix_of(name: &str, dims: &[i32], kind: u32, data: &[u8]) -> Vec<u8> {
    let dims: Vec<_> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let name = match name.len() {
        // MATLAB writes short names like this: in the tag itself.
        length @ 1..=4 => {
            let mut bytes = (INT8 | (length as u32) << 16).to_le_bytes().to_vec();
            bytes.extend(name.as_bytes());
            bytes.resize(8, 0);
            bytes
        }
        _ => padded(INT8, name.as_bytes()),
    };
    let parts = [
        padded(UINT32, &[9, 0, 0, 0, 0, 0, 0, 0]),
        padded(INT32, &dims),
        name,
        padded(kind, data),
    ];
    tagged(MATRIX, &parts.concat())
}

/// A compressed element.
pub fn compressed(element: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(element).unwrap();
    tagged(COMPRESSED, &zlib.finish().unwrap())
}

fn file(elements: &[Vec<u8>]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), [header(), elements.concat()].concat()).unwrap();
    file
}

/// Everything after the start of an array's numbers.
fn bytes_of(mut array: Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.data.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn finds_arrays_by_name_compressed_or_not() {
    let data: Vec<u8> = (0..12).collect();
    let plain = matrix_of("X", &[2, 6], 2, &data);
    let long = matrix_of(
        "a_long_name",
        &[3],
        9,
        &[1.5f64, -2.0, 3.0].map(f64::to_le_bytes).concat(),
    );
    for elements in [
        [plain.clone(), long.clone()],
        [compressed(&long), compressed(&plain)],
        [plain.clone(), compressed(&long)],
    ] {
        let file = file(&elements);
        let mut found = array(file.path(), "a_long_name").unwrap();
        assert_eq!([(); 3].map(|()| found.next_number().unwrap()), [1.5, -2.0, 3.0]);
        assert!(found.next_number().is_err());
        let found = array(file.path(), "X").unwrap();
        assert_eq!(found.dims, [2, 6]);
        assert_eq!(bytes_of(found)[..12], data);
        let missing = error(array(file.path(), "Y"));
        assert!(missing.contains("no array of that name"), "{missing}");
    }
}

#[test]
fn reads_short_elements_from_their_tag() {
    let mut element = matrix_of("y", &[3, 1], 2, &[]);
    element.truncate(element.len() - 8);
    element.extend([2, 0, 3, 0, 7, 8, 9, 0]);
    let mut found = array(file(&[element]).path(), "y").unwrap();
    assert_eq!([(); 3].map(|()| found.next_number().unwrap()), [7.0, 8.0, 9.0]);
    assert!(found.next_number().is_err(), "no fourth");
}

#[test]
fn false_sizes_are_detected_before_they_cost_memory() {
    let data = [5; 24];
    let honest = matrix_of("X", &[2, 12], 2, &data);
    let with_size = |mut element: Vec<u8>, size: u32| {
        element[4..8].copy_from_slice(&size.to_le_bytes());
        element
    };
    let huge = matrix_of("X", &[i32::MAX, i32::MAX, i32::MAX, i32::MAX], 2, &data);
    let mut overlong_name = honest.clone();
    // Byte 40 begins the name's element: flags 16, dimensions 16, after the tag 8.
    overlong_name[40..48].copy_from_slice(&tagged(INT8, &[])[..8]);
    overlong_name[44..48].copy_from_slice(&u32::MAX.to_le_bytes());
    for (element, word) in [
        (with_size(honest.clone(), 1 << 30), "only 72 are left"),
        (matrix_of("X", &[2, 13], 2, &data), "do not fit"),
        (huge, "do not fit"),
        (matrix_of("X", &[-2, -12], 2, &data), "negative"),
        (matrix_of("X", &[2, 12], 12, &data), "type 12"),
        (overlong_name, "at most 4096"),
        (
            compressed(&with_size(honest.clone(), u32::MAX)),
            "which is impossible",
        ),
        (tagged(COMPRESSED, b"this is not zlib"), "damaged"),
    ] {
        let file = file(&[element]);
        let error = error(array(file.path(), "X"));
        assert!(error.contains(word), "no `{word}` in: {error}");
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
}

/// A stream that would expand endlessly is cut at the size that the element declares.
#[test]
fn inflates_no_more_than_the_arrays_size() {
    let mut element = matrix_of("X", &[100], 2, &[1; 100]);
    element.extend(vec![1; 50_000_000]);
    let file = file(&[compressed(&element)]);
    assert!(fs::metadata(file.path()).unwrap().len() < 100_000);
    let found = array(file.path(), "X").unwrap();
    assert!(bytes_of(found).len() <= 105, "100, their padding, and one");
}

#[test]
fn a_wrong_checksum_is_detected() {
    let mut element = compressed(&matrix_of("X", &[3, 2], 2, b"abcdef"));
    let last = element.len() - 1;
    element[last] ^= 1;
    let file = file(&[element]);
    let read = array(file.path(), "X").and_then(|mut found| {
        found.read(&mut [0; 6])?;
        found.end()
    });
    let error = error(read);
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn every_truncation_is_an_error_or_ends_early() {
    let whole = [
        header(),
        compressed(&matrix_of("y", &[3], 9, &[0; 24])),
        matrix_of("X", &[50], 2, &[1; 50]),
    ]
    .concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    for length in 0..whole.len() {
        fs::write(file.path(), &whole[..length]).unwrap();
        assert!(
            array(file.path(), "X").is_err(),
            "{length} of {} bytes",
            whole.len()
        );
    }
}

#[test]
fn other_versions_are_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (end, word) in [
        (*b"\0\x02IM", "7.3"),
        (*b"\x01\0MI", "big-endian"),
        (*b"abcd", "not a MATLAB file"),
    ] {
        fs::write(file.path(), [&header()[..124], &end].concat()).unwrap();
        let error = error(array(file.path(), "X"));
        assert!(error.contains(word), "{error}");
    }
}
