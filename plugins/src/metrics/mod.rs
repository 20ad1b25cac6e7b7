//! Metrics.

mod parameter_error;
mod sliced_w2;
