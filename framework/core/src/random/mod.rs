//! Random numbers: named streams, the counter-based generator behind them, and the data points that they belong to.

mod indices;
pub(crate) mod philox;
mod streams;

pub use indices::Indices;
pub use streams::{Draws, Random};
pub(crate) use streams::{empty, numbers_of};
