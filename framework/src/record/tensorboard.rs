//! Sends numbers to TensorBoard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use tensorboard_rs::summary_writer::SummaryWriter;

use super::Moment;

/// The event file of one run, written by a thread of its own.
pub struct TensorBoard {
    /// Only absent while it is dropped.
    writer: Option<SummaryWriter>,
    folder: PathBuf,
}

impl TensorBoard {
    /// Starts an event file in `folder/tensorboard`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join("tensorboard");
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self {
            writer: Some(SummaryWriter::new(&folder)),
            folder,
        })
    }

    /// Adds a point to the curve of each number.
    pub fn write(&mut self, moment: Moment, numbers: &[(String, f64)]) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        // The library panics once its thread has failed to write.
        catch_unwind(AssertUnwindSafe(|| {
            for (name, number) in numbers {
                writer.add_scalar(name, *number as f32, moment.step as usize);
            }
        }))
        .map_err(|_| anyhow!("cannot write to {}; is the disk full?", self.folder.display()))
    }
}

impl Drop for TensorBoard {
    fn drop(&mut self) {
        let writer = self.writer.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(writer)));
    }
}
