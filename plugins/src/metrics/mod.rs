//! Metrics.

mod sliced_w2;
