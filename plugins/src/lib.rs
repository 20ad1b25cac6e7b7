//! The algorithms, prior samplers, networks, metrics and recipes that come with the runner.
//!
//! No plugin is called by name: each file registers the plugins it defines, and recipes choose among them.

mod activation;
mod algorithms;
mod energies;
mod generators;
mod kinetic;
mod linear_layer;
mod metrics;
mod prior_samplers;
mod recipes;
