//! Prior energies.

pub mod mlp;
mod quadratic;
