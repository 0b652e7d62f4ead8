//! Approximate nearest neighbours in a large namespace: a safe wrapper of usearch's HNSW graph (Malkov and Yashunin,
//! "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small World graphs", 2016).
//!
//! The graph is a cache. The store holds the truth, so that a graph that is lost, damaged or old costs time and never
//! an answer: the owner compares the stamp of a loaded file with the store, scans what the graph does not have yet,
//! and orders the candidates by [`crate::scan::exact_cosine`]. It must never be the only place of a vector.
//!
//! **Distance.** The nodes are rows as the store has them, scale included, and usearch measures them with our kernel:
//! a neighbour's cosine is, bit for bit, what [`crate::scan::scan_block`] gives for the row. Requantising all rows to
//! one common scale would save four bytes a node, and would clip vectors that lean on few dimensions.
//!
//! **Threads.** usearch reads the adjacency lists of the base layer without a lock while it searches, and rewrites
//! them in place while it adds: a search beside an insertion meets emptied lists, and now and then a torn number of a
//! node that does not exist. Growing beside any other call crashes. Therefore searches share the index, and whatever
//! changes it has it alone, for the time of one change; the lock is handed over fairly, so that a search waits for at
//! most one insertion of each thread that adds, however busy they are. usearch fails when more threads search than it has contexts for,
//! so that a search beyond [`MAX_SEARCHES`] waits for a place.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    slice,
};

use parking_lot::{Condvar, Mutex, RwLock, RwLockWriteGuard};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind, ffi::Matches};

use crate::{
    Kernel, MappedFile, Query, VectorError,
    quantize::{MAX_DIMS, is_sound, row_bytes, split_row},
    scan::approximate_cosine,
};

/// Links of a node in the upper layers; twice as many in the base layer.
const CONNECTIVITY: usize = 16;
/// Candidates considered when a node is linked.
const EF_CONSTRUCTION: usize = 128;
/// Candidates kept by a search unless [`HnswIndex::set_ef_search`] says otherwise.
pub const DEFAULT_EF_SEARCH: usize = 256;
/// Searches that may be inside at a time; more wait.
pub const MAX_SEARCHES: usize = 64;
/// Nodes a new index has room for; the room doubles when it is full.
const INITIAL_CAPACITY: usize = 1024;
/// Memory of a node beside its links and its row: two pointers, and a cell of a hash table at most two thirds full.
const BYTES_PER_SLOT: usize = 40;
/// The key with which usearch marks removed nodes.
const REMOVED_KEY: u64 = u64::MAX;

/// One result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The key it was added with.
    pub key: u64,
    /// The approximate cosine with the query, as a scan of the row would give it.
    pub cosine: f32,
}

/// A graph over rows of one number of dimensions.
pub struct HnswIndex {
    dims: usize,
    graph: RwLock<Graph>,
    searches: Places,
    /// Held while a file is written: two saves at once would share the temporary file.
    saving: Mutex<()>,
}

struct Graph {
    native: Index,
    /// Removed nodes whose slots are free. They still lead searches through the graph.
    removed: usize,
}

impl HnswIndex {
    /// An empty index for vectors of `dims` dimensions.
    pub fn new(dims: usize) -> Result<Self, VectorError> {
        let mut native = new_native(dims)?;
        set_metric(&mut native, dims);
        Self::from_native(native, dims, 0)
    }

    fn from_native(native: Index, dims: usize, removed: usize) -> Result<Self, VectorError> {
        let capacity = (native.size() + removed)
            .next_power_of_two()
            .max(INITIAL_CAPACITY);
        native
            .reserve_capacity_and_threads(capacity, MAX_SEARCHES)
            .map_err(usearch_error)?;
        Ok(Self {
            dims,
            graph: RwLock::new(Graph { native, removed }),
            searches: Places::new(MAX_SEARCHES),
            saving: Mutex::new(()),
        })
    }

    /// Dimensions of the vectors.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Adds a row of the store under a key that is not in the index.
    ///
    /// Waits for the searches under way.
    pub fn add(&self, key: u64, row: &[u8]) -> Result<(), VectorError> {
        if row.len() != row_bytes(self.dims) {
            return Err(VectorError::WrongLength {
                expected: self.dims,
                actual: row.len().saturating_sub(row_bytes(0)),
            });
        }
        if !is_sound(row) {
            return Err(VectorError::NoVector);
        }
        if key == REMOVED_KEY {
            return Err(VectorError::ReservedKey(key));
        }
        self.change(|graph| graph.add(key, row))
    }

    /// Removes a key; whether it was there.
    ///
    /// The node keeps leading searches through the graph until an insertion takes its slot. When many are removed
    /// ([`HnswIndex::removed`]), searches get slower and the index should be built anew.
    pub fn remove(&self, key: u64) -> Result<bool, VectorError> {
        self.change(|graph| {
            let removed = graph.native.remove(key).map_err(usearch_error)?;
            graph.removed += removed;
            Ok(removed > 0)
        })
    }

    /// The `k` nearest rows, nearest first, equals by key. Approximate: it may miss some.
    pub fn search(&self, query: &Query, k: usize) -> Result<Vec<Neighbour>, VectorError> {
        self.matches(query, k, |native, k| {
            native.search(query.row(), k).map_err(usearch_error)
        })
    }

    /// The `k` nearest rows among those whose keys `allows`, as [`HnswIndex::search`] finds them.
    ///
    /// The search goes on until it has seen enough allowed rows, so that its cost grows as their share shrinks.
    /// `allows` is called from C++ and must not panic.
    pub fn search_allowed(
        &self,
        query: &Query,
        k: usize,
        allows: impl Fn(u64) -> bool,
    ) -> Result<Vec<Neighbour>, VectorError> {
        self.matches(query, k, |native, k| {
            native
                .filtered_search(query.row(), k, allows)
                .map_err(usearch_error)
        })
    }

    fn matches(
        &self,
        query: &Query,
        k: usize,
        search: impl FnOnce(&Index, usize) -> Result<Matches, VectorError>,
    ) -> Result<Vec<Neighbour>, VectorError> {
        if query.dims() != self.dims {
            return Err(VectorError::WrongLength {
                expected: self.dims,
                actual: query.dims(),
            });
        }
        let graph = self.graph.read();
        let k = k.min(graph.native.size());
        if k == 0 {
            return Ok(Vec::new());
        }
        let place = self.searches.enter();
        let matches = search(&graph.native, k)?;
        drop(place);
        drop(graph);
        let mut neighbours: Vec<Neighbour> = matches
            .keys
            .into_iter()
            .zip(matches.distances)
            .map(|(key, distance)| Neighbour {
                key,
                cosine: -distance,
            })
            .collect();
        neighbours.sort_unstable_by(|left, right| {
            right
                .cosine
                .total_cmp(&left.cosine)
                .then(left.key.cmp(&right.key))
        });
        Ok(neighbours)
    }

    /// Sets how many candidates a search keeps, [`DEFAULT_EF_SEARCH`] at first: more finds more, and takes longer. A
    /// search for more than that keeps as many as it is asked for.
    pub fn set_ef_search(&self, candidates: usize) {
        self.graph
            .write()
            .native
            .change_expansion_search(candidates.max(1));
    }

    /// Keys in the index.
    pub fn len(&self) -> usize {
        self.graph.read().native.size()
    }

    /// Whether there is no key in the index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removed nodes that no insertion has replaced yet.
    pub fn removed(&self) -> usize {
        self.graph.read().removed
    }

    /// Whether the key is in the index.
    pub fn contains(&self, key: u64) -> bool {
        self.graph.read().native.contains(key)
    }

    /// Bytes of memory in use: nodes, links and tables, without what is reserved and untouched.
    pub fn memory_bytes(&self) -> usize {
        let graph = self.graph.read();
        let stats = graph.native.memory_stats();
        stats.graph_allocated - stats.graph_reserved + stats.vectors_allocated
            - stats.vectors_reserved
            + graph.native.capacity() * BYTES_PER_SLOT
    }

    /// About what [`HnswIndex::memory_bytes`] will be of an index of so many rows, before there is one.
    #[must_use]
    pub fn expected_bytes(dims: usize, rows: usize) -> usize {
        // Of a node beside its row: its key and level, and its links in the base layer and, on average, above it. The room
        // for nodes is between once and twice as large as need be.
        let links = (2 * CONNECTIVITY + 2) * size_of::<u32>();
        let node = row_bytes(dims) + size_of::<u64>() + size_of::<u32>() + links;
        rows.max(INITIAL_CAPACITY) * (node + BYTES_PER_SLOT * 3 / 2)
    }

    /// Writes the index to `path`, atomically: written aside, synced, renamed, and the folder synced.
    ///
    /// `stamp` is for the caller to know by, when it loads the file, what the graph covers (store, namespace,
    /// generation, last row). Searches go on meanwhile; changes wait.
    pub fn save(&self, path: &Path, stamp: &[u8]) -> Result<(), VectorError> {
        let _saving = self.saving.lock();
        let aside = aside(path);
        let result = self.write_file(&aside, stamp).and_then(|()| {
            fs::rename(&aside, path).map_err(io_error(path))?;
            sync_folder(path).map_err(io_error(path))
        });
        if result.is_err() {
            // What went wrong first is the error to report; the next save overwrites a file left aside.
            let _ = fs::remove_file(&aside);
        }
        result
    }

    fn write_file(&self, path: &Path, stamp: &[u8]) -> Result<(), VectorError> {
        let name = path
            .to_str()
            .ok_or_else(|| io_error(path)(io::ErrorKind::InvalidFilename.into()))?;
        let length = {
            let graph = self.graph.read();
            graph.native.save(name).map_err(usearch_error)?;
            graph.native.serialized_length()
        };
        append_footer(path, length, self.dims, stamp).map_err(io_error(path))
    }

    /// Reads the file that [`HnswIndex::save`] wrote; the index and the stamp.
    ///
    /// Every byte is checked against the digest in the file before usearch sees one, since usearch trusts what it
    /// reads. A file of another kind, format or number of dimensions is [`VectorError::ForeignIndex`], a changed or
    /// shortened one [`VectorError::DamagedIndex`]: in both cases, build the index anew.
    pub fn load(path: &Path, dims: usize) -> Result<(Self, Vec<u8>), VectorError> {
        let file = MappedFile::open(path).map_err(io_error(path))?;
        let (body, stamp) = read_footer(file.as_ref(), path, dims)?;
        let mut native = new_native(dims)?;
        native.load_from_buffer(body).map_err(usearch_error)?;
        // Loading puts back a metric of usearch's own.
        set_metric(&mut native, dims);
        let removed = Index::metadata_from_buffer(body)
            .map_err(usearch_error)?
            .count_deleted;
        Ok((
            Self::from_native(native, dims, removed as usize)?,
            stamp.to_vec(),
        ))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Graph) -> Result<T, VectorError>,
    ) -> Result<T, VectorError> {
        let mut graph = self.graph.write();
        let result = change(&mut graph);
        RwLockWriteGuard::unlock_fair(graph);
        result
    }
}

impl Graph {
    fn add(&mut self, key: u64, row: &[u8]) -> Result<(), VectorError> {
        if self.native.contains(key) {
            return Err(VectorError::DuplicateKey(key));
        }
        let capacity = self.native.capacity();
        if self.removed == 0 && self.native.size() == capacity {
            self.native
                .reserve_capacity_and_threads(capacity * 2, MAX_SEARCHES)
                .map_err(usearch_error)?;
        }
        self.native.add(key, row).map_err(usearch_error)?;
        // usearch takes the slot of a removed node first.
        self.removed = self.removed.saturating_sub(1);
        Ok(())
    }
}

/// Places for a number of callers; who finds none waits.
struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

struct Place<'places>(&'places Places);

impl Places {
    fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    fn enter(&self) -> Place<'_> {
        let mut free = self.free.lock();
        self.freed.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

fn new_native(dims: usize) -> Result<Index, VectorError> {
    match dims {
        0 => return Err(VectorError::Empty),
        1..=MAX_DIMS => {}
        actual => return Err(VectorError::TooManyDimensions { actual }),
    }
    Index::new(&IndexOptions {
        dimensions: row_bytes(dims),
        metric: MetricKind::IP,
        quantization: ScalarKind::U8,
        connectivity: CONNECTIVITY,
        expansion_add: EF_CONSTRUCTION,
        expansion_search: DEFAULT_EF_SEARCH,
        multi: false,
    })
    .map_err(usearch_error)
}

/// Makes usearch measure rows by our kernel: the distance is the negative approximate cosine.
///
/// To be called once an index: usearch forgets the function of an earlier call without freeing it.
fn set_metric(native: &mut Index, dims: usize) {
    let (kernel, bytes) = (Kernel::best(), row_bytes(dims));
    native.change_metric::<u8>(Box::new(move |left: *const u8, right: *const u8| {
        #[expect(unsafe_code, reason = "usearch hands over rows by pointer")]
        // SAFETY: usearch calls the metric with vectors of the index, or the one being added or searched for; all
        // have the `row_bytes(dims)` bytes that the index was made with, and outlive the call.
        let (left, right) = unsafe {
            (
                slice::from_raw_parts(left, bytes),
                slice::from_raw_parts(right, bytes),
            )
        };
        let (left_scale, left) = split_row(left);
        let (right_scale, right) = split_row(right);
        -approximate_cosine(left_scale, right_scale, kernel.dot(left, right))
    }));
}

// The file: what usearch wrote, the stamp, and a footer of fixed length, integers little-endian:
//   length of usearch's part  u64
//   length of the stamp       u32
//   dimensions                u32
//   version of this layout    u32
//   BLAKE3 of all before      32 bytes
//   magic                     8 bytes
const MAGIC: &[u8; 8] = b"RCLDHNSW";
const VERSION: u32 = 1;
const DIGEST: usize = blake3::OUT_LEN;
const LENGTHS: usize = 8 + 4 + 4 + 4;

fn append_footer(path: &Path, body: usize, dims: usize, stamp: &[u8]) -> io::Result<()> {
    let written = fs::metadata(path)?.len();
    if written != body as u64 {
        // usearch does not look at the result of closing the file.
        return Err(io::Error::other(format!(
            "{written} of {body} bytes were written"
        )));
    }
    let mut lengths = Vec::with_capacity(LENGTHS);
    lengths.extend((body as u64).to_le_bytes());
    lengths.extend((stamp.len() as u32).to_le_bytes());
    lengths.extend((dims as u32).to_le_bytes());
    lengths.extend(VERSION.to_le_bytes());

    let mut digest = blake3::Hasher::new();
    digest.update_reader(File::open(path)?)?;
    digest.update(stamp).update(&lengths);

    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(stamp)?;
    file.write_all(&lengths)?;
    file.write_all(digest.finalize().as_bytes())?;
    file.write_all(MAGIC)?;
    file.sync_all()
}

/// Checks the file and gives usearch's part and the stamp.
fn read_footer<'file>(
    file: &'file [u8],
    path: &Path,
    dims: usize,
) -> Result<(&'file [u8], &'file [u8]), VectorError> {
    let foreign = |reason: String| VectorError::ForeignIndex {
        path: path.to_owned(),
        reason,
    };
    let damaged = |reason| VectorError::DamagedIndex {
        path: path.to_owned(),
        reason,
    };
    let not_ours = || {
        foreign(
            "it does not end as an index does; it is another kind of file, or cut short".to_owned(),
        )
    };

    let file = file.strip_suffix(MAGIC).ok_or_else(not_ours)?;
    let (file, digest) = file.split_last_chunk::<DIGEST>().ok_or_else(not_ours)?;
    if blake3::hash(file) != *digest {
        return Err(damaged("its digest does not match"));
    }
    let split = || -> Option<_> {
        let (file, version) = file.split_last_chunk()?;
        let (file, dims) = file.split_last_chunk()?;
        let (file, stamp) = file.split_last_chunk()?;
        let (file, body) = file.split_last_chunk()?;
        let lengths = [*version, *dims, *stamp].map(u32::from_le_bytes);
        Some((file, lengths, u64::from_le_bytes(*body)))
    };
    let (file, [version, found_dims, stamp], body) = split().ok_or_else(not_ours)?;
    if version != VERSION {
        return Err(foreign(format!(
            "its layout is version {version}, this release reads {VERSION}"
        )));
    }
    if found_dims as usize != dims {
        return Err(foreign(format!(
            "its vectors have {found_dims} dimensions, expected {dims}"
        )));
    }
    if body.checked_add(u64::from(stamp)) != Some(file.len() as u64) {
        return Err(damaged("its parts do not add up to its length"));
    }
    Ok(file.split_at(body as usize))
}

fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".tmp");
    PathBuf::from(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> VectorError {
    let path = path.to_owned();
    move |source| VectorError::Io {
        path: path.clone(),
        source,
    }
}

fn usearch_error(error: impl std::fmt::Display) -> VectorError {
    VectorError::Usearch(error.to_string())
}

#[cfg(test)]
mod tests;
