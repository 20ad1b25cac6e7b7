//! Reads arrays of numbers from MATLAB files, version 5.
//!
//! The format: "MAT-File Format", The MathWorks, chapter 1.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use flate2::read::ZlibDecoder;

use super::stream::{can_hold, take, take_vec};

/// An array in a file, whose numbers are read in order, the first index fastest.
pub struct Array {
    pub dims: Vec<usize>,
    kind: NumberType,
    data: Box<dyn Read>,
}

/// Storage type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;
const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;

/// Far more dimensions than any known file has.
const MOST_DIMENSIONS: u64 = 32;
const LONGEST_NAME: u64 = 4096;

/// Finds the array `name` in a file.
pub fn array(path: &Path, name: &str) -> anyhow::Result<Array> {
    find(path, name).with_context(|| format!("reading `{name}` of {}", path.display()))
}

fn find(path: &Path, name: &str) -> anyhow::Result<Array> {
    let mut file = BufReader::new(File::open(path)?);
    let length = file.get_ref().metadata()?.len();
    check_header(&mut file)?;
    let mut at = 128;
    while at < length {
        ensure!(length - at >= 8, "the file ends in the middle of an element");
        file.seek(SeekFrom::Start(at))?;
        let [kind, size] = tag(&mut file)?;
        let size = u64::from(size);
        let left = length - at - 8;
        ensure!(
            size <= left,
            "an element at byte {at} declares {size} bytes, but only {left} are left: the file is truncated or \
             damaged"
        );
        let found = match kind {
            COMPRESSED => {
                let mut inside = ZlibDecoder::new(reopened(path, at + 8)?.take(size));
                let [kind, inner] = tag(&mut inside).context("a compressed element is damaged")?;
                let inner = u64::from(inner);
                ensure!(
                    can_hold(size, inner),
                    "an element declares {inner} bytes compressed to {size}, which is impossible"
                );
                // One byte more, so that reading to the end verifies the checksum.
                (kind == MATRIX).then(|| matrix(Box::new(inside.take(inner + 1)), inner, name))
            }
            MATRIX => Some(matrix(Box::new(reopened(path, at + 8)?.take(size)), size, name)),
            _ => None,
        };
        if let Some(array) = found.transpose()?.flatten() {
            return Ok(array);
        }
        at += 8 + size;
    }
    bail!("the file has no array of that name")
}

/// Another reader of the file, for an array to own.
fn reopened(path: &Path, at: u64) -> anyhow::Result<BufReader<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    Ok(BufReader::new(file))
}

fn check_header(file: &mut dyn Read) -> anyhow::Result<()> {
    let header: [u8; 128] = take(file).context("the file is too short for a MATLAB file")?;
    match &header[124..] {
        [0, 1, b'I', b'M'] => Ok(()),
        [1, 0, b'M', b'I'] => {
            bail!("this MATLAB file was written on a big-endian machine: save it again on another")
        }
        [0, 2, b'I', b'M'] => {
            bail!("this is a MATLAB file of version 7.3, expected version 5: save it with -v7")
        }
        _ => bail!("this is not a MATLAB file of version 5"),
    }
}

fn tag(reader: &mut dyn Read) -> anyhow::Result<[u32; 2]> {
    let [a, b, c, d, e, f, g, h] = take(reader)?;
    Ok([u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])])
}

/// The start of an element inside a matrix: its type, its size, and its bytes if they are in the tag itself.
fn small_tag(reader: &mut dyn Read) -> anyhow::Result<(u32, u64, Option<[u8; 4]>)> {
    let [kind, size] = tag(reader)?;
    match kind >> 16 {
        0 => Ok((kind, u64::from(size), None)),
        small @ 1..=4 => Ok((kind & 0xffff, u64::from(small), Some(size.to_le_bytes()))),
        small => bail!("a small element declares {small} bytes, expected at most 4"),
    }
}

/// The bytes of a short element inside a matrix.
fn small_element(reader: &mut dyn Read, kind: u32, most: u64) -> anyhow::Result<Vec<u8>> {
    let (found, size, inline) = small_tag(reader)?;
    ensure!(found == kind, "found an element of type {found}, expected {kind}");
    ensure!(
        size <= most,
        "an element declares {size} bytes, expected at most {most}"
    );
    if let Some(bytes) = inline {
        return Ok(bytes[..size as usize].to_vec());
    }
    let mut bytes = take_vec(reader, size.next_multiple_of(8))?;
    bytes.truncate(size as usize);
    Ok(bytes)
}

/// The array in a matrix element of `size` bytes, if it has this name.
fn matrix(mut reader: Box<dyn Read>, size: u64, name: &str) -> anyhow::Result<Option<Array>> {
    let flags = small_element(&mut *reader, UINT32, 8)?;
    let dims = small_element(&mut *reader, INT32, 4 * MOST_DIMENSIONS)?;
    let found = small_element(&mut *reader, INT8, LONGEST_NAME)?;
    if found != name.as_bytes() {
        return Ok(None);
    }
    let complex = flags.get(1).is_some_and(|flags| flags & 0x08 != 0);
    ensure!(!complex, "the array holds complex numbers");
    let dims: Vec<_> = dims
        .as_chunks()
        .0
        .iter()
        .map(|dim| usize::try_from(i32::from_le_bytes(*dim)))
        .collect::<Result<_, _>>()
        .context("a size is negative")?;
    let (kind, bytes, inline) = small_tag(&mut *reader)?;
    let kind = NumberType::of(kind).with_context(|| format!("numbers of type {kind} are not supported"))?;
    let expected = dims
        .iter()
        .map(|dim| *dim as u64)
        .try_fold(kind.bytes() as u64, u64::checked_mul);
    ensure!(
        expected == Some(bytes) && bytes <= size,
        "the array declares the shape {dims:?} of {kind:?} numbers in {bytes} of {size} bytes, which do not fit"
    );
    let data = match inline {
        Some(inline) => Box::new(Cursor::new(inline).take(bytes)),
        None => reader,
    };
    Ok(Some(Array { dims, kind, data }))
}

impl NumberType {
    fn of(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::I8,
            2 => Self::U8,
            3 => Self::I16,
            4 => Self::U16,
            5 => Self::I32,
            6 => Self::U32,
            7 => Self::F32,
            9 => Self::F64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl Array {
    /// Reads the next numbers, which must be bytes.
    pub fn read(&mut self, bytes: &mut [u8]) -> anyhow::Result<()> {
        let kind = self.kind;
        ensure!(
            kind == NumberType::U8,
            "the array has {kind:?} numbers, expected U8"
        );
        self.data.read_exact(bytes).context("the file is damaged")
    }

    /// Checks that the data were intact: a compressed array has its checksum at the end.
    pub fn end(mut self) -> anyhow::Result<()> {
        io::copy(&mut self.data, &mut io::sink()).context("the file is damaged")?;
        Ok(())
    }

    /// Reads the next number, of any type.
    pub fn next_number(&mut self) -> anyhow::Result<f64> {
        self.number().context("the file is damaged")
    }

    fn number(&mut self) -> io::Result<f64> {
        let data = &mut *self.data;
        Ok(match self.kind {
            NumberType::I8 => i8::from_le_bytes(take(data)?).into(),
            NumberType::U8 => u8::from_le_bytes(take(data)?).into(),
            NumberType::I16 => i16::from_le_bytes(take(data)?).into(),
            NumberType::U16 => u16::from_le_bytes(take(data)?).into(),
            NumberType::I32 => i32::from_le_bytes(take(data)?).into(),
            NumberType::U32 => u32::from_le_bytes(take(data)?).into(),
            NumberType::F32 => f32::from_le_bytes(take(data)?).into(),
            NumberType::F64 => f64::from_le_bytes(take(data)?),
        })
    }
}

#[cfg(test)]
pub mod tests;
