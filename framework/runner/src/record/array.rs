//! Writes arrays of numbers for other programs: HDF5 and NumPy files, block by block.

use std::path::Path;

use anyhow::ensure;
use ebipla_core::interruption_point;
use ebipla_core::write_whole;
use ndarray::ArrayViewD;
use tch::Tensor;

use super::plain_numbers;

/// An f32 array with a name, whose rows come in blocks, so that it need not fit into memory.
pub struct Array<'a> {
    pub name: &'a str,
    /// Rows first.
    pub shape: Vec<usize>,
    pub blocks: Box<dyn Iterator<Item = anyhow::Result<Tensor>> + 'a>,
}

impl<'a> Array<'a> {
    /// One that is at hand.
    pub fn of(name: &'a str, tensor: &Tensor) -> Self {
        Self {
            name,
            shape: tensor.size().iter().map(|&n| n as usize).collect(),
            blocks: Box::new(std::iter::once(Ok(tensor.shallow_clone()))),
        }
    }

    /// Hands the rows of each block to `take`, with the number of rows before it; there must be as many as promised.
    pub(super) fn for_each_block(
        self,
        mut take: impl FnMut(usize, &[usize], &[f32]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut done = 0;
        for block in self.blocks {
            interruption_point();
            let block = block?;
            let shape: Vec<_> = block.size().iter().map(|&n| n as usize).collect();
            ensure!(
                shape.len() == self.shape.len() && shape[1..] == self.shape[1..],
                "array `{}` of {:?} got a block of {shape:?}",
                self.name,
                self.shape
            );
            take(done, &shape, &plain_numbers(&block))?;
            done += shape[0];
        }
        ensure!(
            done == self.shape[0],
            "array `{}` has {} rows, but {done} came",
            self.name,
            self.shape[0]
        );
        Ok(())
    }
}

/// Writes an HDF5 file with one dataset per array, and text attributes.
pub fn write_hdf5(path: &Path, arrays: Vec<Array>, attributes: &[(&str, String)]) -> anyhow::Result<()> {
    write_whole(path, |unfinished| {
        let file = hdf5::FileBuilder::new()
            .with_fapl(|access| access.file_locking(false))
            .create(unfinished)?;
        for (name, value) in attributes {
            let value: hdf5::types::VarLenUnicode = value.parse()?;
            let attribute = file.new_attr::<hdf5::types::VarLenUnicode>();
            attribute.create(*name)?.write_scalar(&value)?;
        }
        for array in arrays {
            let dataset = file.new_dataset::<f32>().shape(array.shape.clone());
            let dataset = dataset.create(array.name)?;
            array.for_each_block(|start, shape, numbers| {
                let rows = std::iter::once((start..start + shape[0]).into());
                let all = shape[1..].iter().map(|_| (..).into());
                let place: Vec<hdf5::SliceOrIndex> = rows.chain(all).collect();
                let view = ArrayViewD::from_shape(shape, numbers)?;
                Ok(dataset.write_slice(view, hdf5::Hyperslab::from(place))?)
            })?;
        }
        // What is still in HDF5's cache must be written while errors can be heard of.
        file.flush()?;
        Ok(file.close()?)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn blocks_end_up_in_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let whole = Tensor::arange(30, tch::kind::FLOAT_CPU).view([5, 3, 2]);
        let blocks = whole.split(2, 0);
        let array = Array {
            name: "samples",
            shape: vec![5, 3, 2],
            blocks: Box::new(blocks.into_iter().map(Ok)),
        };
        let other = Array::of("latents", &whole.select(1, 0));
        write_hdf5(&path, vec![array, other], &[("recipe_hash", "abc".into())]).unwrap();

        let file = hdf5::File::open(&path).unwrap();
        let read = |name: &str| file.dataset(name).unwrap().read_raw::<f32>().unwrap();
        assert_eq!(file.dataset("samples").unwrap().shape(), [5, 3, 2]);
        assert_eq!(read("samples"), (0..30).map(|n| n as f32).collect::<Vec<_>>());
        assert_eq!(
            read("latents"),
            [0, 1, 6, 7, 12, 13, 18, 19, 24, 25].map(|n| n as f32)
        );
        let hash: hdf5::types::VarLenUnicode = file.attr("recipe_hash").unwrap().read_scalar().unwrap();
        assert_eq!(hash.as_str(), "abc");
    }

    #[test]
    fn missing_rows_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let mut array = Array::of("samples", &Tensor::zeros([2, 3], tch::kind::FLOAT_CPU));
        array.shape[0] = 4;
        let error = format!("{:#}", write_hdf5(&path, vec![array], &[]).unwrap_err());
        assert!(error.contains("has 4 rows, but 2 came"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
