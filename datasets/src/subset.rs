//! Selects training points by label, by number, or at random.

use anyhow::ensure;
use ebipla_core::Random;
use ebipla_core::prelude::*;

use crate::cached::Part;

/// Which points to keep.
#[derive(Default)]
pub struct Subset<'a> {
    /// Maximum number of points.
    pub limit: Option<usize>,
    /// Seed of a random choice; `None` keeps the first ones.
    pub seed: Option<u64>,
    /// Labels to keep; `None` keeps all.
    pub labels: Option<&'a [u8]>,
    /// Labels to drop.
    pub exclude: &'a [u8],
}

impl Subset<'_> {
    /// Keeps the selected points, in their order.
    pub fn of(&self, mut part: Part) -> anyhow::Result<Part> {
        if let Some(labels) = part.cache.labels() {
            part.points.retain(|i| self.wants(labels[*i]));
        }
        let (found, limit) = (part.points.len(), self.limit.unwrap_or(usize::MAX));
        ensure!(found > 0, "no training points are left: none has these labels");
        if found > limit {
            part.points = match self.seed {
                None => part.points[..limit].to_vec(),
                Some(seed) => random_choice(&part.points, limit, seed)?,
            };
        } else if self.limit.is_some_and(|limit| limit > found) {
            tracing::info!("limit is {limit}, but there are only {found} training points");
        }
        Ok(part)
    }

    fn wants(&self, label: u8) -> bool {
        self.labels.is_none_or(|labels| labels.contains(&label)) && !self.exclude.contains(&label)
    }

    /// Problems with the choice of labels, of which there are `classes`.
    pub fn complaints(&self, classes: u8) -> Vec<Complaint> {
        let named = [
            ("labels", self.labels.unwrap_or_default()),
            ("exclude_labels", self.exclude),
        ];
        let unknown = named.into_iter().flat_map(|(option, labels)| {
            let unknown = labels.iter().filter(move |label| **label >= classes);
            unknown.map(move |label| Complaint {
                option,
                message: format!("found {label}, expected labels from 0 to {}", classes - 1),
            })
        });
        let nothing = (0..classes).all(|label| !self.wants(label)).then(|| Complaint {
            option: "labels",
            message: "no class is left to train on".into(),
        });
        unknown.chain(nothing).collect()
    }
}

/// A random choice of `limit` of the points, in their order.
fn random_choice(points: &[usize], limit: usize, seed: u64) -> anyhow::Result<Vec<usize>> {
    let order = Random::new(seed)
        .stream("subset", 0)
        .permutation(points.len() as i64);
    let mut chosen = Vec::<i64>::try_from(order)?;
    chosen.truncate(limit);
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|i| points[i as usize]).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing;

    /// Twelve points with the labels 0, 1, 2, 0, 1, 2, …
    fn chosen(subset: &Subset) -> Vec<usize> {
        let labels: Vec<u8> = (0..12).map(|i| i % 3).collect();
        let part = Part::all(testing::cache(&[7; 12], &labels));
        subset.of(part).unwrap().points
    }

    #[test]
    fn keeps_the_first_points_or_a_random_choice() {
        let first = Subset {
            limit: Some(4),
            ..Subset::default()
        };
        assert_eq!(chosen(&first), [0, 1, 2, 3]);
        let random = |seed| {
            chosen(&Subset {
                limit: Some(4),
                seed: Some(seed),
                ..Subset::default()
            })
        };
        let choices: Vec<_> = (0..60).map(random).collect();
        for choice in &choices {
            assert!(
                choice.len() == 4 && choice.is_sorted() && choice[3] < 12,
                "{choice:?}"
            );
        }
        assert_eq!(choices[3], random(3));
        // A given point is missing from 60 choices with probability (2/3)⁶⁰ = 3e-11.
        assert!((0..12).all(|i| choices.iter().any(|choice| choice.contains(&i))));
    }

    #[test]
    fn labels_are_selected_before_the_limit_applies() {
        let subset = Subset {
            limit: Some(3),
            labels: Some(&[1, 2]),
            exclude: &[2],
            ..Subset::default()
        };
        assert_eq!(chosen(&subset), [1, 4, 7]);
        let more = Subset {
            limit: Some(100),
            exclude: &[0, 1],
            ..Subset::default()
        };
        assert_eq!(chosen(&more), [2, 5, 8, 11]);
    }

    #[test]
    fn unknown_labels_and_empty_choices_are_refused() {
        let complaints = |labels, exclude| {
            let subset = Subset {
                labels,
                exclude,
                ..Subset::default()
            };
            subset.complaints(3).len()
        };
        assert_eq!(complaints(None, &[]), 0);
        assert_eq!(complaints(Some(&[0, 2]), &[0]), 0);
        assert_eq!(complaints(Some(&[0, 3]), &[4]), 2);
        assert_eq!(complaints(Some(&[1]), &[1]), 1);
        assert_eq!(complaints(Some(&[]), &[]), 1);
    }
}
