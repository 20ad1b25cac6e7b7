//! Reads arrays from NumPy's .npy files: bytes as they are, other numbers as float32.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::stream::{take, take_vec};
use crate::cache::Element;

/// An array in a file, whose numbers are read in order, the last index fastest.
pub struct Array {
    pub dims: Vec<usize>,
    /// Type that its numbers are read as.
    pub element: Element,
    /// Conversion from the stored type, if that differs.
    pub conversion: Option<&'static Conversion>,
    data: BufReader<File>,
    /// Numbers read so far.
    done: usize,
}

/// A number type that is converted to float32.
pub struct Conversion {
    /// NumPy's name for it.
    pub name: &'static str,
    /// Its code in the header, without the byte order.
    code: &'static str,
    bytes: usize,
    /// The float32 nearest to a number's little-endian bytes; `None` if it is too large.
    read: fn(&[u8]) -> Option<f32>,
}

macro_rules! conversion {
    ($name:literal, $code:literal, $type:ty) => {
        Conversion {
            name: $name,
            code: $code,
            bytes: size_of::<$type>(),
            read: |bytes| Some(<$type>::from_le_bytes(bytes.try_into().ok()?) as f32),
        }
    };
}

const CONVERSIONS: [Conversion; 10] = [
    Conversion {
        name: "float64",
        code: "f8",
        bytes: 8,
        read: |bytes| {
            let number = f64::from_le_bytes(bytes.try_into().ok()?);
            let nearest = number as f32;
            (nearest.is_finite() || !number.is_finite()).then_some(nearest)
        },
    },
    Conversion {
        name: "float16",
        code: "f2",
        bytes: 2,
        read: |bytes| Some(half(u16::from_le_bytes(bytes.try_into().ok()?))),
    },
    Conversion {
        name: "bool",
        code: "b1",
        bytes: 1,
        read: |bytes| Some(f32::from(u8::from(bytes != [0]))),
    },
    conversion!("int8", "i1", i8),
    conversion!("int16", "i2", i16),
    conversion!("int32", "i4", i32),
    conversion!("int64", "i8", i64),
    conversion!("uint16", "u2", u16),
    conversion!("uint32", "u4", u32),
    conversion!("uint64", "u8", u64),
];

/// A half-precision number: a sign, five bits of exponent, ten of the fraction.
fn half(bits: u16) -> f32 {
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f32.powi(-14),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        exponent => (1.0 + fraction) * 2f32.powi(i32::from(exponent) - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
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
    ensure!(magic == *b"\x93NUMPY", "this is not a .npy file");
    let (prefix, size) = match major {
        1 => (10, u64::from(u16::from_le_bytes(take(&mut data)?))),
        2 | 3 => (12, u64::from(u32::from_le_bytes(take(&mut data)?))),
        _ => bail!("version {major} of .npy files is not supported"),
    };
    ensure!(size <= LONGEST_HEADER, "the header declares {size} bytes");
    let header = take_vec(&mut data, size).context("the header is truncated")?;
    let header = String::from_utf8(header).context("the header is damaged")?;

    let descr = value(&header, "descr")?.trim_matches(['\'', '"']);
    let code = descr.trim_start_matches(['<', '|', '=']);
    let conversion = CONVERSIONS.iter().find(|known| known.code == code);
    let (element, stored) = match (code, conversion) {
        ("u1", _) => (Element::U8, 1),
        ("f4", _) => (Element::F32, 4),
        (_, Some(conversion)) => (Element::F32, conversion.bytes),
        _ => {
            let names: Vec<_> = CONVERSIONS.iter().map(|known| known.name).collect();
            bail!(
                "numbers of type `{descr}`, expected uint8, float32, or one that converts to float32 ({}), the lowest \
                 byte first: save numpy.asarray(array, '<f4')",
                names.join(", ")
            )
        }
    };
    let dims = dims(value(&header, "shape")?)?;
    let bytes = dims
        .iter()
        .try_fold(stored as u64, |bytes, dim| bytes.checked_mul(*dim as u64));
    let left = length - prefix - size;
    ensure!(
        bytes == Some(left),
        "the header declares {dims:?} numbers of {stored} bytes, but {left} bytes follow"
    );
    let by_columns = value(&header, "fortran_order")? != "False";
    ensure!(
        !by_columns || dims.len() < 2,
        "the array is stored in column-major order: save numpy.ascontiguousarray of it"
    );
    Ok(Array {
        dims,
        element,
        conversion,
        data,
        done: 0,
    })
}

/// The text after a key of the header, a Python dictionary.
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
        .map(|size| {
            size.parse()
                .with_context(|| format!("the shape {text} is invalid"))
        })
        .collect()
}

impl Array {
    /// Reads the next bytes, a whole number of elements.
    pub fn read(&mut self, bytes: &mut [u8]) -> anyhow::Result<()> {
        let Some(conversion) = self.conversion else {
            return self.data.read_exact(bytes).context("the file is truncated");
        };
        let mut stored = vec![0; bytes.len() / self.element.bytes() * conversion.bytes];
        self.data
            .read_exact(&mut stored)
            .context("the file is truncated")?;
        let row: usize = self.dims.iter().skip(1).product();
        let numbers = bytes.chunks_exact_mut(self.element.bytes());
        for (to, from) in numbers.zip(stored.chunks_exact(conversion.bytes)) {
            let number = (conversion.read)(from);
            let number = number.with_context(|| {
                let row = self.done / row.max(1);
                format!("row {row} (counted from 0) has a number that is too large for float32")
            })?;
            to.copy_from_slice(&number.to_le_bytes());
            self.done += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::testing::error;

    /// A file as written by numpy.save.
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

    /// Values that both types hold exactly, and the nearest float32 to one that it does not hold exactly.
    #[test]
    fn other_numbers_are_converted_to_float32() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let read = |descr: &str, data: &[u8]| {
            let count = 3;
            fs::write(&path, file(descr, &format!("({count},)"), data)).unwrap();
            let mut array = open(&path).unwrap();
            assert_eq!(array.element, Element::F32);
            let mut bytes = vec![0; 4 * count];
            array.read(&mut bytes).unwrap();
            let numbers = bytes.chunks_exact(4);
            let numbers: Vec<_> = numbers
                .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
                .collect();
            numbers
        };
        assert_eq!(
            read("<f8", &[0.1f64, -2.5, 1e30].map(f64::to_le_bytes).concat()),
            [0.1, -2.5, 1e30]
        );
        // 1, −2 (sign, exponent 16), and the smallest number, 2⁻²⁴.
        assert_eq!(
            read("<f2", &[0x3c00u16, 0xc000, 1].map(u16::to_le_bytes).concat()),
            [1.0, -2.0, 2f32.powi(-24)]
        );
        // 65504, the largest, infinity, and 2⁻¹⁵, half of the smallest normal number.
        assert_eq!(
            read("<f2", &[0x7bffu16, 0xfc00, 0x200].map(u16::to_le_bytes).concat()),
            [65504.0, f32::NEG_INFINITY, 2f32.powi(-15)]
        );
        assert_eq!(
            read("<i8", &[-3i64, 0, 1 << 40].map(i64::to_le_bytes).concat()),
            [-3.0, 0.0, 2f32.powi(40)]
        );
        // Halfway to 2²⁴ + 2, so rounded to the even one.
        assert_eq!(
            read(
                "<u4",
                &[7u32, (1 << 24) + 1, u32::MAX].map(u32::to_le_bytes).concat()
            ),
            [7.0, 2f32.powi(24), 2f32.powi(32)]
        );
        assert_eq!(
            read("<i2", &[-1i16, 2, 3].map(i16::to_le_bytes).concat()),
            [-1.0, 2.0, 3.0]
        );
        assert_eq!(read("|i1", &[0xff, 2, 3]), [-1.0, 2.0, 3.0]);
        assert_eq!(read("|b1", &[0, 1, 1]), [0.0, 1.0, 1.0]);

        let large = [1.0f64, 2.0, 3.0, 1e300].map(f64::to_le_bytes).concat();
        fs::write(&path, file("<f8", "(2, 2)", &large)).unwrap();
        let error = error(open(&path).unwrap().read(&mut [0; 16]));
        assert!(error.contains("row 1"), "{error}");
    }

    #[test]
    fn false_sizes_and_unsupported_files_are_reported() {
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
            (&file("|u1", "(2, 99999999999999999999)", b"abcdef"), "is invalid"),
            (&file("|u1", "(-2, -3)", b"abcdef"), "is invalid"),
            (&file("<c8", "(2, 3)", &[0; 48]), "`<c8`"),
            (&file(">f8", "(2, 3)", &[0; 48]), "'<f4'"),
            (&file(">f4", "(2, 3)", &[0; 24]), "`>f4`"),
            (&with_header(by_columns, b"abcdef"), "ascontiguousarray"),
            (&with_header("{}", b"abcdef"), "no `descr`"),
            (b"\x93NUMPY\x09\0aaaa", "version 9"),
            (b"GIF89a..", "not a .npy file"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = error(open(&path));
            assert!(error.contains(word), "no `{word}` in: {error}");
        }
    }
}
