//! Takes space on a disk before it is written to.

use std::fs::File;
use std::io::{self, Read};

use anyhow::ensure;
use indicatif::BinaryBytes;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

/// Takes the space at once: when a disk is found full by writing to mapped memory, the program dies of SIGBUS.
pub fn reserve(mut file: &File, bytes: u64) -> anyhow::Result<()> {
    let free = free(file)?;
    // The call below would fill the disk to the brim before it fails.
    ensure!(bytes <= free, "only {} are free there", BinaryBytes(free));
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) => {
            io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
        }
        reserved => reserved?,
    }
    Ok(())
}

/// Bytes that are free on the disk of a file.
pub fn free(file: &File) -> io::Result<u64> {
    let disk = fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
