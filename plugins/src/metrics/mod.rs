//! Metrics.

mod chain_lengths;
mod mmd;
mod sliced_w2;
