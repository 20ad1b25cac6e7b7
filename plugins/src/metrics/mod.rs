//! Metrics.

mod chain_lengths;
mod log_likelihood;
mod mmd;
mod parameter_error;
mod sliced_w2;
