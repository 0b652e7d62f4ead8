//! Generates `core_rs/proto/src/gen` from `proto/`; called by `make gen`.
//!
//! protox compiles the proto files in Rust, so that no protoc is needed. The result is committed: building recalld
//! needs neither this tool nor its dependencies.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let proto = root.join("proto");
    let out = root.join("core_rs/proto/src/gen");
    std::fs::create_dir_all(&out)?;
    let mut files = Vec::new();
    for folder in ["recalld/v1", "recalld/storage/v1"] {
        for entry in std::fs::read_dir(proto.join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "proto") {
                files.push(path);
            }
        }
    }
    files.sort();
    let set = protox::compile(files, [proto])?;
    prost_build::Config::new()
        .out_dir(&out)
        // Maps in key order: equal messages have equal bytes.
        .btree_map(["."])
        .compile_fds(set)?;
    Ok(())
}
