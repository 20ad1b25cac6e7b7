//! Says what training data look like.

use std::fmt;

use tch::Tensor;

/// Which part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// What the model is trained on.
    Train,
    /// What it never sees.
    Validation,
}

impl Split {
    /// Both parts.
    pub const ALL: [Split; 2] = [Split::Train, Split::Validation];

    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Data points by index, as f32 tensors on the CPU.
///
/// It is used from two threads: the next batch is read while the current one computes. A `Tensor` is not `Sync`, so
/// that a data set keeps plain numbers, or its tensors behind a `Mutex`.
pub trait Dataset: Send + Sync {
    /// Shape of one data point.
    fn shape(&self) -> &[i64];

    /// Number of points in a split.
    fn len(&self, split: Split) -> usize;

    /// Whether a split has no points.
    fn is_empty(&self, split: Split) -> bool {
        self.len(split) == 0
    }

    /// The points at `indices` (i64, on the CPU), stacked along a new first dimension.
    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor>;

    /// The first `n` points of a split, or all of them if there are fewer.
    fn first(&self, split: Split, n: usize) -> anyhow::Result<Tensor> {
        let n = n.min(self.len(split)) as i64;
        self.get(split, &Tensor::arange(n, (tch::Kind::Int64, tch::Device::Cpu)))
    }

    /// The class of each point of a split (i64, on the CPU), where it has classes.
    fn labels(&self, _split: Split) -> Option<Tensor> {
        None
    }

    /// A hash of the contents of the files that the points of a split were read from, in hexadecimal digits; `None` where
    /// there are no files. It goes to `provenance.json`, and a run is not resumed with other data.
    fn identity(&self, _split: Split) -> Option<String> {
        None
    }

    /// Log-density of the distribution that the data were drawn from at each row of `y`, in nats, where it is known
    /// exactly.
    fn log_density(&self, _y: &Tensor) -> Option<Tensor> {
        None
    }
}
