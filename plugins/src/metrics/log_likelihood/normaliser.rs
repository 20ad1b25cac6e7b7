//! The integral of exp(−U) over the latent plane.

use ebipla_core::prelude::*;

use super::LogLikelihood;
use super::grid::{AT_A_TIME, EDGE_SHARE, LIMIT, POINTS, START, Square, evaluate, nats_lost};
use super::log_sum::LogSum;

/// log ∫exp(−U(x)) dx.
pub struct Normaliser {
    pub log_value: f64,
    /// Bound on its error. [nats]
    pub error: f64,
    /// Half-width of the domain that contains the mass.
    pub half_width: f64,
    /// Whether there is mass at the edge of the largest domain.
    pub unbounded: bool,
}

/// Squares per row of the initial domain: 256 points across.
const TILES: usize = 32;

/// Squares that together hold less than this share are not refined.
const DROPPED_SHARE: f64 = 1e-7;

impl Normaliser {
    pub fn integrate(subject: &Subject, options: &LogLikelihood) -> anyhow::Result<Self> {
        let mut half_width = START;
        let mut masses = Masses::of(Square::tiles(half_width, TILES), subject)?;
        while masses.edge_share(half_width) > EDGE_SHARE && half_width < LIMIT {
            half_width *= 2.0;
            masses = Masses::of(Square::tiles(half_width, TILES), subject)?;
        }

        let mut dropped = 0.0;
        let change = loop {
            dropped += masses.drop_lightest();
            let quarters = masses.squares().flat_map(Square::quarters).collect();
            let finer = Masses::of(quarters, subject)?;
            let change = (finer.log_total() - masses.log_total()).abs();
            masses = finer;
            if change < options.tolerance || masses.points() * 4 > options.grid_points {
                break change;
            }
        };
        let edge_share = masses.edge_share(half_width);
        Ok(Self {
            log_value: masses.log_total(),
            error: change + dropped + nats_lost(edge_share),
            half_width,
            unbounded: edge_share > EDGE_SHARE,
        })
    }
}

/// Squares of one size with the logarithm of the integral over each.
struct Masses {
    squares: Vec<(Square, f64)>,
    total: LogSum,
}

impl Masses {
    fn of(squares: Vec<Square>, subject: &Subject) -> anyhow::Result<Self> {
        let mut masses = Vec::with_capacity(squares.len());
        for some in squares.chunks(AT_A_TIME) {
            let energies = evaluate(some, subject.device, |x| subject.model.energy.energy(x))?;
            let (energies, _) = energies.as_chunks::<POINTS>();
            masses.extend(some.iter().zip(energies).map(|(square, energies)| {
                let sum: LogSum = energies.iter().map(|energy| -energy).collect();
                (*square, sum.value() + square.log_area())
            }));
        }
        let total: LogSum = masses.iter().map(|(_, mass)| *mass).collect();
        anyhow::ensure!(
            total.value().is_finite(),
            "the energy is infinite at all latents, so the model has no likelihood"
        );
        Ok(Self {
            squares: masses,
            total,
        })
    }

    fn log_total(&self) -> f64 {
        self.total.value()
    }

    fn squares(&self) -> impl Iterator<Item = Square> {
        self.squares.iter().map(|(square, _)| *square)
    }

    fn points(&self) -> usize {
        self.squares.len() * POINTS
    }

    fn edge_share(&self, half_width: f64) -> f64 {
        let edge = self
            .squares
            .iter()
            .filter(|(square, _)| square.at_edge(half_width));
        self.total.share(&edge.map(|(_, mass)| *mass).collect())
    }

    /// Drops the lightest squares, and returns their share.
    fn drop_lightest(&mut self) -> f64 {
        let log_total = self.log_total();
        self.squares.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let mut share = 0.0;
        let mut light = 0;
        for (_, mass) in &self.squares {
            let with_this = share + (mass - log_total).exp();
            if with_this > DROPPED_SHARE {
                break;
            }
            share = with_this;
            light += 1;
        }
        self.squares.drain(..light);
        share
    }
}
