//! Prior energies.

mod mlp;
mod quadratic;
