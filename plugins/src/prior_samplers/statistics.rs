//! The statistics that every sampler returns.

use ebipla_core::prelude::*;
use tch::Kind;

/// Means over the chains: final energy, norm of the last gradient, and distance from start to end.
pub fn statistics(start: &Tensor, last: &Tensor, energy: &Tensor, gradient: &Tensor) -> Scalars {
    let mean_norm = |rows: &Tensor| rows.norm_scalaropt_dim(2.0, 1, false).mean(Kind::Float);
    let mut statistics = Scalars::new();
    statistics.add("energy", &energy.mean(Kind::Float));
    statistics.add("gradient_norm", &mean_norm(gradient));
    statistics.add("displacement", &mean_norm(&(last - start)));
    statistics
}
