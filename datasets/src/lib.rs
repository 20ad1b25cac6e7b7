//! The data sets that come with the runner. Each file registers what it defines.

mod blobs;
mod circle;
mod curve_density;
mod gaussian;
mod half_moons;
mod in_memory;
mod planar;
mod swiss_roll;
