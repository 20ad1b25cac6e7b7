//! What the program asks of the system it runs on, besides what plugins share: memory and signals.

pub mod allocator;
pub mod interrupt;
