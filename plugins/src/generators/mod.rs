//! Generators.

pub mod identity;
pub mod linear;
