//! File formats, read as streams: memory does not grow with what a file claims to hold.

pub mod idx;
pub mod mat;
pub mod npy;
mod stream;
