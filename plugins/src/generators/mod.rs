//! Generators.

mod identity;
pub mod linear;
