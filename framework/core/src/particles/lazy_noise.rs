//! Keeps account of the noise that particles outside the batch have not yet received.
//!
//! Such a particle receives nothing but Gaussian increments, so that their sum can be added when it is next needed. A
//! dump in between needs the sum so far, and must not change the run. So the sum is read off a Brownian path W that
//! starts when the particle was last brought up to date, with one unit of time for each iteration. Dump and run read
//! the same path at different times, and their joint law is that of noise added in every iteration.
//!
//! The path is a function of key, data point and start. Time is cut into spans; W grows over each by an independent
//! increment, and within a span it follows from Lévy's construction: given the increment D over an interval of length
//! n, that over its first half is D/2 + ½√n·ξ. So W at any time is a weighted sum of few normal numbers.

use tch::{Device, Kind, Tensor};

use crate::random::philox::{Philox, Sums};
use crate::random::{self, Indices, Random};

/// Halvings of the longest span, 2³² iterations, and its own increment.
const MOST_TERMS: usize = 33;

/// For each data point, the iteration up to which its noise has been applied, and the noise since.
pub struct LazyNoise {
    key: u64,
    /// Length of a span, a power of two.
    span: u64,
    applied: Tensor,
}

impl LazyNoise {
    /// All noise up to iteration `now` has been applied to all `points`, or none is due before it.
    ///
    /// `between_visits` is how many iterations lie between two visits to a data point on average; only costs depend on
    /// it. The noise is that of the stream `name`.
    pub fn new(points: usize, now: u64, between_visits: u64, name: &str, random: &Random) -> Self {
        Self {
            key: random.key(name),
            span: between_visits.clamp(1, 1 << 31).next_power_of_two(),
            applied: Tensor::full([points as i64], now as i64, (Kind::Int64, Device::Cpu)),
        }
    }

    /// What each of `indices` has missed by iteration `now`, with variance 1 for each iteration, as the first dimension
    /// of a tensor of this shape, on the CPU.
    pub fn missed(&self, indices: &Indices, now: u64, shape: &[i64]) -> Tensor {
        let applied = self.applied.index_select(0, indices.on_cpu());
        let applied = Vec::<i64>::try_from(applied).expect("a vector of i64");
        let mut sums = Sums::default();
        let mut rows = indices.numbers();
        for (row, applied) in rows.iter_mut().zip(applied) {
            let applied = applied as u64;
            sums.push(terms(now.saturating_sub(applied), self.span));
            // One path for each data point and start. Neither number comes near 2³².
            *row |= applied << 32;
        }
        let columns: i64 = shape[1..].iter().product();
        let mut noise = random::empty(shape);
        let numbers = random::numbers_of(&mut noise);
        Philox::new(self.key).fill_normal_sums(&rows, columns as usize, &sums, numbers);
        noise
    }

    /// Notes that `indices` have all their noise up to `now`.
    pub fn settle(&mut self, indices: &Indices, now: u64) {
        let _ = self.applied.index_fill_(0, indices.on_cpu(), now as i64);
    }

    /// What of it changes from step to step.
    pub fn state(&mut self) -> &mut Tensor {
        &mut self.applied
    }
}

/// Which normal numbers sum to W(`elapsed`), each with its weight. The squares of the weights sum to `elapsed`.
fn terms(elapsed: u64, span: u64) -> impl Iterator<Item = (u32, f32)> {
    let (whole, part) = (elapsed / span, elapsed % span);
    let length = (span as f64).sqrt() as f32;
    let node = move |span_index: u64, node: u64| (span_index * span + node) as u32;
    let before = (0..whole).map(move |i| (node(i, 0), length));
    let within = within_span(part, span).map(move |(at, weight)| (node(whole, at), weight as f32));
    before.chain(within)
}

/// The same for a path that ends within one span. Node 0 is the span's increment; node 1 halves it, and node i has the
/// halves 2i and 2i + 1.
fn within_span(elapsed: u64, span: u64) -> impl Iterator<Item = (u64, f64)> {
    let mut nodes = [0; MOST_TERMS];
    // Weights in W so far, and in the increment over the interval at hand.
    let (mut so_far, mut increment) = ([0.0; MOST_TERMS], [0.0; MOST_TERMS]);
    let (mut count, mut interval) = (0, 1);
    let (mut left, mut length) = (elapsed, span);
    if elapsed > 0 {
        increment[0] = (span as f64).sqrt();
        count = 1;
    }
    while left > 0 && left < length {
        increment.iter_mut().for_each(|weight| *weight /= 2.0);
        let deviation = (length as f64).sqrt() / 2.0;
        nodes[count] = interval;
        length /= 2;
        interval *= 2;
        if left <= length {
            increment[count] = deviation;
        } else {
            for (sum, half) in so_far.iter_mut().zip(increment) {
                *sum += half;
            }
            so_far[count] = deviation;
            increment[count] = -deviation;
            left -= length;
            interval += 1;
        }
        count += 1;
    }
    if left > 0 {
        for (sum, all) in so_far.iter_mut().zip(increment) {
            *sum += all;
        }
    }
    nodes.into_iter().zip(so_far).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Brownian motion has E W(s)W(t) = min(s, t): the weights are checked against it, exactly.
    #[test]
    fn the_path_has_the_covariance_of_a_brownian_motion() {
        for span in [1, 2, 8, 16] {
            let path: Vec<Vec<_>> = (0..50).map(|time| terms(time, span).collect()).collect();
            for (s, at_s) in path.iter().enumerate() {
                for (t, at_t) in path.iter().enumerate() {
                    let mut covariance = 0.0;
                    for (node, weight) in at_s {
                        let same = at_t.iter().filter(|(other, _)| other == node);
                        covariance += same.map(|(_, other)| f64::from(weight * other)).sum::<f64>();
                    }
                    let expected = s.min(t) as f64;
                    assert!((covariance - expected).abs() < 1e-4, "{s}, {t}: {covariance}");
                }
            }
        }
    }

    #[test]
    fn few_numbers_are_needed() {
        for elapsed in 0..2_000 {
            assert!(terms(elapsed, 1024).count() <= 12);
        }
    }

    fn noise(between_visits: u64) -> LazyNoise {
        LazyNoise::new(40_000, 3, between_visits, "test", &Random::new(6))
    }

    /// Increments between any times are independent with variance 1 for each iteration. Over n = 80,000 numbers a variance
    /// has relative standard error √(2/n) = 0.5 %, and a correlation has 1/√n = 0.35 %; five of each.
    #[test]
    fn what_was_missed_has_independent_increments() {
        let noise = noise(10);
        let all = Indices::range(0, 40_000);
        let at = |now| noise.missed(&all, now, &[40_000, 2]).to_kind(Kind::Double);
        assert!(at(3).equal(&at(3).zeros_like()), "nothing is missed at once");
        let times = [3, 4, 9, 10, 22, 37];
        let increments: Vec<_> = times
            .windows(2)
            .map(|pair| (at(pair[1]) - at(pair[0]), pair[1] - pair[0]))
            .collect();
        for (i, (one, elapsed)) in increments.iter().enumerate() {
            let variance = one.square().mean(Kind::Double).double_value(&[]) / *elapsed as f64;
            assert!((variance - 1.0).abs() < 0.025, "{elapsed}: {variance}");
            for (other, others) in &increments[i + 1..] {
                let product = (one * other).mean(Kind::Double).double_value(&[]);
                let correlation = product / ((elapsed * others) as f64).sqrt();
                assert!(correlation.abs() < 0.018, "{elapsed}, {others}: {correlation}");
            }
        }
    }

    #[test]
    fn a_settled_point_starts_a_path_of_its_own() {
        let mut noise = noise(10);
        let (settled, other) = (Indices::range(5, 1), Indices::range(6, 1));
        let shape = [1, 8];
        let before = [&settled, &other].map(|point| noise.missed(point, 9, &shape));
        noise.settle(&settled, 7);
        let again = noise.missed(&settled, 9, &shape);
        assert!(!again.equal(&before[0]) && !again.equal(&before[1]));
        assert!(noise.missed(&other, 9, &shape).equal(&before[1]));
    }
}
