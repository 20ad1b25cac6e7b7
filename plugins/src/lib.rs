//! The algorithms, prior samplers, networks and metrics that come with the runner, and its recipes.
//!
//! Nothing here is called by name: each file registers what it defines, and recipes choose.

mod activation;
mod algorithms;
mod energies;
mod generators;
mod kinetic;
mod linear_layer;
mod metrics;
mod prior_samplers;
mod recipes;
