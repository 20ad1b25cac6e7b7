//! Hand-written files, as PyTorch writes them and malformed.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use tempfile::NamedTempFile;
use zip::CompressionMethod;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

/// A pickled text.
fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A pickled number.
fn int(number: i32) -> Vec<u8> {
    [b"J", &number.to_le_bytes()[..]].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", &items.concat()[..], b"t"].concat()
}

/// A tensor of f32 as `torch.save` pickles it.
fn tensor(key: &str, count: i32, offset: i32, size: &[i32], stride: &[i32]) -> Vec<u8> {
    let kind = b"ctorch\nFloatStorage\n".to_vec();
    let storage = tuple(&[text("storage"), kind, text(key), text("cpu"), int(count)]);
    let ints = |numbers: &[i32]| tuple(&numbers.iter().map(|number| int(*number)).collect::<Vec<_>>());
    let arguments = tuple(&[
        [&storage[..], b"Q"].concat(),
        int(offset),
        ints(size),
        ints(stride),
        b"\x89".to_vec(),
        b"ccollections\nOrderedDict\n)R".to_vec(),
    ]);
    [b"ctorch._utils\n_rebuild_tensor_v2\n", &arguments[..], b"R"].concat()
}

/// A pickled state_dict, `_metadata` included.
fn state_dict(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, value)| [text(name), value.clone()].concat())
        .collect();
    let metadata = [text("_metadata"), b"}s".to_vec()].concat();
    [
        b"\x80\x02ccollections\nOrderedDict\n)R(",
        &entries.concat()[..],
        b"u}",
        &metadata[..],
        b"b.",
    ]
    .concat()
}

fn numbers(range: std::ops::Range<u8>) -> Vec<u8> {
    range.flat_map(|number| f32::from(number).to_le_bytes()).collect()
}

fn archive(files: &[(&str, &[u8])], options: SimpleFileOptions) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(format!("model/{name}"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

/// The old format.
fn legacy(dictionary: &[u8], storages: &[(&str, &[u8])]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.".to_vec();
    let system = [b"\x80\x02}", &text("little_endian")[..], b"\x88s."].concat();
    let keys: Vec<_> = storages.iter().flat_map(|(key, _)| text(key)).collect();
    let keys = [b"\x80\x02](", &keys[..], b"e."].concat();
    let data = storages
        .iter()
        .flat_map(|(_, bytes)| [&(bytes.len() as u64 / 4).to_le_bytes(), *bytes].concat());
    [magic, system, dictionary.to_vec(), keys, data.collect()].concat()
}

/// `bytes` with the first occurrence of `from` replaced.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from).unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// Writes `bytes` to a file and takes `w`, 2 × 3, and `b`, 2, from it.
fn take(bytes: &[u8]) -> anyhow::Result<[Tensor; 2]> {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    WeightsFile::read(file.path())?.load(
        Device::Cpu,
        |name| name.starts_with("fc."),
        |weights| Ok([weights.take("w", &[2, 3])?, weights.take("b", &[2])?]),
    )
}

#[track_caller]
fn refused(bytes: &[u8], words: &str) {
    let error = format!("{:#}", take(bytes).unwrap_err());
    assert!(error.contains(words), "{error}");
}

/// `w` is stored transposed, and `b` is part of the same storage: w = [[0, 2, 4], [1, 3, 5]], b = [6, 7].
fn right() -> Vec<u8> {
    state_dict(&[
        ("w", tensor("0", 8, 0, &[2, 3], &[1, 2])),
        ("b", tensor("0", 8, 6, &[2], &[1])),
        ("fc.bias", tensor("1", 1, 0, &[1], &[1])),
    ])
}

#[track_caller]
fn assert_right(found: [Tensor; 2]) {
    let [w, b] = found;
    assert!(
        w.equal(&Tensor::from_slice(&[0f32, 2.0, 4.0, 1.0, 3.0, 5.0]).view([2, 3])),
        "{w}"
    );
    assert!(b.equal(&Tensor::from_slice(&[6f32, 7.0])), "{b}");
}

#[test]
fn reads_a_pytorch_archive() {
    let files: [(&str, &[u8]); 4] = [
        ("data.pkl", &right()),
        ("byteorder", b"little"),
        ("data/0", &numbers(0..8)),
        ("data/1", &numbers(0..1)),
    ];
    assert_right(take(&archive(&files, stored())).unwrap());
}

#[test]
fn reads_the_old_format() {
    let file = legacy(&right(), &[("1", &numbers(0..1)), ("0", &numbers(0..8))]);
    assert_right(take(&file).unwrap());
    // Old files record for each storage whether it is part of another one.
    let whole = replace(&right(), b"tQ", b"NtQ");
    assert_right(take(&legacy(&whole, &[("0", &numbers(0..8)), ("1", &numbers(0..1))])).unwrap());
}

/// In half precision, compressed: the form in which small weights are distributed.
#[test]
fn reads_compressed_safetensors() {
    let w = Tensor::from_slice(&[0f32, 2.0, 4.0, 1.0, 3.0, 5.0])
        .view([2, 3])
        .to_kind(Kind::Half);
    let b = Tensor::from_slice(&[6f32, 7.0]);
    let file = NamedTempFile::new().unwrap();
    Tensor::write_safetensors(&[("w", &w), ("b", &b)], file.path()).unwrap();
    let plain = fs::read(file.path()).unwrap();
    assert_right(take(&plain).unwrap());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&plain).unwrap();
    let packed = packed.finish().unwrap();
    assert_right(take(&packed).unwrap());
    refused(&packed[..packed.len() / 2], "unpacking");
    refused(&plain[..plain.len() - 1], "reading");
}

#[test]
fn the_hash_is_the_files_sha256() {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"abc").unwrap();
    // From FIPS 180-4.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(WeightsFile::read(file.path()).unwrap().sha256, expected);
}

#[test]
fn names_shapes_and_types_must_fit() {
    let file = |entries: &[(&str, Vec<u8>)]| legacy(&state_dict(entries), &[("0", &numbers(0..8))]);
    let (w, b) = (tensor("0", 8, 0, &[2, 3], &[3, 1]), tensor("0", 8, 0, &[2], &[1]));
    refused(&file(&[("w", w.clone())]), "no tensor `b`");
    refused(
        &file(&[("w", w.clone()), ("b", w.clone())]),
        "`b`: is [2, 3], expected [2]",
    );
    let other = [("w", w.clone()), ("b", b.clone()), ("Mixed_8", b.clone())];
    refused(&file(&other), "`Mixed_8` that the network does not know");
    refused(
        &file(&[("w", text("tensor")), ("b", b.clone())]),
        "not a tensor: expected a state_dict",
    );
    let integers = [
        ("w", replace(&w, b"Float", b"Int")),
        ("b", replace(&b, b"Float", b"Int")),
    ];
    refused(&file(&integers), "holds Int, expected floating-point");
    refused(b"P", "neither");
    refused(b"", "neither");
}

/// False sizes: views beyond the storage, storages beyond the file.
#[test]
fn false_sizes_are_refused() {
    let b = ("b", tensor("0", 8, 0, &[2], &[1]));
    let file = |w: Vec<u8>, numbers: &[u8]| legacy(&state_dict(&[("w", w), b.clone()]), &[("0", numbers)]);
    let eight = numbers(0..8);
    refused(
        &file(tensor("0", 8, 3, &[2, 3], &[3, 1]), &eight),
        "reaches beyond",
    );
    refused(
        &file(tensor("0", 8, 0, &[2, 3], &[i32::MAX, 1]), &eight),
        "reaches beyond",
    );
    refused(
        &file(tensor("0", i32::MAX, 0, &[2, 3], &[3, 1]), &eight),
        "expected 2147483647 numbers",
    );
    refused(
        &file(tensor("1", 8, 0, &[2, 3], &[3, 1]), &eight),
        "`w` are missing",
    );
    let nan = [&f32::NAN.to_le_bytes()[..], &eight[4..]].concat();
    refused(&file(tensor("0", 8, 0, &[2, 3], &[3, 1]), &nan), "not finite");

    let files = |numbers: &[u8]| {
        archive(
            &[
                ("data.pkl", &right()),
                ("data/0", numbers),
                ("data/1", &numbers[..4]),
            ],
            stored(),
        )
    };
    refused(&files(&eight[4..]), "has 28 bytes, expected 8 numbers of 4 bytes");
}

/// A truncated file is always an error, never a panic.
#[test]
fn every_truncation_is_an_error() {
    let storages: [(&str, &[u8]); 2] = [("0", &numbers(0..8)), ("1", &numbers(0..1))];
    let old = legacy(&right(), &storages);
    let files: [(&str, &[u8]); 3] = [
        ("data.pkl", &right()),
        ("data/0", &numbers(0..8)),
        ("data/1", &numbers(0..1)),
    ];
    for whole in [old, archive(&files, stored())] {
        assert_right(take(&whole).unwrap());
        for length in 0..whole.len() {
            assert!(take(&whole[..length]).is_err(), "{length} of {}", whole.len());
        }
    }
}

#[test]
fn a_program_in_an_archive_is_not_run() {
    let program = b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.";
    refused(&archive(&[("data.pkl", program)], stored()), "posix.system");
    refused(&archive(&[("weights", b"")], stored()), "no `data.pkl`");
    let whole = archive(&[("data.pkl", &right()), ("data/0", &numbers(0..8))], stored());
    let damaged = replace(&whole, &numbers(1..3), &numbers(2..4));
    refused(&damaged, "`model/data/0` is damaged");
    let big: [(&str, &[u8]); 2] = [("data.pkl", &right()), ("byteorder", b"big")];
    refused(&archive(&big, stored()), "big-endian");
}

#[test]
fn a_missing_file_error_names_the_option() {
    let error = locate(None, "EBIPLA_NO_SUCH_VARIABLE", "a file")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("EBIPLA_NO_SUCH_VARIABLE") && error.contains("`weights`"),
        "{error}"
    );
    let error = locate(Some("no/such/file"), "EBIPLA_NO_SUCH_VARIABLE", "a file").unwrap_err();
    assert!(error.to_string().contains("no/such/file"), "{error}");
}
