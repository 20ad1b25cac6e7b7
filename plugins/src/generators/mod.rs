//! Generators.

mod identity;
mod linear;
