//! `runner bench`: how fast this machine computes, as ratios within one run.
//!
//! Seconds on a machine that does other things as well mean little. So whatever is compared is measured in turn, and held
//! against matrix products of libtorch that are measured on the spot.

mod cases;
mod chains;
mod growth;
mod peers;
mod products;
mod records;
mod steps;
mod stopwatch;
mod table;

use clap::ValueEnum;

pub use cases::Settings;
pub use peers::Peers;
pub use table::Table;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Prior chains: engines against each other and against matrix products
    Chains,
    /// Training steps on images: EBIPLA, LEBM, and the machine's limit
    Steps,
    /// How the cost of a step grows with M, N, J and the batch
    Growth,
    /// Starting up, and keeping records
    Records,
}

/// Measures one part.
pub fn measure(part: Part, settings: &Settings, peers: Option<&Peers>) -> anyhow::Result<Vec<Table>> {
    match part {
        Part::Chains => chains::measure(settings, peers),
        Part::Steps => steps::measure(settings, peers),
        Part::Growth => growth::measure(settings),
        Part::Records => records::measure(settings),
    }
}
