//! Prior energies.

mod mlp;
