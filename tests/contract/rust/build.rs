//! Generates the client from the proto files, without a compiler of protobuf's own.

use std::error::Error;
use std::path::Path;

const PROTO: &str = "../../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}/recalld/v1");
    let contract = protox::compile(["recalld/v1/memory_service.proto"], [PROTO])?;
    let standard = protox::compile(["health.proto", "status.proto"], [Path::new(".")])?;
    for files in [contract, standard] {
        tonic_prost_build::configure()
            .build_server(false)
            .build_transport(false)
            .compile_fds(files)?;
    }
    Ok(())
}
