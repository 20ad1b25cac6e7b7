//! Which data points: their numbers on the CPU, and once they are needed elsewhere, also there.

use std::cell::OnceCell;

use tch::{Device, Kind, Tensor};

/// Numbers of data points. However often a step uses them, a GPU is sent them once.
#[derive(Debug)]
pub struct Indices {
    host: Tensor,
    elsewhere: OnceCell<Tensor>,
}

impl Indices {
    /// `start..start + count`.
    pub fn range(start: usize, count: usize) -> Self {
        let [start, count] = [start, count].map(|n| n as i64);
        Tensor::arange_start(start, start + count, (Kind::Int64, Device::Cpu)).into()
    }

    /// How many data points.
    pub fn count(&self) -> i64 {
        self.host.size()[0]
    }

    /// The numbers themselves.
    pub fn numbers(&self) -> Vec<u64> {
        let numbers = Vec::<i64>::try_from(&self.host).expect("a vector of i64");
        numbers.into_iter().map(|number| number as u64).collect()
    }

    /// The numbers as i64 on the CPU.
    pub fn on_cpu(&self) -> &Tensor {
        &self.host
    }

    /// The numbers where they are needed. One run has no more than one device besides the CPU.
    pub fn on(&self, device: Device) -> &Tensor {
        match device {
            Device::Cpu => &self.host,
            device => self.elsewhere.get_or_init(|| self.host.to_device(device)),
        }
    }
}

impl From<Tensor> for Indices {
    /// Of i64, on the CPU.
    fn from(host: Tensor) -> Self {
        Self {
            host,
            elsewhere: OnceCell::new(),
        }
    }
}
