//! Generators.

mod linear;
