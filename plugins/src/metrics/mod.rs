//! Metrics.

mod chain_lengths;
mod sliced_w2;
