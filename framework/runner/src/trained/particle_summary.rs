//! Says in a few numbers what a dump of particles holds, block by block.

use serde::Serialize;
use tch::{Kind, Tensor};

use crate::record::ParticleDump;

/// What one dump holds.
#[derive(Clone, Debug, Serialize)]
pub struct ParticleSummary {
    /// After how many steps it was taken.
    pub step: u64,
    /// Data points, particles of each, latent dimensions.
    pub shape: [usize; 3],
    /// Of all coordinates.
    pub mean: f64,
    pub standard_deviation: f64,
    /// Of all particles.
    pub mean_norm: f64,
    pub largest_norm: f64,
    /// How far particles of one data point are apart: the standard deviation of a coordinate within a cloud. Least,
    /// root mean square and most over all clouds; absent where clouds have one particle.
    pub spread: Option<[f64; 3]>,
    /// How far the clouds' means have come since the dump before: root mean square of a coordinate. Absent where there
    /// is none, or none of the same data points.
    pub drift: Option<f64>,
}

/// Sums over all clouds seen so far.
#[derive(Default)]
struct Sums {
    clouds: f64,
    numbers: f64,
    total: f64,
    squares: f64,
    norms: f64,
    largest_norm: f64,
    variances: f64,
    least_variance: Option<f64>,
    most_variance: f64,
    squared_drift: f64,
}

impl ParticleSummary {
    /// Reads all of `dump`, and of the one `before` it.
    pub fn of(dump: &ParticleDump, before: Option<&ParticleDump>) -> anyhow::Result<Self> {
        let shape = dump.shape();
        let before = before.filter(|before| {
            let same_dimensions = before.shape()[2] == shape[2];
            same_dimensions && before.indices() == dump.indices()
        });
        // The two may have different numbers of particles, and so be read in different blocks.
        let mut means_before =
            before.map(|before| Rows::new(before.blocks().map(|block| Ok(cloud_means(&block?.1)))));
        let mut sums = Sums::default();
        for block in dump.blocks() {
            let (_, block) = block?;
            let block = block.to_kind(Kind::Double);
            sums.add(&block);
            if let Some(before) = &mut means_before {
                let moved = cloud_means(&block) - before.next(block.size()[0])?;
                sums.squared_drift += number(&moved.square().sum(Kind::Double));
            }
        }
        let has_spread = shape[1] > 1 && sums.clouds > 0.0;
        let coordinates = sums.clouds * shape[2] as f64;
        let mean = sums.total / sums.numbers;
        Ok(Self {
            step: dump.step()?,
            shape,
            mean,
            standard_deviation: (sums.squares / sums.numbers - mean * mean).max(0.0).sqrt(),
            mean_norm: sums.norms * shape[2] as f64 / sums.numbers,
            largest_norm: sums.largest_norm,
            spread: has_spread.then(|| {
                let least = sums.least_variance.unwrap_or_default();
                [least, sums.variances / sums.clouds, sums.most_variance].map(f64::sqrt)
            }),
            drift: means_before.map(|_| (sums.squared_drift / coordinates).sqrt()),
        })
    }
}

impl Sums {
    /// `block` is `[clouds, particles, latent]`, of double precision.
    fn add(&mut self, block: &Tensor) {
        let [clouds, particles, _] = block.size()[..] else {
            return;
        };
        self.clouds += clouds as f64;
        self.numbers += block.numel() as f64;
        self.total += number(&block.sum(Kind::Double));
        self.squares += number(&block.square().sum(Kind::Double));
        let norms = block.square().sum_dim_intlist(2, false, Kind::Double).sqrt();
        self.norms += number(&norms.sum(Kind::Double));
        self.largest_norm = self.largest_norm.max(number(&norms.max()));
        if particles > 1 {
            let variances = block.var_dim(1, true, false).mean_dim(1, false, Kind::Double);
            self.variances += number(&variances.sum(Kind::Double));
            let least = number(&variances.min());
            self.least_variance = Some(self.least_variance.map_or(least, |before| before.min(least)));
            self.most_variance = self.most_variance.max(number(&variances.max()));
        }
    }
}

/// Rows that come in blocks and are taken in other blocks.
struct Rows<I> {
    blocks: I,
    left: Option<Tensor>,
}

impl<I: Iterator<Item = anyhow::Result<Tensor>>> Rows<I> {
    fn new(blocks: I) -> Self {
        Self { blocks, left: None }
    }

    /// The next `count` rows.
    fn next(&mut self, count: i64) -> anyhow::Result<Tensor> {
        let mut taken: Vec<Tensor> = self.left.take().into_iter().collect();
        let have = |taken: &[Tensor]| taken.iter().map(|rows| rows.size()[0]).sum::<i64>();
        while have(&taken) < count {
            match self.blocks.next() {
                Some(block) => taken.push(block?),
                None => anyhow::bail!("a dump ended early"),
            }
        }
        let rows = Tensor::cat(&taken, 0);
        let all = rows.size()[0];
        self.left = (all > count).then(|| rows.narrow(0, count, all - count));
        Ok(rows.narrow(0, 0, count))
    }
}

fn cloud_means(block: &Tensor) -> Tensor {
    block.to_kind(Kind::Double).mean_dim(1, false, Kind::Double)
}

fn number(tensor: &Tensor) -> f64 {
    tensor.double_value(&[])
}
