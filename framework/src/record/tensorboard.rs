//! Sends numbers to TensorBoard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use tensorboard_proto::event::{Event, SessionLog, SessionLog_SessionStatus};
use tensorboard_rs::summary::scalar;
use tensorboard_rs::summary_writer::FileWriter;

use super::Moment;

/// The event file of one run, written by a thread of its own.
pub struct TensorBoard {
    /// Only absent while it is dropped.
    writer: Option<FileWriter>,
    folder: PathBuf,
}

impl TensorBoard {
    /// Starts an event file in `folder/tensorboard`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join("tensorboard");
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self {
            writer: Some(FileWriter::new(&folder)),
            folder,
        })
    }

    /// Tells TensorBoard that the run was taken up again after `done` steps: points of later steps are void.
    pub fn resumed(&mut self, done: u64) {
        let Some(writer) = &mut self.writer else { return };
        let mut session = SessionLog::new();
        session.set_status(SessionLog_SessionStatus::START);
        let mut event = Event::new();
        event.set_session_log(session);
        writer.add_event(&event, done as usize);
    }

    /// Adds a point to the curve of each number.
    pub fn write(&mut self, moment: Moment, numbers: &[(String, f64)]) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        // The library panics once its thread has failed to write.
        catch_unwind(AssertUnwindSafe(|| {
            for (name, number) in numbers {
                writer.add_summary(scalar(name, *number as f32), moment.step as usize);
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
