//! The data sets that come with the runner. Each file registers what it defines.

mod in_memory;
mod swiss_roll;
