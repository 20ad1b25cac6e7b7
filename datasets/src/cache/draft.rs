//! Writes a cache: points may arrive in any order and from several threads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail, ensure};
use ebipla_core::{interruption_point, reserve};
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};

use super::header::{HEADER, encode};
use super::{Element, Layout};

/// A cache to be written.
pub struct Draft<'a> {
    path: &'a Path,
    key: [u8; 32],
    name: &'a str,
}

impl<'a> Draft<'a> {
    pub(super) fn new(path: &'a Path, key: [u8; 32], name: &'a str) -> Self {
        Self { path, key, name }
    }

    /// Reserves the space for all points.
    pub fn begin(&self, layout: Layout) -> anyhow::Result<Writer> {
        let (labels, end) = layout.ends()?;
        let file = File::create(self.path)?;
        reserve(&file, end).with_context(|| {
            format!(
                "{} points take {}; set EBIPLA_CACHE to a folder on another disk",
                layout.count,
                BinaryBytes(end)
            )
        })?;
        let style = "{prefix} {wide_bar:.cyan/dim} {pos}/{len}  {per_sec}  ETA {eta}";
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(layout.count as u64).with_style(style);
        Ok(Writer {
            file,
            labels,
            written: AtomicUsize::new(0),
            bar: bar.with_prefix(self.name.to_owned()),
            key: self.key,
            layout,
        })
    }
}

/// Numbers that are not finite would make the run diverge as if the step size were wrong.
fn ensure_finite(first: usize, points: &[u8], point_bytes: usize) -> anyhow::Result<()> {
    let (numbers, _) = points.as_chunks::<4>();
    let finite = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes).is_finite();
    if let Some(i) = numbers.iter().position(|bytes| !finite(bytes)) {
        bail!(
            "row {} (counted from 0) has the number {}, expected finite numbers: remove or replace the row",
            first + 4 * i / point_bytes,
            f32::from_le_bytes(numbers[i])
        );
    }
    Ok(())
}

/// Receives the points of a cache.
pub struct Writer {
    file: File,
    layout: Layout,
    key: [u8; 32],
    /// Offset of the labels.
    labels: u64,
    written: AtomicUsize,
    /// Hidden if there is no terminal.
    bar: ProgressBar,
}

impl Writer {
    /// Writes consecutive complete points, the first of which is number `first`.
    pub fn put(&self, first: usize, points: &[u8]) -> anyhow::Result<()> {
        interruption_point();
        let size = self.layout.point_bytes();
        let count = points.len() / size;
        ensure!(
            points.len() == count * size && first + count <= self.layout.count,
            "{} bytes at point {first} do not fit into {:?}",
            points.len(),
            self.layout
        );
        if self.layout.element == Element::F32 {
            ensure_finite(first, points, size)?;
        }
        let at = HEADER as u64 + first as u64 * size as u64;
        self.file.write_all_at(points, at)?;
        self.written.fetch_add(count, Ordering::Relaxed);
        self.bar.inc(count as u64);
        Ok(())
    }

    /// Writes the labels of consecutive points, the first of which is number `first`.
    pub fn put_labels(&self, first: usize, labels: &[u8]) -> anyhow::Result<()> {
        ensure!(
            self.layout.labelled && first + labels.len() <= self.layout.count,
            "{} labels at point {first} do not fit into {:?}",
            labels.len(),
            self.layout
        );
        Ok(self.file.write_all_at(labels, self.labels + first as u64)?)
    }

    /// Marks the cache as complete.
    pub fn finish(self) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        let (written, count) = (self.written.into_inner(), self.layout.count);
        ensure!(written == count, "{written} of {count} points were written");
        self.file.write_all_at(&encode(&self.layout, self.key), 0)?;
        Ok(())
    }
}
