//! Metrics.

mod chain_lengths;
mod frechet;
mod image_features;
mod log_likelihood;
mod mmd;
mod mse;
mod parameter_error;
mod precision_recall;
mod sliced_w2;
#[cfg(test)]
mod testing;
