//! Maximum mean discrepancy between the model's samples and held-out data.

use ebipla_core::Task;
use ebipla_core::prelude::*;
use tch::Kind;

use super::chain_lengths::ChainLengths;

/// Squared maximum mean discrepancy between samples of the model and held-out data; unbiased, so it may be negative.
///
/// The kernel is the mean of the Gaussian kernels exp(−‖x − y‖²/(2s²)) over all bandwidths s.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mmd {
    /// Samples drawn from the model, and held-out points to compare with; time grows with the square. [samples]
    #[schemars(range(min = 2))]
    samples: u32,
    /// Bandwidths s of the kernels. [median distances of held-out points]
    #[schemars(inner(range(min = 1e-6)))]
    bandwidths: Vec<f64>,
    chain_lengths: ChainLengths,
}

impl Default for Mmd {
    fn default() -> Self {
        Self {
            samples: 2000,
            bandwidths: vec![0.25, 0.5, 1.0, 2.0, 4.0],
            chain_lengths: ChainLengths::default(),
        }
    }
}

impl Plugin for Mmd {
    type Builds = dyn Metric;

    fn check(&self) -> Vec<Complaint> {
        let mut complaints = self.chain_lengths.complaints();
        if self.bandwidths.is_empty() || self.bandwidths.iter().any(|bandwidth| *bandwidth <= 0.0) {
            complaints.push(Complaint {
                option: "bandwidths",
                message: format!(
                    "found {:?}, expected one or more numbers above 0",
                    self.bandwidths
                ),
            });
        }
        complaints
    }

    fn better(_: &str) -> Option<Better> {
        Some(Better::Lower)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        // The blocks, their concatenation, and a double-precision copy.
        self.chain_lengths.require("mmd", self.samples, 4, scope)?;
        Ok(Box::new(self))
    }
}

impl Metric for Mmd {
    fn needs_held_out(&self) -> bool {
        true
    }

    fn measure(&self, mut subject: Subject) -> anyhow::Result<Scalars> {
        let data = self.some_held_out(&mut subject)?;
        let median = median_distance(&data);
        anyhow::ensure!(
            median > 0.0,
            "most held-out points coincide: their median distance is 0 and gives no bandwidth"
        );
        let kernel = Kernel::new(self.bandwidths.iter().map(|multiple| multiple * median));
        let among_data = kernel.mean_of_pairs(&data);
        let mut scalars = Scalars::new();
        for (name, samples) in self.chain_lengths.samples("mmd", self.samples, &mut subject)? {
            let samples = vectors(&samples);
            let mmd = kernel.mean_of_pairs(&samples) + among_data - 2.0 * kernel.mean(&samples, &data);
            scalars.add_number(name, mmd);
        }
        Ok(scalars)
    }
}

impl Mmd {
    /// As many held-out points as samples, chosen at random, since a data set may be sorted.
    fn some_held_out(&self, subject: &mut Subject) -> anyhow::Result<Tensor> {
        let data = subject.held_out()?;
        let count = data.size()[0];
        anyhow::ensure!(count >= 2, "needs at least 2 held-out points, found {count}");
        let order = subject.random.stream("held_out", 0).permutation(count);
        let chosen = order.narrow(0, 0, count.min(self.samples.into()));
        Ok(vectors(&data.index_select(0, &chosen.to_device(subject.device))))
    }
}

/// One row per point, in double precision, since the metric is a small difference of sums.
fn vectors(points: &Tensor) -> Tensor {
    points.flatten(1, -1).to_kind(Kind::Double)
}

/// Points used for the median distance: this many pairs determine the median to a fraction of a per cent.
const MEDIAN_OF: i64 = 1000;

fn median_distance(points: &Tensor) -> f64 {
    let some = points.narrow(0, 0, points.size()[0].min(MEDIAN_OF));
    some.pdist(2.0).median().double_value(&[])
}

/// Rows whose kernel values are in memory at a time.
const BLOCK: i64 = 256;

/// The mean of Gaussian kernels.
struct Kernel {
    bandwidths: Vec<f64>,
}

impl Kernel {
    fn new(bandwidths: impl Iterator<Item = f64>) -> Self {
        Self {
            bandwidths: bandwidths.collect(),
        }
    }

    /// Σ k(aᵢ, bⱼ) over all i and j.
    fn sum(&self, a: &Tensor, b: &Tensor) -> f64 {
        let _guard = tch::no_grad_guard();
        let squares = |points: &Tensor| points.square().sum_dim_intlist(1, false, Kind::Double);
        let of_b = squares(b);
        let mut task = Task::start("mmd", a.size()[0] as u64);
        let of_block = |rows: &Tensor| {
            task.advance(rows.size()[0] as u64);
            let products = rows.matmul(&b.transpose(0, 1));
            let distances = (squares(rows).unsqueeze(1) + &of_b - products * 2.0).clamp_min(0.0);
            let of_bandwidth = |s: &f64| (&distances / (-2.0 * s * s)).exp().sum(Kind::Double);
            let sums: Vec<_> = self.bandwidths.iter().map(of_bandwidth).collect();
            Tensor::stack(&sums, 0).mean(Kind::Double).double_value(&[])
        };
        a.split(BLOCK, 0).iter().map(of_block).sum()
    }

    /// Mean of k(aᵢ, bⱼ).
    fn mean(&self, a: &Tensor, b: &Tensor) -> f64 {
        self.sum(a, b) / (a.size()[0] as f64 * b.size()[0] as f64)
    }

    /// Mean of k(aᵢ, aⱼ) over i ≠ j; each omitted pair i = j would be 1.
    fn mean_of_pairs(&self, a: &Tensor) -> f64 {
        let n = a.size()[0] as f64;
        (self.sum(a, a) - n) / (n * (n - 1.0))
    }
}

inventory::submit! { Registration::of::<Mmd>("mmd") }

#[cfg(test)]
mod tests {
    use super::*;
    use ebipla_core::Random;
    use tch::Device;

    const N: i64 = 2000;

    fn normal(stream: &str, shift: [f64; 2]) -> Tensor {
        let shift = Tensor::from_slice(&shift);
        vectors(&Random::new(8).stream(stream, 0).normal(&[N, 2], Device::Cpu)) + shift
    }

    fn mmd(kernel: &Kernel, x: &Tensor, y: &Tensor) -> f64 {
        kernel.mean_of_pairs(x) + kernel.mean_of_pairs(y) - 2.0 * kernel.mean(x, y)
    }

    /// The witness function E k(z, X) − E k(z, Y), whose parts are Gaussian integrals.
    fn witness(z: &Tensor, m: [f64; 2], s: f64) -> Tensor {
        let v = s * s + 1.0;
        let bump = |z: &Tensor| (z.square().sum_dim_intlist(1, false, Kind::Double) / (-2.0 * v)).exp();
        (bump(z) - bump(&(z - Tensor::from_slice(&m)))) * (s * s / v)
    }

    /// For N(0, I) and N(m, I) in the plane, X − X' ~ N(0, 2I) and X − Y ~ N(−m, 2I), so a kernel of bandwidth s has
    /// MMD² = 2s²/(s² + 2)·(1 − exp(−‖m‖²/(2(s² + 2)))), and the mixture has the mean of those.
    ///
    /// The U-statistic of n points each has variance 4(Var w(X) + Var w(Y))/n to first order, where w is the witness
    /// function; five standard errors are a fifth of the value here, so a factor of two in any term would show.
    #[test]
    fn two_gaussians_match_the_closed_form() {
        let (m, bandwidths) = ([1.2, -0.9], [0.5, 1.0, 2.0]);
        let (x, y) = (normal("x", [0.0; 2]), normal("y", m));
        let expected = bandwidths.map(|s| {
            let v: f64 = s * s + 2.0;
            2.0 * s * s / v * (1.0 - (-2.25 / (2.0 * v)).exp())
        });
        let expected = expected.iter().sum::<f64>() / 3.0;
        let variance = |z: &Tensor| {
            let all = bandwidths.map(|s| witness(z, m, s));
            Tensor::stack(&all, 0)
                .mean_dim(0, false, Kind::Double)
                .var(true)
                .double_value(&[])
        };
        let tolerance = 5.0 * (4.0 * (variance(&x) + variance(&y)) / N as f64).sqrt();
        assert!(tolerance < 0.22 * expected, "{tolerance}, expected {expected}");
        let found = mmd(&Kernel::new(bandwidths.into_iter()), &x, &y);
        assert!(
            (found - expected).abs() < tolerance,
            "{found}, expected {expected}"
        );
    }

    /// For equal distributions the first order vanishes; the rest has mean 0 and variance 8 E k̃²/n², where k̃ is the
    /// kernel without its means: E k̃² = E k² − 2 E w² + (E k)² = 1/5 − 2/8 + 1/9 at s = 1, w(z) = E k(z, X). Five
    /// standard errors of the mean over 20 repeats are 0.0004; including the pairs i = j would bias it by 2(1 − E
    /// k)/n = 0.0007.
    #[test]
    fn equal_distributions_give_zero_on_average() {
        let kernel = Kernel::new([1.0].into_iter());
        let repeats = 20;
        let mean = (0..repeats)
            .map(|i| {
                mmd(
                    &kernel,
                    &normal(&format!("x{i}"), [0.0; 2]),
                    &normal(&format!("y{i}"), [0.0; 2]),
                )
            })
            .sum::<f64>()
            / f64::from(repeats);
        let standard_error = (8.0 * 0.0611 / f64::from(repeats)).sqrt() / N as f64;
        assert!(mean.abs() < 5.0 * standard_error, "{mean} ± {standard_error}");
    }

    /// For points of N(0, I) in the plane, ‖X − X'‖²/4 is exponential: the median distance is 2√ln 2 = 1.665.
    ///
    /// The share of pairs below the median is a U-statistic of 1000 points with standard error at most √(1/1000) =
    /// 0.032; the density of the distance there is √ln 2/2 = 0.42, so five standard errors are 0.38.
    #[test]
    fn the_median_distance_of_a_gaussian() {
        let found = median_distance(&normal("x", [0.0; 2]));
        assert!((found - 1.665).abs() < 0.38, "{found}");
    }
}
