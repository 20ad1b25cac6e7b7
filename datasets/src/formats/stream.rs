//! Helpers for reading untrusted streams.

use std::io::{self, ErrorKind, Read};

/// No deflate stream yields more bytes per compressed byte.
const MOST_DEFLATED: u64 = 1032;

/// Whether `compressed` bytes can hold `bytes`.
pub fn can_hold(compressed: u64, bytes: u64) -> bool {
    bytes <= compressed.saturating_mul(MOST_DEFLATED)
}

/// Reads the next `N` bytes.
pub fn take<const N: usize>(reader: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads the next `count` bytes; memory grows with the data read, not with `count`.
pub fn take_vec(reader: &mut dyn Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == count {
        true => Ok(bytes),
        false => Err(io::Error::new(
            ErrorKind::UnexpectedEof,
            format!("ends after {} of {count} bytes", bytes.len()),
        )),
    }
}
