//! File formats, read as streams: memory does not grow with the size that a file declares.

pub mod idx;
pub mod mat;
pub mod npy;
mod stream;
