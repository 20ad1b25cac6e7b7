//! Names the kinds of things that can be swapped in a recipe.

use std::fmt;

use serde::Serialize;

use crate::{Algorithm, Dataset, Energy, Generator, Metric, PriorSampler};

/// A kind of plugin; also the name of its section in a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Algorithm,
    PriorSampler,
    Energy,
    Generator,
    Dataset,
    Metric,
}

impl Kind {
    /// Every kind, in the order in which `runner list` prints them.
    pub const ALL: [Kind; 6] = [
        Kind::Algorithm,
        Kind::PriorSampler,
        Kind::Energy,
        Kind::Generator,
        Kind::Dataset,
        Kind::Metric,
    ];

    /// The name used in recipes and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Algorithm => "algorithm",
            Kind::PriorSampler => "prior_sampler",
            Kind::Energy => "energy",
            Kind::Generator => "generator",
            Kind::Dataset => "dataset",
            Kind::Metric => "metric",
        }
    }

    /// What `runner describe` says of every plugin of this kind.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Kind::Metric => Some(
                "Its random numbers depend on run.seed alone: all evaluations of a run, and `eval` afterwards, draw the same. \
                 Two evaluations differ by the model only, but the error that these numbers make is in all of them, and the \
                 checkpoint that record.checkpoint.best picks looks better than it is. Other seeds show how far a value may be \
                 off.",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A trait object that plugins of one kind build.
pub trait Product: 'static {
    /// The kind that builds it.
    const KIND: Kind;
}

impl Product for dyn Algorithm {
    const KIND: Kind = Kind::Algorithm;
}
impl Product for dyn PriorSampler {
    const KIND: Kind = Kind::PriorSampler;
}
impl Product for dyn Energy {
    const KIND: Kind = Kind::Energy;
}
impl Product for dyn Generator {
    const KIND: Kind = Kind::Generator;
}
impl Product for dyn Dataset {
    const KIND: Kind = Kind::Dataset;
}
impl Product for dyn Metric {
    const KIND: Kind = Kind::Metric;
}
