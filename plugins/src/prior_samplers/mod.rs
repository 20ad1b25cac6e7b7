//! Prior samplers.

mod ula;
