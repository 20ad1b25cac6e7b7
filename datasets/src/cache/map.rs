//! Reads a cache through a memory map: unused parts take no memory.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use super::header::{HEADER, decode};
use super::identity::Identity;
use super::{Element, Layout};

/// Points, and perhaps their labels, in a file.
pub struct Cache {
    layout: Layout,
    map: Mmap,
    /// Offset of the labels.
    labels: usize,
    /// Identity of the files it was made from.
    identity: Identity,
}

impl Cache {
    /// `None` if the file is missing, incomplete, or made for another key.
    #[allow(unsafe_code)]
    pub(super) fn open(path: &Path, key: [u8; 32], identity: Identity) -> Option<Self> {
        let file = File::open(path).ok()?;
        // Safety: caches are written under a temporary name and never change once they have their final one; a new
        // cache takes over the name, not the file.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        let layout = decode(map.get(..HEADER)?, key)?;
        let (labels, end) = layout.ends().ok()?;
        (map.len() as u64 == end).then_some(Self {
            labels: labels as usize,
            layout,
            map,
            identity,
        })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A hash of the contents of the files it was made from, in hexadecimal digits.
    pub fn identity(&self) -> String {
        blake3::Hash::from(self.identity).to_hex().to_string()
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.layout.count
    }

    /// Writes point number `i` into `values`.
    pub fn read(&self, i: usize, values: &mut [f32]) {
        let size = self.layout.point_bytes();
        let start = HEADER + i * size;
        let bytes = &self.map[start..start + size];
        match self.layout.element {
            Element::U8 => {
                for (value, byte) in values.iter_mut().zip(bytes) {
                    *value = f32::from(*byte) / 127.5 - 1.0;
                }
            }
            Element::F32 => {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
        }
    }

    /// The label of every point.
    pub fn labels(&self) -> Option<&[u8]> {
        self.layout.labelled.then(|| &self.map[self.labels..])
    }
}
