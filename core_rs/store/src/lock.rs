//! One process a directory: an exclusive lock on a file that says who holds it.

use std::fs::TryLockError;
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::StoreError;

/// Name of the lock file. Its content is `PID ADDRESS`.
const FILE: &str = "LOCK";

/// Held while the value lives; the operating system lets go when the process ends in any way.
pub(crate) struct DirectoryLock {
    _file: std::fs::File,
}

impl DirectoryLock {
    pub(crate) fn take(directory: &Path, address: &str) -> Result<Self, StoreError> {
        let file = fs_err::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join(FILE))
            .map_err(StoreError::io)?;
        let mut file = file.into_parts().0;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Unreadable content only makes the message poorer.
                let _ = file.read_to_string(&mut holder);
                let (pid, address) = holder.trim().split_once(' ').unwrap_or((holder.trim(), ""));
                return Err(StoreError::Locked {
                    path: directory.to_owned(),
                    pid: if pid.is_empty() {
                        "unknown".to_owned()
                    } else {
                        pid.to_owned()
                    },
                    address: address.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(StoreError::io(source)),
        }
        let write = |file: &mut std::fs::File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{} {address}", std::process::id())
        };
        write(&mut file).map_err(StoreError::io)?;
        Ok(Self { _file: file })
    }
}
