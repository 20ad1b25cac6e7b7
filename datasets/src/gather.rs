//! Stacks points at given indices into one tensor.

use anyhow::Context;
use ebipla_core::prelude::*;

/// The points at `indices` (i64) among `count` points of one shape; `read` writes point number i into a row.
pub fn gather(
    indices: &Tensor,
    count: usize,
    shape: &[i64],
    read: impl Fn(usize, &mut [f32]),
) -> anyhow::Result<Tensor> {
    let indices = Vec::<i64>::try_from(indices)?;
    let size = shape.iter().product::<i64>() as usize;
    let mut values = vec![0f32; indices.len() * size];
    for (index, row) in indices.iter().zip(values.chunks_exact_mut(size)) {
        let i = usize::try_from(*index).ok().filter(|i| *i < count);
        let i =
            i.with_context(|| format!("point {index} does not exist: the data set has {count} points"))?;
        read(i, row);
    }
    let all: Vec<_> = [&[indices.len() as i64], shape].concat();
    Ok(Tensor::from_slice(&values).f_view(&all[..])?)
}
