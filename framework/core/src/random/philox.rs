//! A counter-based generator: each row of what is drawn has random numbers of its own, whichever block and thread draws it.

use pulp::{Arch, Simd, WithSimd};

/// The numbers under one key. A number depends on key, row, draw and column alone, and on nothing drawn before it.
#[derive(Clone, Copy, Debug)]
pub struct Philox {
    key: [u32; 2],
}

/// The rows that numbers are drawn for.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Consecutive rows from this one.
    From(u64),
    /// These rows.
    Of(&'a [u64]),
}

impl Rows<'_> {
    #[inline(always)]
    fn at(self, i: usize) -> u64 {
        match self {
            Rows::From(first) => first.wrapping_add(i as u64),
            // Lanes beyond the last row are computed and thrown away.
            Rows::Of(rows) => rows.get(i).copied().unwrap_or_default(),
        }
    }
}

/// For each row, a weighted sum of draws.
#[derive(Debug, Default)]
pub struct Sums {
    /// Numbers of draws, and their weights, row after row.
    terms: Vec<(u32, f32)>,
    /// Where each row's terms end.
    ends: Vec<usize>,
}

impl Sums {
    /// Adds the terms of the next row.
    pub fn push(&mut self, terms: impl IntoIterator<Item = (u32, f32)>) {
        self.terms.extend(terms);
        self.ends.push(self.terms.len());
    }

    #[inline(always)]
    fn of_row(&self, i: usize) -> &[(u32, f32)] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.terms[start..self.ends[i]]
    }
}

/// What is made of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// N(0, 1).
    Normal,
    /// Uniform on (0, 1).
    Uniform,
}

impl Philox {
    /// The numbers under `key`.
    pub fn new(key: u64) -> Self {
        Self {
            key: [key as u32, (key >> 32) as u32],
        }
    }

    /// Fills rows of `columns` numbers each with the standard normal numbers of draw number `draw`.
    pub fn fill_normal(self, rows: Rows, columns: usize, draw: u32, numbers: &mut [f32]) {
        self.fill(rows, columns, draw, Law::Normal, numbers);
    }

    /// The same with numbers uniform on (0, 1).
    pub fn fill_uniform(self, rows: Rows, columns: usize, draw: u32, numbers: &mut [f32]) {
        self.fill(rows, columns, draw, Law::Uniform, numbers);
    }

    /// Fills each of `rows` with the sum of standard normal draws that `sums` has for it.
    pub fn fill_normal_sums(self, rows: &[u64], columns: usize, sums: &Sums, numbers: &mut [f32]) {
        assert_eq!(
            rows.len() * columns,
            numbers.len(),
            "one row of numbers for each row"
        );
        Arch::new().dispatch(FillSums {
            philox: self,
            rows,
            sums,
            columns,
            numbers,
        });
    }

    /// `count` numbers of 64 random bits.
    pub fn bits(self, count: usize, draw: u32) -> Vec<u64> {
        let block = |block: usize| {
            let row = |lane: usize| (block * LANES + lane) as u32;
            let words = philox(
                [std::array::from_fn(row), [0; LANES], [draw; LANES], [0; LANES]],
                self.key,
            );
            (0..LANES).map(move |lane| u64::from(words[0][lane]) << 32 | u64::from(words[1][lane]))
        };
        let blocks = 0..count.div_ceil(LANES);
        blocks.flat_map(block).take(count).collect()
    }

    fn fill(self, rows: Rows, columns: usize, draw: u32, law: Law, numbers: &mut [f32]) {
        Arch::new().dispatch(Fill {
            philox: self,
            rows,
            draw,
            law,
            columns,
            numbers,
        });
    }
}

/// Rows that are computed together, so that the compiler makes vectors of them.
const LANES: usize = 16;

/// Numbers that one call of the generator gives for a row.
const WORDS: usize = 4;

type Lanes<T> = [T; LANES];

struct Fill<'a> {
    philox: Philox,
    rows: Rows<'a>,
    draw: u32,
    law: Law,
    columns: usize,
    numbers: &'a mut [f32],
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Fill { rows, columns, .. } = self;
        for (block, places) in self.numbers.chunks_mut(LANES * columns.max(1)).enumerate() {
            let [low, high] = row_words(rows, block);
            for group in 0..columns.div_ceil(WORDS) {
                let counter = [low, high, [self.draw; LANES], [group as u32; LANES]];
                let bits = philox(counter, self.philox.key);
                let numbers = match self.law {
                    Law::Uniform => bits.map(|bits| bits.map(unit)),
                    Law::Normal => four_normals(bits),
                };
                put(&numbers, group, columns, places);
            }
        }
    }
}

struct FillSums<'a> {
    philox: Philox,
    rows: &'a [u64],
    sums: &'a Sums,
    columns: usize,
    numbers: &'a mut [f32],
}

impl WithSimd for FillSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let FillSums { rows, columns, .. } = self;
        for (block, places) in self.numbers.chunks_mut(LANES * columns.max(1)).enumerate() {
            let [low, high] = row_words(Rows::Of(rows), block);
            let here = block * LANES..rows.len().min((block + 1) * LANES);
            let most = here.clone().map(|row| self.sums.of_row(row).len()).max();
            for group in 0..columns.div_ceil(WORDS) {
                let mut totals = [[0.0; LANES]; WORDS];
                for term in 0..most.unwrap_or(0) {
                    // Rows with fewer terms add nothing.
                    let (mut draws, mut weights) = ([0; LANES], [0.0; LANES]);
                    for (lane, row) in here.clone().enumerate() {
                        if let Some((draw, weight)) = self.sums.of_row(row).get(term) {
                            (draws[lane], weights[lane]) = (*draw, *weight);
                        }
                    }
                    let bits = philox([low, high, draws, [group as u32; LANES]], self.philox.key);
                    let numbers = four_normals(bits);
                    for word in 0..WORDS {
                        for lane in 0..LANES {
                            totals[word][lane] += weights[lane] * numbers[word][lane];
                        }
                    }
                }
                put(&totals, group, columns, places);
            }
        }
    }
}

/// The numbers of a block's rows, in two words each.
#[inline(always)]
fn row_words(rows: Rows, block: usize) -> [Lanes<u32>; 2] {
    let row = |lane: usize| rows.at(block * LANES + lane);
    [
        std::array::from_fn(|lane| row(lane) as u32),
        std::array::from_fn(|lane| (row(lane) >> 32) as u32),
    ]
}

/// Writes a group of columns to the rows of a block.
#[inline(always)]
fn put(numbers: &[Lanes<f32>; WORDS], group: usize, columns: usize, places: &mut [f32]) {
    for (lane, row) in places.chunks_mut(columns).enumerate() {
        let places = row[group * WORDS..].iter_mut();
        places
            .zip(numbers)
            .for_each(|(place, number)| *place = number[lane]);
    }
}

#[inline(always)]
fn four_normals(bits: [Lanes<u32>; WORDS]) -> [Lanes<f32>; WORDS] {
    let [a, b] = normals(bits[0], bits[1]);
    let [c, d] = normals(bits[2], bits[3]);
    [a, b, c, d]
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

    fn normal(key: u64, rows: Rows, count: usize, columns: usize, draw: u32) -> Vec<f32> {
        let mut numbers = vec![0.0; count * columns];
        Philox::new(key).fill_normal(rows, columns, draw, &mut numbers);
        numbers
    }

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
        for columns in [1, 2, 5] {
            let all = normal(7, Rows::From(0), 90, columns, 3);
            let some = normal(7, Rows::From(37), 20, columns, 3);
            assert_eq!(some, all[37 * columns..57 * columns]);
            let of = [80, 2, 41];
            let picked = normal(7, Rows::Of(&of), 3, columns, 3);
            for (row, numbers) in of.into_iter().zip(picked.chunks(columns)) {
                assert_eq!(*numbers, all[row as usize * columns..][..columns]);
            }
        }
        let uniform = |key, draw| {
            let mut numbers = [0.0; 9];
            Philox::new(key).fill_uniform(Rows::From(0), 1, draw, &mut numbers);
            numbers
        };
        assert_ne!(uniform(7, 0), uniform(7, 1), "draws differ");
        assert_ne!(uniform(7, 0), uniform(8, 0), "keys differ");
        assert_ne!(
            uniform(7, 0),
            uniform(7 + (1 << 32), 0),
            "both halves of a key count"
        );
    }

    /// Sums of several draws, a different number in each row, against the draws themselves. Rounding: 1e-6.
    #[test]
    fn sums_are_those_of_their_draws() {
        for columns in [1, 3, 8] {
            let rows: Vec<u64> = (0..37).map(|row| row * 7 + (row << 33)).collect();
            let mut sums = Sums::default();
            let terms = |row: usize| (0..row % 5).map(move |i| ((row * 10 + i) as u32, 0.5 - i as f32));
            (0..rows.len()).for_each(|row| sums.push(terms(row)));
            let mut found = vec![0.0; rows.len() * columns];
            Philox::new(11).fill_normal_sums(&rows, columns, &sums, &mut found);
            for (row, found) in found.chunks(columns).enumerate() {
                let mut expected = vec![0.0; columns];
                for (draw, weight) in terms(row) {
                    let numbers = normal(11, Rows::Of(&rows[row..=row]), 1, columns, draw);
                    expected
                        .iter_mut()
                        .zip(numbers)
                        .for_each(|(sum, number)| *sum += weight * number);
                }
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-5, "{found} for {expected}");
                }
            }
        }
    }

    /// Moments of n normal numbers have the standard errors √(1/n), √(2/n), √(15/n) and √(96/n); five of each. And
    /// the distribution function at the quartiles and at ±2, within five of √(p(1 − p)/n).
    #[test]
    fn normal_numbers_are_normal() {
        let n = 1_000_000;
        let numbers = normal(3, Rows::From(1 << 40), n / 5, 5, 0);
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
