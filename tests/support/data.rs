//! Writes tiny files in the formats of data sets that read files: 45 points, of which a set may hold out a tenth.

use std::fs;
use std::path::Path;

use image::{ImageBuffer, Rgb};

const COUNT: usize = 45;

/// Fills the folder of the data set `name` with its files.
pub fn write(folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    let labels: Vec<u8> = (0..COUNT).map(|i| (i % 10) as u8).collect();
    match name {
        "svhn" => {
            for split in ["train", "test"] {
                fs::write(folder.join(format!("{split}_32x32.mat")), svhn(&labels)).unwrap();
            }
        }
        "cifar10" => {
            let records: Vec<_> = labels
                .iter()
                .flat_map(|label| [&[*label][..], &bytes(3072)].concat())
                .collect();
            for batch in ["data_batch_1", "test_batch"] {
                fs::write(folder.join(format!("{batch}.bin")), &records).unwrap();
            }
        }
        "mnist" | "fashion_mnist" => {
            for split in ["train", "t10k"] {
                let images = idx(&[COUNT as u32, 28, 28], &bytes(COUNT * 784));
                fs::write(folder.join(format!("{split}-images-idx3-ubyte")), images).unwrap();
                let labels = idx(&[COUNT as u32], &labels);
                fs::write(folder.join(format!("{split}-labels-idx1-ubyte")), labels).unwrap();
            }
        }
        "celeba" => {
            pictures(&folder.join("img_align_celeba"), 178, 218);
            let line = |i| format!("{i}.png {}\n", usize::from(i >= 40));
            let partition: String = (0..COUNT).map(line).collect();
            fs::write(folder.join("list_eval_partition.txt"), partition).unwrap();
        }
        "celeba_hq" => pictures(folder, 256, 256),
        "image_folder" => pictures(&folder.join("inner"), 40, 30),
        "npy" => {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({COUNT}, 2), }}");
            let header = format!("{header:<117}\n");
            let values: Vec<_> = points().into_iter().flat_map(f32::to_le_bytes).collect();
            let file = [&b"\x93NUMPY\x01\0\x76\0"[..], header.as_bytes(), &values].concat();
            fs::write(folder.join("train.npy"), file).unwrap();
        }
        "hdf5" => {
            let file = hdf5::File::create(folder.join("data.h5")).unwrap();
            let array = file
                .new_dataset::<f32>()
                .shape((COUNT, 2))
                .create("train")
                .unwrap();
            array.write_raw(&points()).unwrap();
        }
        other => panic!("tests/support/data.rs does not know what files `{other}` reads"),
    }
}

/// Pseudo-random bytes.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 89 % 251) as u8).collect()
}

/// Points of the plane.
fn points() -> Vec<f32> {
    (0..2 * COUNT)
        .map(|i| (i * 37 % 64) as f32 / 32.0 - 1.0)
        .collect()
}

fn pictures(folder: &Path, width: u32, height: u32) {
    fs::create_dir_all(folder).unwrap();
    for i in 0..COUNT {
        let picture = ImageBuffer::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 5 * i as u8]));
        picture.save(folder.join(format!("{i}.png"))).unwrap();
    }
}

fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, sizes.len() as u8];
    file.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    file.extend(data);
    file
}

/// An uncompressed MATLAB file with images `X` and labels `y`.
fn svhn(labels: &[u8]) -> Vec<u8> {
    let mut file = vec![b' '; 124];
    file.extend([0, 1, b'I', b'M']);
    let count = labels.len() as i32;
    file.extend(matrix(b'X', &[32, 32, 3, count], &bytes(3072 * labels.len())));
    file.extend(matrix(b'y', &[count, 1], labels));
    file
}

fn matrix(name: u8, sizes: &[i32], data: &[u8]) -> Vec<u8> {
    let element = |kind: u32, data: &[u8]| {
        let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let sizes: Vec<_> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
    let parts = [
        element(6, &[9, 0, 0, 0, 0, 0, 0, 0]),
        element(5, &sizes),
        element(1, &[name]),
        element(2, data),
    ];
    element(14, &parts.concat())
}
