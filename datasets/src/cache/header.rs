//! The header of a cache file: its layout and its key.

use anyhow::{Context, ensure};

/// Bytes before the first point; a multiple of every alignment.
pub const HEADER: usize = 256;

const MAGIC: [u8; 8] = *b"EBIPLA\0C";
/// Incremented when the format changes.
const VERSION: u32 = 1;
const MOST_DIMENSIONS: usize = 8;

/// Type of a point's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Bytes, which represent [−1, 1].
    U8,
    /// Numbers, used as they are.
    F32,
}

impl Element {
    /// Size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F32 => 4,
        }
    }
}

/// Number, shape and type of a cache's points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub element: Element,
    /// Shape of one point.
    pub shape: Vec<usize>,
    /// Number of points.
    pub count: usize,
    /// Whether each point has a label.
    pub labelled: bool,
}

impl Layout {
    /// Bytes per point.
    pub fn point_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.bytes()
    }

    /// Offset of the labels, and length of the file.
    pub fn ends(&self) -> anyhow::Result<(u64, u64)> {
        let shape = &self.shape;
        ensure!(
            shape.len() <= MOST_DIMENSIONS,
            "points of {} dimensions, expected at most {MOST_DIMENSIONS}",
            shape.len()
        );
        ensure!(!shape.contains(&0), "points of the shape {shape:?} are empty");
        let sizes = shape.iter().chain([&self.count]);
        // Half the range of the counter leaves room for header and labels.
        let bytes = sizes
            .map(|size| *size as u64)
            .try_fold(self.element.bytes() as u64, u64::checked_mul)
            .filter(|bytes| *bytes < (isize::MAX / 2) as u64)
            .with_context(|| format!("{} points of the shape {shape:?} are too many", self.count))?;
        let labels = HEADER as u64 + bytes;
        let end = labels + if self.labelled { self.count as u64 } else { 0 };
        Ok((labels, end))
    }
}

/// Encodes a layout and the key of the cache's source.
pub fn encode(layout: &Layout, key: [u8; 32]) -> [u8; HEADER] {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((layout.element.bytes() as u32).to_le_bytes());
    bytes.extend(u32::from(layout.labelled).to_le_bytes());
    bytes.extend((layout.shape.len() as u32).to_le_bytes());
    bytes.extend((layout.count as u64).to_le_bytes());
    for size in &layout.shape {
        bytes.extend((*size as u64).to_le_bytes());
    }
    let mut header = [0; HEADER];
    header[..bytes.len()].copy_from_slice(&bytes);
    header[HEADER - key.len()..].copy_from_slice(&key);
    header
}

/// The layout in a header, if it is a header of this version with this key.
pub fn decode(header: &[u8], key: [u8; 32]) -> Option<Layout> {
    let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let size = |at: usize| usize::try_from(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?)).ok();
    let ours = header.get(..8)? == MAGIC && number(8)? == VERSION;
    if !ours || header.get(HEADER - key.len()..HEADER)? != key {
        return None;
    }
    let element = match number(12)? {
        1 => Element::U8,
        4 => Element::F32,
        _ => return None,
    };
    let dimensions = (number(20)? as usize).min(MOST_DIMENSIONS);
    Some(Layout {
        element,
        labelled: number(16)? == 1,
        count: size(24)?,
        shape: (0..dimensions).map(|i| size(32 + 8 * i)).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            element: Element::F32,
            shape: vec![3, 5, 7],
            count: 11,
            labelled: true,
        }
    }

    #[test]
    fn a_header_survives_a_round_trip() {
        let header = encode(&layout(), [7; 32]);
        assert_eq!(decode(&header, [7; 32]), Some(layout()));
        assert_eq!(decode(&header, [8; 32]), None, "another key");
        assert_eq!(decode(&header[..HEADER - 1], [7; 32]), None);
        let mut newer = header;
        newer[8] += 1;
        assert_eq!(decode(&newer, [7; 32]), None, "another version");
    }

    #[test]
    fn refuses_sizes_that_overflow() {
        assert_eq!(
            layout().ends().ok(),
            Some((256 + 105 * 4 * 11, 256 + 105 * 4 * 11 + 11))
        );
        for (shape, word) in [
            (vec![usize::MAX, 2], "too many"),
            (vec![1 << 62], "too many"),
            (vec![3, 0], "empty"),
            (vec![1; 9], "9 dimensions"),
        ] {
            let error = Layout { shape, ..layout() }
                .ends()
                .map_err(|error| error.to_string());
            assert!(
                error.as_ref().is_err_and(|error| error.contains(word)),
                "{error:?}"
            );
        }
    }
}
