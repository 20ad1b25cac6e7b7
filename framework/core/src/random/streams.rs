//! Derives every random number of a run from its seed.
//!
//! Each consumer opens a stream, named and numbered, right before it draws: what it gets depends on the seed, the name
//! and the number alone, not on what was logged or evaluated in between. On the CPU all numbers come from a
//! counter-based generator with keys of 64 bits, since libtorch's own has no state to save there and takes 32 bits of a
//! seed, so that streams of a long run would coincide. Other devices use libtorch's generator, which takes 64.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

use crate::Indices;
use crate::random::philox::{self, Philox};

/// Held while a stream draws from libtorch's generator, which all threads share.
static GENERATOR: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has a stream open. A second one would disturb the first on other devices than the CPU, so
    /// that none is allowed on any.
    static DRAWING: Cell<bool> = const { Cell::new(false) };
}

/// The random streams of one run.
#[derive(Debug)]
pub struct Random {
    seed: u64,
}

/// One stream.
pub struct Draws<'a> {
    key: u64,
    rows: Rows,
    /// How many draws have been made.
    draws: u32,
    /// libtorch's generator, seeded with the key, once it has been needed.
    generator: Option<MutexGuard<'static, ()>>,
    /// The noise that was last added to a tensor, whose memory the next one takes.
    noise: Option<Tensor>,
    _random: PhantomData<&'a mut Random>,
}

/// Whose the first dimension of what is drawn is. Each row has numbers of its own.
enum Rows {
    /// Rows of this stream alone.
    Own,
    /// Chains from this one on, in a block that another thread must not see.
    Chains(u64),
    /// These data points.
    Points(Vec<u64>),
}

impl Random {
    /// All streams of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Streams for another purpose, independent of these.
    pub fn fork(&self, purpose: &str) -> Self {
        Self::new(stream_key(self.seed, purpose, u64::MAX))
    }

    /// Opens the stream `name` at `index` (an iteration, an epoch, or 0).
    ///
    /// # Panics
    /// If this thread has another stream open, which would mix the two.
    pub fn stream(&mut self, name: &str, index: u64) -> Draws<'_> {
        self.open(name, index, Rows::Own)
    }

    /// Opens a stream in which row i of what is drawn belongs to data point i of `points`: its numbers depend neither
    /// on the batch that it is in nor on the device.
    ///
    /// # Panics
    /// As [`Self::stream`].
    pub fn stream_of_points(&mut self, name: &str, index: u64, points: &Indices) -> Draws<'_> {
        self.open(name, index, Rows::Points(points.numbers()))
    }

    fn open(&mut self, name: &str, index: u64, rows: Rows) -> Draws<'_> {
        assert!(
            !DRAWING.replace(true),
            "stream `{name}` was opened while another one is drawing"
        );
        Draws::new(stream_key(self.seed, name, index), rows)
    }

    /// A key for numbers that are computed elsewhere.
    pub(crate) fn key(&self, name: &str) -> u64 {
        stream_key(self.seed, name, 0)
    }
}

fn stream_key(seed: u64, name: &str, index: u64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(index.to_le_bytes());
    hash.update(name.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

impl Drop for Draws<'_> {
    fn drop(&mut self) {
        if !matches!(self.rows, Rows::Chains(_)) {
            DRAWING.set(false);
        }
    }
}

impl Draws<'_> {
    fn new(key: u64, rows: Rows) -> Self {
        Self {
            key,
            rows,
            draws: 0,
            generator: None,
            noise: None,
            _random: PhantomData,
        }
    }

    /// A stream for a block of chains, the first of which is number `first` of all chains under this key.
    pub(crate) fn of_chains(key: u64, first: u64) -> Self {
        Self::new(key, Rows::Chains(first))
    }

    /// A key for streams that branch off this one.
    pub(crate) fn branch(&mut self) -> u64 {
        self.bits(1)[0]
    }

    /// Standard normal numbers.
    pub fn normal(&mut self, shape: &[i64], device: Device) -> Tensor {
        if self.on_host(device) {
            let mut numbers = empty(shape);
            self.fill(&mut numbers, Philox::fill_normal);
            return numbers.to_device(device);
        }
        self.seed_generator();
        Tensor::randn(shape, (Kind::Float, device))
    }

    /// Standard normal numbers of the shape, type and device of `like`.
    pub fn normal_like(&mut self, like: &Tensor) -> Tensor {
        if self.on_host(like.device()) {
            return self.normal(&like.size(), like.device()).to_kind(like.kind());
        }
        self.seed_generator();
        like.randn_like()
    }

    /// x ← x + scale·ξ with standard normal ξ, in place.
    pub fn add_normal(&mut self, x: &mut Tensor, scale: f64) {
        let on_host = self.on_host(x.device());
        if on_host && (x.device() != Device::Cpu || x.kind() != Kind::Float) {
            *x += self.normal_like(x) * scale;
            return;
        }
        let alike = |noise: &Tensor| {
            noise.size() == x.size() && noise.kind() == x.kind() && noise.device() == x.device()
        };
        let kept = self.noise.take().filter(alike);
        let mut noise = kept.unwrap_or_else(|| Tensor::empty(x.size(), (x.kind(), x.device())));
        if on_host {
            self.fill(&mut noise, Philox::fill_normal);
            // By hand, since libtorch would make a tensor of the scale.
            numbers_of(&mut noise)
                .iter_mut()
                .for_each(|number| *number *= scale as f32);
            *x += &noise;
        } else {
            self.seed_generator();
            *x += noise.normal_(0.0, scale);
        }
        self.noise = Some(noise);
    }

    /// Numbers uniform between `low` and `high`.
    pub fn uniform(&mut self, low: f64, high: f64, shape: &[i64], device: Device) -> Tensor {
        let unit = if self.on_host(device) {
            let mut numbers = empty(shape);
            self.fill(&mut numbers, Philox::fill_uniform);
            numbers.to_device(device)
        } else {
            self.seed_generator();
            Tensor::rand(shape, (Kind::Float, device))
        };
        unit * (high - low) + low
    }

    /// Standard normal numbers for the rows from `first` on of a tensor that is drawn in blocks: the same however it is
    /// cut. Whatever draws in blocks takes the stream by value, since nothing else may be drawn from it afterwards.
    pub(crate) fn normal_block(&self, first: usize, shape: &[i64], device: Device) -> Tensor {
        let mut block = empty(shape);
        let rows = philox::Rows::From(first as u64);
        let [_, columns] = rows_and_columns(shape);
        Philox::new(self.key).fill_normal(rows, columns, self.draws, numbers_of(&mut block));
        block.to_device(device)
    }

    /// A permutation of `0..n`, on the CPU.
    ///
    /// # Panics
    /// Where rows are chains or data points, which must not depend on each other.
    pub fn permutation(&mut self, n: i64) -> Tensor {
        assert!(
            matches!(self.rows, Rows::Own),
            "a permutation mixes rows, which must not depend on each other"
        );
        let mut order: Vec<i64> = (0..n).collect();
        // Fisher and Yates: place i swaps with one of the i + 1 up to it.
        for (i, bits) in self.bits(order.len()).into_iter().enumerate().rev() {
            let other = (u128::from(bits) * (i as u128 + 1)) >> 64;
            order.swap(i, other as usize);
        }
        Tensor::from_slice(&order)
    }

    /// `count` of `0..n` without repetition, or all of them if there are fewer, in rising order, on the CPU.
    pub fn subset(&mut self, n: i64, count: i64) -> Tensor {
        self.permutation(n).narrow(0, 0, count.min(n)).sort(0, false).0
    }

    fn bits(&mut self, count: usize) -> Vec<u64> {
        self.draws += 1;
        Philox::new(self.key).bits(count, self.draws - 1)
    }

    /// Whether numbers for this device come from the counter-based generator.
    fn on_host(&self, device: Device) -> bool {
        device == Device::Cpu || matches!(self.rows, Rows::Points(_))
    }

    /// Fills a tensor on the CPU by the next draw, row by row.
    fn fill(&mut self, tensor: &mut Tensor, law: impl FnOnce(Philox, philox::Rows, usize, u32, &mut [f32])) {
        let [count, columns] = rows_and_columns(&tensor.size());
        let rows = match &self.rows {
            Rows::Own => philox::Rows::From(0),
            Rows::Chains(first) => philox::Rows::From(*first),
            Rows::Points(points) => {
                assert_eq!(points.len(), count, "one row for each data point");
                philox::Rows::Of(points)
            }
        };
        law(
            Philox::new(self.key),
            rows,
            columns,
            self.draws,
            numbers_of(tensor),
        );
        self.draws += 1;
    }

    /// From here on libtorch's generator is this stream's, until it is dropped.
    fn seed_generator(&mut self) {
        if self.generator.is_none() {
            self.generator = Some(GENERATOR.lock().unwrap_or_else(PoisonError::into_inner));
            tch::manual_seed(self.key as i64);
        }
    }
}

/// A tensor on the CPU whose numbers are still to be written.
pub(crate) fn empty(shape: &[i64]) -> Tensor {
    Tensor::empty(shape, (Kind::Float, Device::Cpu))
}

/// The numbers of a contiguous tensor of f32 on the CPU.
#[allow(unsafe_code)]
pub(crate) fn numbers_of(tensor: &mut Tensor) -> &mut [f32] {
    assert!(
        tensor.kind() == Kind::Float && tensor.device() == Device::Cpu && tensor.is_contiguous(),
        "numbers are written to contiguous f32 in main memory"
    );
    if tensor.numel() == 0 {
        return &mut [];
    }
    let numbers = tensor.data_ptr().cast::<f32>();
    // SAFETY: the tensor has `numel` numbers of f32 one after the other, which live as long as it is borrowed.
    unsafe { std::slice::from_raw_parts_mut(numbers, tensor.numel()) }
}

/// The first dimension of a shape, and the product of the others.
fn rows_and_columns(shape: &[i64]) -> [usize; 2] {
    let rows = shape.first().copied().unwrap_or(1);
    let columns: i64 = shape.iter().skip(1).product();
    [rows, columns].map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let seeds = [
            stream_key(1, "a", 0),
            stream_key(2, "a", 0),
            stream_key(1, "b", 0),
            stream_key(1, "a", 1),
        ];
        for (i, one) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|other| other != one));
        }
    }

    #[test]
    #[should_panic(expected = "while another one is drawing")]
    fn two_streams_at_once_are_caught() {
        let (mut one, mut other) = (Random::new(1), Random::new(2));
        let _drawing = one.stream("a", 0);
        let _ = other.stream("b", 0);
    }

    #[test]
    fn threads_do_not_disturb_each_other() {
        let draw = || {
            Random::new(9)
                .stream("noise", 0)
                .normal(&[10_000], Device::Cpu)
                .sum(Kind::Double)
        };
        let expected = draw().double_value(&[]);
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(move || draw().double_value(&[])))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().ok(), Some(expected));
        }
    }

    #[test]
    fn a_stream_does_not_depend_on_what_was_drawn_before() {
        let mut random = Random::new(7);
        let first = random.stream("noise", 3).normal(&[5], Device::Cpu);
        let _ = random.stream("evaluation", 0).normal(&[100], Device::Cpu);
        let again = random.stream("noise", 3).normal(&[5], Device::Cpu);
        assert!(first.equal(&again));
    }

    /// With seeds of 32 bits, as libtorch takes them on the CPU, 400,000 streams have 400,000²/2³³ = 19 equal pairs on
    /// average, and none with a probability of 8e-9. With 64 bits one pair has a probability of 4e-9.
    #[test]
    fn no_two_streams_of_a_long_run_are_alike() {
        let mut random = Random::new(0);
        let mut first: Vec<_> = (0..100_000u64)
            .flat_map(|k| ["data_order", "particles", "prior_sampler", "samples"].map(|name| (name, k)))
            .map(|(name, k)| random.stream(name, k).bits(1)[0])
            .collect();
        first.sort_unstable();
        assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn noise_of_a_data_point_does_not_depend_on_its_batch() {
        let mut random = Random::new(3);
        let mut noise = |points: &[i64]| {
            let points: Indices = Tensor::from_slice(points).into();
            let mut draws = random.stream_of_points("particles", 5, &points);
            let shape = [points.count(), 2, 3];
            [0, 1].map(|_| draws.normal(&shape, Device::Cpu))
        };
        let (one, other) = (noise(&[7, 100_000, 4]), noise(&[4, 9, 0, 7]));
        for (one, other) in one.iter().zip(&other) {
            assert!(one.get(0).equal(&other.get(3)) && one.get(2).equal(&other.get(0)));
            assert!(!one.get(0).equal(&one.get(1)));
        }
        assert!(!one[0].equal(&one[1]), "draws differ");
    }

    /// Each of n = 6 places has each number with probability 1/6. Over 60,000 permutations a count has standard error
    /// √(60,000·5/36) = 91; five of those are 456.
    #[test]
    fn permutations_are_uniform() {
        let mut counts = [[0; 6]; 6];
        let mut random = Random::new(1);
        let mut draws = random.stream("test", 0);
        for _ in 0..60_000 {
            let order = Vec::<i64>::try_from(draws.permutation(6)).unwrap();
            for (place, number) in order.iter().enumerate() {
                counts[place][*number as usize] += 1;
            }
        }
        for count in counts.as_flattened() {
            assert!((count - 10_000i32).abs() < 456, "{counts:?}");
        }
    }
}
