//! What plugins and the runner need of the machine they run on.

mod cache_folder;
pub mod device;
pub mod disk;
pub mod files;
pub mod interrupt;
pub mod memory;
pub mod panics;
pub mod task;

pub use cache_folder::cache_folder;
pub use disk::reserve;
pub use files::write_whole;
pub use interrupt::interruption_point;
pub use memory::require_memory;
pub use task::Task;
