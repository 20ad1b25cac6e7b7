//! Prior energies.

pub mod mlp;
pub mod quadratic;
