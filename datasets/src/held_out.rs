//! Holds out a fraction of the points for validation if the data have no split.

use std::sync::Arc;

use crate::cache::Cache;
use crate::cached::Part;

/// Training and validation part of a cache: one of every 1/share consecutive points is held out.
pub fn held_out(cache: Cache, share: f64) -> [Part; 2] {
    let cache = Arc::new(cache);
    let before = |i: usize| (i as f64 * share) as usize;
    let (validation, train) = (0..cache.len()).partition(|i| before(i + 1) > before(*i));
    [train, validation].map(|points| Part {
        cache: cache.clone(),
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn held_out_points_are_spread_evenly() {
        let [train, validation] = held_out(testing::cache(&[0; 12], &[]), 0.25);
        assert_eq!(validation.points, [3, 7, 11]);
        assert_eq!(train.points, [0, 1, 2, 4, 5, 6, 8, 9, 10]);
        let [train, validation] = held_out(testing::cache(&[0; 12], &[]), 0.0);
        assert_eq!((train.points.len(), validation.points.len()), (12, 0));
    }
}
