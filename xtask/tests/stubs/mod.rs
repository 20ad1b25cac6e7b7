//! Stub scripts in place of programs, which concurrent tests can safely write and run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// A child briefly inherits the file that another test is writing, and during that time
/// Linux refuses to run that file. So no child is started while another test writes a stub.
static TURN: Mutex<()> = Mutex::new(());

pub fn write(path: &Path, script: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Another file than the one that may be running.
    let _ = fs::remove_file(path);
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn spawn(command: &mut Command) -> Child {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn output(command: &mut Command) -> Output {
    spawn(command).wait_with_output().unwrap()
}
