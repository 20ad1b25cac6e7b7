//! Pictures: finds them, decodes them and brings them to one size.

pub mod decode;
pub mod files;
pub mod fill;
