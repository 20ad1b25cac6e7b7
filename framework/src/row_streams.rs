//! Random numbers for chains that run in blocks: each row has a stream of its own, whichever block and thread it is in.

use pulp::{Arch, Simd, WithSimd};

/// A counter-based generator: a number depends on key, row, draw and place in the row alone, and on nothing before it.
#[derive(Clone, Debug)]
pub struct RowStreams {
    key: [u32; 2],
    /// The row that the first row of whatever is drawn belongs to.
    first_row: u64,
    /// How often has been drawn.
    draws: u32,
}

/// What is made of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// N(0, 1).
    Normal,
    /// Uniform on (0, 1).
    Uniform,
}

impl RowStreams {
    pub fn new(key: u64, first_row: u64) -> Self {
        Self {
            key: [key as u32, (key >> 32) as u32],
            first_row,
            draws: 0,
        }
    }

    /// Standard normal numbers, `columns` for each row.
    pub fn normal(&mut self, rows: usize, columns: usize) -> Vec<f32> {
        self.draw(rows, columns, Law::Normal)
    }

    /// Numbers uniform on (0, 1), `columns` for each row.
    pub fn uniform(&mut self, rows: usize, columns: usize) -> Vec<f32> {
        self.draw(rows, columns, Law::Uniform)
    }

    fn draw(&mut self, rows: usize, columns: usize, law: Law) -> Vec<f32> {
        let mut numbers = vec![0.0; rows * columns];
        Arch::new().dispatch(Fill {
            streams: self,
            law,
            columns,
            numbers: &mut numbers,
        });
        self.draws += 1;
        numbers
    }
}

/// Rows that are computed together, so that the compiler makes vectors of them.
const LANES: usize = 16;

/// Numbers that one call of the generator gives for a row.
const WORDS: usize = 4;

type Lanes<T> = [T; LANES];

struct Fill<'a> {
    streams: &'a RowStreams,
    law: Law,
    columns: usize,
    numbers: &'a mut [f32],
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Fill { streams, columns, .. } = self;
        for (block, rows) in self.numbers.chunks_mut(LANES * columns.max(1)).enumerate() {
            let first = streams.first_row + (block * LANES) as u64;
            for group in 0..columns.div_ceil(WORDS) {
                let row = |lane: usize| first + lane as u64;
                let bits = philox(
                    [
                        std::array::from_fn(|lane| row(lane) as u32),
                        std::array::from_fn(|lane| (row(lane) >> 32) as u32),
                        [streams.draws; LANES],
                        [group as u32; LANES],
                    ],
                    streams.key,
                );
                let numbers = match self.law {
                    Law::Uniform => bits.map(|bits| bits.map(unit)),
                    Law::Normal => {
                        let [a, b] = normals(bits[0], bits[1]);
                        let [c, d] = normals(bits[2], bits[3]);
                        [a, b, c, d]
                    }
                };
                for (lane, row) in rows.chunks_mut(columns).enumerate() {
                    let places = row[group * WORDS..].iter_mut();
                    places
                        .zip(numbers)
                        .for_each(|(place, number)| *place = number[lane]);
                }
            }
        }
    }
}

/// Philox4x32-10 (Salmon et al. 2011): ten rounds of multiplications on a counter.
#[inline(always)]
fn philox(mut counter: [Lanes<u32>; 4], mut key: [u32; 2]) -> [Lanes<u32>; 4] {
    for _ in 0..10 {
        let mut next = counter;
        for lane in 0..LANES {
            let left = u64::from(counter[0][lane]) * 0xD251_1F53;
            let right = u64::from(counter[2][lane]) * 0xCD9E_8D57;
            next[0][lane] = (right >> 32) as u32 ^ counter[1][lane] ^ key[0];
            next[1][lane] = right as u32;
            next[2][lane] = (left >> 32) as u32 ^ counter[3][lane] ^ key[1];
            next[3][lane] = left as u32;
        }
        counter = next;
        key[0] = key[0].wrapping_add(0x9E37_79B9);
        key[1] = key[1].wrapping_add(0xBB67_AE85);
    }
    counter
}

/// The middles of 2²⁴ intervals of (0, 1).
#[inline(always)]
fn unit(bits: u32) -> f32 {
    const STEP: f32 = 1.0 / 16_777_216.0;
    ((bits >> 8) as f32).mul_add(STEP, 0.5 * STEP)
}

/// Box–Muller: √(−2 ln u)·(cos 2πv, sin 2πv).
#[inline(always)]
fn normals(u: Lanes<u32>, v: Lanes<u32>) -> [Lanes<f32>; 2] {
    let mut pair = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let radius = (-2.0 * ln(unit(u[lane]))).sqrt();
        let [cos, sin] = cos_sin(unit(v[lane]));
        pair[0][lane] = radius * cos;
        pair[1][lane] = radius * sin;
    }
    pair
}

/// ln x for positive x: x = 2ⁿm with m in [√½, √2), and ln m = 2 artanh((m − 1)/(m + 1)) by its series, whose next term
/// is below 1e-9.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const SQRT_HALF: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let exponent = (x.to_bits().wrapping_sub(SQRT_HALF) as i32) >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((exponent << 23) as u32));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series = [1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
    let artanh = s * series.iter().fold(1.0 / 9.0, |sum, term| q.mul_add(sum, *term));
    (exponent as f32).mul_add(std::f32::consts::LN_2, 2.0 * artanh)
}

/// cos 2πv and sin 2πv for v in [0, 1]: from the nearest quarter, by Taylor series on ±π/4.
#[inline(always)]
fn cos_sin(v: f32) -> [f32; 2] {
    let quarter = (4.0 * v + 0.5) as i32;
    let t = (v - 0.25 * quarter as f32) * std::f32::consts::TAU;
    let q = t * t;
    let sines = [-1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0];
    let sin = t * sines
        .iter()
        .fold(1.0 / 362_880.0, |sum, term| q.mul_add(sum, *term));
    let cosines = [-1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
    let cos = cosines
        .iter()
        .fold(1.0 / 40_320.0, |sum, term| q.mul_add(sum, *term));
    let [cos, sin] = if quarter & 1 == 0 { [cos, sin] } else { [-sin, cos] };
    if quarter & 2 == 0 {
        [cos, sin]
    } else {
        [-cos, -sin]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vectors of Random123.
    #[test]
    fn philox_gives_its_known_answers() {
        let known = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
        ];
        for (counter, key, expected) in known {
            let found = philox(counter.map(|word| [word; LANES]), key);
            assert_eq!(found.map(|word| word[LANES - 1]), expected);
        }
    }

    /// Numbers of at most 6, f32 has 2⁻²² there, a few roundings: 1e-6.
    #[test]
    fn the_functions_agree_with_double_precision() {
        for i in 0..100_000u32 {
            let v = unit(i.wrapping_mul(42_949) << 1);
            let exact = f64::from(v) * std::f64::consts::TAU;
            let [cos, sin] = cos_sin(v).map(f64::from);
            assert!(
                (cos - exact.cos()).abs() < 3e-7 && (sin - exact.sin()).abs() < 3e-7,
                "{v}"
            );
            let error = f64::from(ln(v)) / f64::from(v).ln() - 1.0;
            assert!(error.abs() < 1e-6, "{v}: {error}");
        }
        let least = f64::from(ln(unit(0)));
        assert!((least - 2f64.powi(-25).ln()).abs() < 2e-6, "{least}");
    }

    #[test]
    fn a_row_has_the_same_numbers_in_any_block() {
        let mut whole = RowStreams::new(7, 0);
        let mut part = RowStreams::new(7, 37);
        for columns in [1, 2, 5] {
            let all = whole.normal(90, columns);
            let some = part.normal(20, columns);
            assert_eq!(some, all[37 * columns..57 * columns]);
        }
        assert_ne!(whole.uniform(9, 1), whole.uniform(9, 1), "draws differ");
        assert_ne!(
            RowStreams::new(8, 0).uniform(9, 1),
            RowStreams::new(7, 0).uniform(9, 1)
        );
    }

    /// Moments of n normal numbers have the standard errors √(1/n), √(2/n), √(15/n) and √(96/n); five of each. And
    /// the distribution function at the quartiles and at ±2, within five of √(p(1 − p)/n).
    #[test]
    fn normal_numbers_are_normal() {
        let n = 1_000_000;
        let numbers = RowStreams::new(3, 1 << 40).normal(n / 5, 5);
        let moment = |power: i32| numbers.iter().map(|x| f64::from(*x).powi(power)).sum::<f64>() / n as f64;
        for (power, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let error = (moment(power) - expected) / (variance / n as f64).sqrt();
            assert!(error.abs() < 5.0, "moment {power}: {error} standard errors");
        }
        for (x, p) in [
            (-2.0, 0.022_750_1),
            (-0.674_489_8, 0.25),
            (0.0, 0.5),
            (0.674_489_8, 0.75),
            (2.0, 0.977_249_9),
        ] {
            let below = numbers.iter().filter(|number| **number < x).count() as f64 / n as f64;
            assert!(
                (below - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(),
                "{x}: {below}"
            );
        }
        // Neighbours in a row, and the same place of neighbouring rows, are uncorrelated.
        for lag in [1, 5] {
            let pairs = numbers.iter().zip(&numbers[lag..]);
            let product: f64 = pairs.map(|(a, b)| f64::from(a * b)).sum::<f64>() / n as f64;
            assert!(product.abs() < 5.0 / (n as f64).sqrt(), "lag {lag}: {product}");
        }
    }
}
