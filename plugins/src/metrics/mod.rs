//! Metrics.

mod chain_lengths;
mod log_likelihood;
mod mmd;
mod sliced_w2;
