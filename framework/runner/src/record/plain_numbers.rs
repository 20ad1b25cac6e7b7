//! Takes numbers out of tensors, on their way to files.

use tch::{Device, Kind, Tensor};

/// All numbers of a tensor, row by row.
pub fn plain_numbers(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor
        .detach()
        .to_device(Device::Cpu)
        .to_kind(Kind::Float)
        .contiguous();
    let mut values = vec![0f32; tensor.numel()];
    tensor.copy_data(&mut values, tensor.numel());
    values
}
