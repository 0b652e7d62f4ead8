//! A file read through a memory map, for model weights: ready in a millisecond, one copy for all processes.
//!
//! It never writes, and never copies the file.

use std::{fs::File, io, path::Path};

use memmap2::Mmap;

/// A whole file, mapped read-only.
///
/// The file must be replaced (written aside and renamed) rather than changed in place: bytes changed under the map
/// change here too, and reading past a truncated end stops the process (`SIGBUS`).
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`. A file of length zero gives an empty slice.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        #[expect(
            unsafe_code,
            reason = "mapping a file that others could change is unsafe by definition"
        )]
        // SAFETY: the map is private and read-only, and every file opened here (weights in the package, graph files
        // in the data directory, which one process owns) is only ever replaced by a rename, which leaves the mapped
        // one whole. Its bytes are used as plain bytes: a change would give wrong numbers, not invalid values.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { map })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::{fs, thread};

    use super::*;

    #[test]
    fn gives_the_bytes_of_the_file_to_every_thread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        fs::write(&path, b"sixteen megabyte").unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(mapped.as_ref(), b"sixteen megabyte"));
        });
    }

    #[test]
    fn a_replaced_file_leaves_the_map_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, next) = (folder.path().join("weights"), folder.path().join("next"));
        fs::write(&path, b"old").unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        fs::write(&next, b"").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_eq!(mapped.as_ref(), b"old");
        assert_eq!(MappedFile::open(&path).unwrap().as_ref(), b"");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = MappedFile::open(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
