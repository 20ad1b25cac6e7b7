//! The data sets that come with the runner. Each file registers the data sets it defines.

mod blobs;
mod cache;
mod cached;
mod celeba;
mod celeba_hq;
mod cifar10;
mod circle;
mod curve_density;
mod fashion_mnist;
mod formats;
mod gather;
mod gaussian;
mod half_moons;
mod hdf5_array;
mod held_out;
mod image_folder;
mod images;
mod in_memory;
mod mnist;
mod npy_array;
mod planar;
mod subset;
mod svhn;
mod swiss_roll;
#[cfg(test)]
mod testing;
