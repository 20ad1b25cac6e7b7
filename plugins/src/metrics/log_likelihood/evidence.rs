//! The integral of exp(−U(x) − ‖y − g(x)‖²/(2σ²)) over the latent plane, for many data points y at once.
//!
//! A square contributes only to the data points near its image under g. Each square keeps a list of those, and its
//! quarters select among them, so the work grows with the number of data points, not with its product with the grid.

use ebipla_core::prelude::*;

use super::LogLikelihood;
use super::grid::{AT_A_TIME, EDGE_SHARE, LIMIT, POINTS, ROW, Square, evaluate, nats_lost};
use super::log_sum::LogSum;

/// log ∫exp(−U(x) − ‖y − g(x)‖²/(2σ²)) dx for each data point y.
pub struct Evidence {
    pub log_values: Vec<f64>,
    /// Bound on the error of their mean. [nats]
    pub error: f64,
    /// Whether some integral has mass at the edge of the largest domain.
    pub unbounded: bool,
}

/// Squares per row of the initial domain.
const TILES: usize = 8;

/// Initial distance from a data point within which the images of squares count. [σ]
const REACH: f64 = 9.0;
/// The outer part of the reach must be empty: with less than this share there is nothing beyond it.
const RIM_SHARE: f64 = 1e-7;
const RIM: f64 = 0.75;

/// Squares are split until their images have at most this radius, so that the spacing is at most σ. [σ]
const RESOLVED: f64 = ROW as f64 / 2.0;

/// Refinement stops before it needs more terms than this, about ten seconds.
const MOST_TERMS: usize = 1_000_000_000;

impl Evidence {
    /// Starts with a domain of this half-width.
    pub fn integrate(
        subject: &Subject,
        data: &[[f64; 2]],
        half_width: f64,
        options: &LogLikelihood,
    ) -> anyhow::Result<Self> {
        let mut quadrature = Quadrature {
            subject,
            data,
            options,
            half_width,
            reach: vec![REACH * subject.model.sigma; data.len()],
        };
        let coarse = quadrature.integrate_far_enough()?;
        quadrature.refine(coarse)
    }
}

struct Quadrature<'a> {
    subject: &'a Subject<'a>,
    data: &'a [[f64; 2]],
    options: &'a LogLikelihood,
    /// The domain: the square of this half-width around the origin.
    half_width: f64,
    /// Distance from each data point within which the images of squares count.
    reach: Vec<f64>,
}

/// A square that contributes to at least one data point.
struct Patch {
    square: Square,
    /// The radius of its image.
    radius: f64,
    /// The data points that it contributes to.
    seen_by: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Sums {
    all: LogSum,
    /// The part from squares at the edge of the domain.
    edge: LogSum,
    /// The part from the outer region of the reach.
    rim: LogSum,
}

impl Sums {
    const EMPTY: Self = Self {
        all: LogSum::EMPTY,
        edge: LogSum::EMPTY,
        rim: LogSum::EMPTY,
    };

    fn edge_share(&self) -> f64 {
        self.all.share(&self.edge)
    }

    fn rim_share(&self) -> f64 {
        self.all.share(&self.rim)
    }
}

impl Quadrature<'_> {
    /// Grows the domain and each data point's reach until nothing is cut off. Returns the integrals on the coarsest
    /// grid that resolves the decoder.
    fn integrate_far_enough(&mut self) -> anyhow::Result<Vec<Sums>> {
        let everybody = 0..self.data.len() as u32;
        let mut sums = vec![Sums::EMPTY; self.data.len()];
        let mut pending: Vec<u32> = everybody.clone().collect();
        while !pending.is_empty() {
            pending
                .iter()
                .for_each(|point| sums[*point as usize] = Sums::EMPTY);
            self.integrate(&self.resolved_patches(&pending)?, &mut sums)?;
            pending.retain(|point| sums[*point as usize].rim_share() > RIM_SHARE);
            if pending.is_empty() && self.half_width < LIMIT {
                let cut_off = |point: &u32| sums[*point as usize].edge_share() > EDGE_SHARE;
                pending = everybody.clone().filter(cut_off).collect();
                self.enlarge_domain(&pending);
            } else {
                self.enlarge_reach(&pending)?;
            }
        }
        Ok(sums)
    }

    fn enlarge_reach(&mut self, cut_off: &[u32]) -> anyhow::Result<()> {
        for point in cut_off {
            let reach = &mut self.reach[*point as usize];
            *reach *= 2.0;
            anyhow::ensure!(
                reach.is_finite(),
                "no latents with a finite energy lie at any distance from held-out point {point}"
            );
        }
        Ok(())
    }

    /// Doubles the domain for data points that were cut off; resets the reach that they had extended in vain.
    fn enlarge_domain(&mut self, cut_off: &[u32]) {
        if !cut_off.is_empty() {
            self.half_width *= 2.0;
        }
        for point in cut_off {
            self.reach[*point as usize] = REACH * self.subject.model.sigma;
        }
    }

    /// Halves the spacing until nothing changes.
    fn refine(&self, mut sums: Vec<Sums>) -> anyhow::Result<Evidence> {
        let everybody: Vec<u32> = (0..self.data.len() as u32).collect();
        let mut patches = self.resolved_patches(&everybody)?;
        let change = loop {
            patches = self.split(&patches)?;
            let mut finer = vec![Sums::EMPTY; self.data.len()];
            self.integrate(&patches, &mut finer)?;
            // The mean of the absolute changes: changes of opposite sign do not indicate convergence.
            let pairs = finer.iter().zip(&sums);
            let change = mean(pairs.map(|(new, old)| (new.all.value() - old.all.value()).abs()));
            sums = finer;
            if change < self.options.tolerance || !self.has_room_below(&patches) {
                break change;
            }
        };
        let cut_off = |sums: &Sums| nats_lost(sums.edge_share()) + nats_lost(sums.rim_share());
        Ok(Evidence {
            error: change + mean(sums.iter().map(cut_off)),
            unbounded: sums.iter().any(|sums| sums.edge_share() > EDGE_SHARE),
            log_values: sums.iter().map(|sums| sums.all.value()).collect(),
        })
    }

    /// The squares that contribute to `points`, small enough to resolve the decoder, if the limits allow it.
    fn resolved_patches(&self, points: &[u32]) -> anyhow::Result<Vec<Patch>> {
        let tiles = Square::tiles(self.half_width, TILES);
        let mut patches = self.look(tiles.iter().map(|tile| (*tile, points)))?;
        while mean_radius(&patches) > RESOLVED * self.subject.model.sigma {
            let finer = self.split(&patches)?;
            if !self.has_room_below(&finer) {
                break;
            }
            patches = finer;
        }
        Ok(patches)
    }

    fn split(&self, patches: &[Patch]) -> anyhow::Result<Vec<Patch>> {
        let quarters = patches.iter().flat_map(|patch| {
            let quarters = patch.square.quarters();
            quarters.map(|quarter| (quarter, &patch.seen_by[..]))
        });
        self.look(quarters)
    }

    /// Selects each square's data points from its candidates; drops squares without any.
    fn look<'c>(&self, squares: impl Iterator<Item = (Square, &'c [u32])>) -> anyhow::Result<Vec<Patch>> {
        let all: Vec<_> = squares.collect();
        let mut patches = Vec::new();
        for some in all.chunks(AT_A_TIME) {
            let squares: Vec<_> = some.iter().map(|(square, _)| *square).collect();
            let images = self.images(&squares)?;
            for ((square, candidates), image) in some.iter().zip(images.as_chunks::<POINTS>().0) {
                let patch = self.patch(*square, image, candidates);
                if !patch.seen_by.is_empty() {
                    patches.push(patch);
                }
            }
        }
        Ok(patches)
    }

    fn patch(&self, square: Square, image: &[[f64; 2]; POINTS], candidates: &[u32]) -> Patch {
        let center = [0, 1].map(|d| image.iter().map(|point| point[d]).sum::<f64>() / POINTS as f64);
        let inner = image
            .iter()
            .map(|point| distance(*point, center))
            .fold(0.0, f64::max);
        // The outermost points are half a spacing away from the border of the square.
        let radius = inner * ROW as f64 / (ROW as f64 - 1.0);
        let sees = |point: &u32| {
            let far = distance(self.data[*point as usize], center);
            far <= self.reach[*point as usize] + radius
        };
        Patch {
            square,
            radius,
            seen_by: candidates.iter().copied().filter(sees).collect(),
        }
    }

    /// Adds the contributions of all squares.
    fn integrate(&self, patches: &[Patch], sums: &mut [Sums]) -> anyhow::Result<()> {
        let Subject { model, device, .. } = self.subject;
        for some in patches.chunks(AT_A_TIME) {
            let squares: Vec<_> = some.iter().map(|patch| patch.square).collect();
            let energies = evaluate(&squares, *device, |x| model.energy.energy(x))?;
            let images = self.images(&squares)?;
            let values = energies.as_chunks().0.iter().zip(images.as_chunks().0);
            for (patch, (energies, images)) in some.iter().zip(values) {
                self.add(patch, energies, images, sums);
            }
        }
        Ok(())
    }

    /// Adds one square's contribution to the integrals of the data points that see it.
    fn add(&self, patch: &Patch, energies: &[f64; POINTS], images: &[[f64; 2]; POINTS], sums: &mut [Sums]) {
        let precision = 0.5 / self.subject.model.sigma.powi(2);
        let log_area = patch.square.log_area();
        let at_edge = patch.square.at_edge(self.half_width);
        for point in patch.seen_by.iter().map(|point| *point as usize) {
            let [y0, y1] = self.data[point];
            let squares = images.map(|[g0, g1]| (y0 - g0) * (y0 - g0) + (y1 - g1) * (y1 - g1));
            let mut exponents = squares.map(|square| -precision * square);
            exponents
                .iter_mut()
                .zip(energies)
                .for_each(|(exponent, energy)| *exponent -= energy);
            let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sums = &mut sums[point];
            if largest == f64::NEG_INFINITY || sums.all.dwarfs(largest + log_area) {
                continue;
            }
            let rim_from = (RIM * self.reach[point]).powi(2);
            let (mut all, mut rim) = (0.0, 0.0);
            for (exponent, square) in exponents.iter().zip(&squares) {
                let term = (exponent - largest).exp();
                all += term;
                rim += if *square > rim_from { term } else { 0.0 };
            }
            let value = |sum: f64| log_area + largest + sum.ln();
            sums.all.add(value(all));
            sums.rim.add(value(rim));
            if at_edge {
                sums.edge.add(value(all));
            }
        }
    }

    fn images(&self, squares: &[Square]) -> anyhow::Result<Vec<[f64; 2]>> {
        let generator = &self.subject.model.generator;
        let values = evaluate(squares, self.subject.device, |x| generator.generate(x))?;
        Ok(values.as_chunks().0.to_vec())
    }

    /// Whether a grid of half the spacing would stay within the limits.
    fn has_room_below(&self, patches: &[Patch]) -> bool {
        let sights: usize = patches.iter().map(|patch| patch.seen_by.len()).sum();
        4 * POINTS * patches.len() <= self.options.grid_points && 4 * POINTS * sights <= MOST_TERMS
    }
}

/// Mean radius of the images, weighted by the number of data points that see them.
fn mean_radius(patches: &[Patch]) -> f64 {
    let sights: usize = patches.iter().map(|patch| patch.seen_by.len()).sum();
    let sum: f64 = patches
        .iter()
        .map(|patch| patch.radius * patch.seen_by.len() as f64)
        .sum();
    sum / sights as f64
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}
