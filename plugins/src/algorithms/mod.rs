//! Training algorithms.

mod ebipla;
