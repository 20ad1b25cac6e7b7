//! Images: finds, decodes and resizes them.

pub mod decode;
pub mod files;
pub mod fill;
