//! Derives every random number of a run from its seed.
//!
//! libtorch has one global generator without a state to save. So each consumer takes a fresh stream, named and
//! numbered, right before it draws: what it gets depends on the seed, the name and the number alone, not on what
//! was logged or evaluated in between.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

use crate::row_streams::RowStreams;

/// Held while a stream draws, since all threads share libtorch's generator.
static GENERATOR: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has a stream open: opening another would wait for itself.
    static DRAWING: Cell<bool> = const { Cell::new(false) };
}

/// The random streams of one run.
#[derive(Debug)]
pub struct Random {
    seed: u64,
}

/// One stream.
pub struct Draws<'a> {
    source: Source,
    /// The noise that was last added to something, whose place the next one takes.
    noise: Option<Tensor>,
    _random: PhantomData<&'a mut Random>,
}

enum Source {
    /// libtorch's generator. While it is held, no other stream of the program can be open.
    Torch(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>),
    /// A stream for each row of what is drawn, apart from libtorch's.
    Rows(RowStreams),
}

impl Random {
    /// All streams of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Streams for another purpose, independent of these.
    pub fn fork(&self, purpose: &str) -> Self {
        Self::new(stream_seed(self.seed, purpose, u64::MAX) as u64)
    }

    /// Opens the stream `name` at `index` (an iteration, an epoch, or 0).
    ///
    /// # Panics
    /// If this thread has another stream open, which would mix the two.
    pub fn stream(&mut self, name: &str, index: u64) -> Draws<'_> {
        assert!(
            !DRAWING.replace(true),
            "stream `{name}` was opened while another one is drawing"
        );
        let generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        tch::manual_seed(stream_seed(self.seed, name, index));
        Draws {
            source: Source::Torch(generator),
            noise: None,
            _random: PhantomData,
        }
    }
}

fn stream_seed(seed: u64, name: &str, index: u64) -> i64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(index.to_le_bytes());
    hash.update(name.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

impl Drop for Draws<'_> {
    fn drop(&mut self) {
        if matches!(self.source, Source::Torch(_)) {
            DRAWING.set(false);
        }
    }
}

impl Draws<'_> {
    /// A stream for each row, the first of which is number `first_row` of all rows under this key.
    pub(crate) fn of_rows(key: u64, first_row: u64) -> Self {
        Self {
            source: Source::Rows(RowStreams::new(key, first_row)),
            noise: None,
            _random: PhantomData,
        }
    }

    /// A key for streams that branch off this one.
    pub(crate) fn key(&mut self) -> u64 {
        let halves = Tensor::randint(1 << 32, [2], (Kind::Int64, Device::Cpu));
        (halves.int64_value(&[0]) as u64) << 32 | halves.int64_value(&[1]) as u64
    }

    /// Standard normal numbers.
    pub fn normal(&mut self, shape: &[i64], device: Device) -> Tensor {
        match &mut self.source {
            Source::Torch(_) => Tensor::randn(shape, (Kind::Float, device)),
            Source::Rows(rows) => by_row(shape, device, |count, columns| rows.normal(count, columns)),
        }
    }

    /// Standard normal numbers of the shape, type and device of `like`.
    pub fn normal_like(&mut self, like: &Tensor) -> Tensor {
        match &self.source {
            Source::Torch(_) => like.randn_like(),
            Source::Rows(_) => self.normal(&like.size(), like.device()).to_kind(like.kind()),
        }
    }

    /// x ← x + scale·ξ with standard normal ξ, in place.
    pub fn add_normal(&mut self, x: &mut Tensor, scale: f64) {
        match &self.source {
            Source::Torch(_) => {
                let alike = |noise: &Tensor| {
                    noise.size() == x.size() && noise.kind() == x.kind() && noise.device() == x.device()
                };
                let kept = self.noise.take().filter(alike);
                let noise = self.noise.insert(kept.unwrap_or_else(|| x.empty_like()));
                *x += noise.normal_(0.0, scale);
            }
            Source::Rows(_) => *x += self.normal_like(x) * scale,
        }
    }

    /// Numbers uniform between `low` and `high`.
    pub fn uniform(&mut self, low: f64, high: f64, shape: &[i64], device: Device) -> Tensor {
        let unit = match &mut self.source {
            Source::Torch(_) => Tensor::rand(shape, (Kind::Float, device)),
            Source::Rows(rows) => by_row(shape, device, |count, columns| rows.uniform(count, columns)),
        };
        unit * (high - low) + low
    }

    /// A permutation of `0..n`, on the CPU.
    ///
    /// # Panics
    /// Inside a prior sampler, whose rows each have a stream of their own.
    pub fn permutation(&mut self, n: i64) -> Tensor {
        assert!(
            matches!(self.source, Source::Torch(_)),
            "a permutation mixes rows, and chains must not know of each other"
        );
        Tensor::randperm(n, (Kind::Int64, Device::Cpu))
    }

    /// So many of `0..n` without repetition, or all of them if there are fewer, in rising order, on the CPU.
    pub fn subset(&mut self, n: i64, count: i64) -> Tensor {
        self.permutation(n).narrow(0, 0, count.min(n)).sort(0, false).0
    }
}

/// Numbers for each row of a shape, on its device.
fn by_row(shape: &[i64], device: Device, draw: impl FnOnce(usize, usize) -> Vec<f32>) -> Tensor {
    let rows = shape.first().map_or(1, |rows| *rows as usize);
    let columns = shape.iter().skip(1).product::<i64>() as usize;
    Tensor::from_slice(&draw(rows, columns))
        .view(shape)
        .to_device(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let seeds = [
            stream_seed(1, "a", 0),
            stream_seed(2, "a", 0),
            stream_seed(1, "b", 0),
            stream_seed(1, "a", 1),
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
}
