//! Generators.

pub mod conv_decoder;
pub mod identity;
pub mod linear;
