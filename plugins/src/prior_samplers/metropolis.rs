//! The accept-or-reject step that MALA and HMC share.

use ebipla_core::prelude::*;
use tch::{Device, Kind};

/// Chains with the energy and gradient at their positions.
pub struct State {
    pub x: Tensor,
    pub energy: Tensor,
    pub gradient: Tensor,
}

impl State {
    pub fn at(energy: &dyn Energy, x: Tensor) -> Self {
        let (value, gradient) = energy.value_and_gradient(&x);
        Self {
            x,
            energy: value,
            gradient,
        }
    }
}

/// Accepts or rejects proposals, and counts them.
pub struct Metropolis {
    accepted: Tensor,
    proposals: u32,
}

impl Metropolis {
    pub fn new(device: Device) -> Self {
        Self {
            accepted: Tensor::zeros([], (Kind::Float, device)),
            proposals: 0,
        }
    }

    /// Moves each chain to its proposal with probability min(1, exp(log_ratio)).
    ///
    /// A ratio that is not a number, for instance after an overflow of the energy, rejects.
    pub fn step(&mut self, current: State, proposal: State, log_ratio: &Tensor, draws: &mut Draws) -> State {
        let uniform = draws.uniform(0.0, 1.0, &log_ratio.size(), log_ratio.device());
        let accept = uniform.log().less_tensor(log_ratio);
        let rows = accept.unsqueeze(1);
        self.accepted += accept.to_kind(Kind::Float).mean(Kind::Float);
        self.proposals += 1;
        State {
            x: proposal.x.where_self(&rows, &current.x),
            energy: proposal.energy.where_self(&accept, &current.energy),
            gradient: proposal.gradient.where_self(&rows, &current.gradient),
        }
    }

    /// Share of accepted proposals.
    pub fn acceptance(&self) -> Tensor {
        &self.accepted / f64::from(self.proposals.max(1))
    }
}

/// ‖row‖² of each row.
pub fn squared_norm(rows: &Tensor) -> Tensor {
    rows.square().sum_dim_intlist(1, false, rows.kind())
}
