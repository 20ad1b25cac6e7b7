//! Throws damaged files at loaders: whatever they are given, they must answer, and neither panic nor crash.
//!
//! `EBIPLA_FUZZ=100000 cargo test --release fuzz` tries so many inputs for each loader instead of a few hundred.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const FEW: u64 = 300;

/// Numbers that sizes and offsets are replaced by.
const EXTREMES: [u64; 8] = [
    0,
    1,
    0x7f,
    0xffff_ffff,
    1 << 31,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];
/// The same as text, and what else a text may hold.
const WORDS: [&str; 14] = [
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "99999999999999999999",
    "null",
    "nan",
    "[]",
    "{}",
    "\"",
    ": ",
    "\n",
    "&a",
    "*a",
];

/// Writes damaged versions of `whole` to `path`, one after the other, and lets `load` read each.
pub fn survives(whole: &[u8], path: &Path, mut load: impl FnMut(&Path)) {
    let wanted = std::env::var("EBIPLA_FUZZ")
        .ok()
        .and_then(|count| count.parse().ok());
    let count: u64 = wanted.unwrap_or(FEW);
    for seed in 0..count {
        let damaged = Damage(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).of(whole);
        if let Err(error) = fs::write(path, &damaged) {
            panic!("writing {}: {error}", path.display());
        }
        let survived = catch_unwind(AssertUnwindSafe(|| load(path)));
        assert!(survived.is_ok(), "input {seed} made {} panic", path.display());
    }
}

/// Random damage, the same for the same seed (xorshift).
struct Damage(u64);

impl Damage {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A place, more often near the beginning, where headers are.
    fn place(&mut self, length: usize) -> usize {
        let within = if self.below(2) == 0 {
            length
        } else {
            length.min(256)
        };
        self.below(within)
    }

    fn of(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.place(bytes.len());
            match self.below(7) {
                0 => bytes.truncate(at),
                1 => {
                    let bit = self.below(8);
                    bytes
                        .iter_mut()
                        .skip(at)
                        .take(1)
                        .for_each(|byte| *byte ^= 1 << bit);
                }
                2 => {
                    let value = EXTREMES[self.below(EXTREMES.len())].to_le_bytes();
                    bytes
                        .iter_mut()
                        .skip(at)
                        .zip(value)
                        .for_each(|(byte, new)| *byte = new);
                }
                3 => {
                    let word = WORDS[self.below(WORDS.len())].bytes();
                    let end = (at + self.below(6)).min(bytes.len());
                    bytes.splice(at.min(end)..end, word);
                }
                4 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    bytes.drain(at.min(end)..end);
                }
                5 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let again = bytes[at.min(end)..end].to_vec();
                    let to = self.place(bytes.len());
                    bytes.splice(to..to, again);
                }
                _ => {
                    let value = self.next() as u8;
                    bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value);
                }
            }
        }
        bytes
    }
}

#[test]
fn damage_is_varied_and_the_same_for_the_same_seed() {
    let whole = b"a file that is long enough to be damaged in many places".repeat(4);
    let damaged: Vec<_> = (1..200).map(|seed| Damage(seed).of(&whole)).collect();
    let different: std::collections::BTreeSet<_> = damaged.iter().collect();
    assert!(different.len() > 190, "{}", different.len());
    assert_eq!(Damage(5).of(&whole), damaged[4]);
}
