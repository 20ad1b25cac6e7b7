//! Writes NumPy's .npy files.
//!
//! The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ebipla_core::write_whole;

use super::Array;

/// Writes one array; its name is lost.
pub fn write_npy(path: &Path, array: Array) -> anyhow::Result<()> {
    write_whole(path, |unfinished| {
        let mut file = BufWriter::new(File::create(unfinished)?);
        file.write_all(&header(&array.shape)?)?;
        array.for_each_block(|_, _, numbers| {
            for number in numbers {
                file.write_all(&number.to_le_bytes())?;
            }
            Ok(())
        })?;
        Ok(file.flush()?)
    })
}

/// Magic word, version 1.0, length, and a Python literal that says what follows, padded to 64 bytes in all.
fn header(shape: &[usize]) -> anyhow::Result<Vec<u8>> {
    let shape = match shape {
        // Python's tuple of one.
        [only] => format!("{only},"),
        all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    let before = 10 + text.len() + 1;
    text += &" ".repeat(before.next_multiple_of(64) - before);
    text.push('\n');
    let length = u16::try_from(text.len())?;
    Ok([b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::Tensor;

    use super::*;

    /// Read back by the reader of tch.
    #[test]
    fn others_read_the_same_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for shape in [&[7i64][..], &[3, 4], &[2, 3, 1, 2]] {
            let count: i64 = shape.iter().product();
            let tensor = Tensor::arange(count, tch::kind::FLOAT_CPU).view(shape) / 3.0;
            write_npy(&path, Array::of("any", &tensor)).unwrap();
            assert!(Tensor::read_npy(&path).unwrap().equal(&tensor), "{shape:?}");
        }
    }

    #[test]
    fn data_begin_at_a_multiple_of_64_bytes() {
        for shape in [vec![1], vec![50_000, 3, 256, 256], vec![1; 32]] {
            let header = header(&shape).unwrap();
            assert_eq!(header.len() % 64, 0);
            assert_eq!(
                usize::from(header[8]) + 256 * usize::from(header[9]),
                header.len() - 10
            );
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }
}
