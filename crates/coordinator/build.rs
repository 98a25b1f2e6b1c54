//! Compiles the private protocol of the consensus port.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let descriptors = protox::compile(["consensus.proto"], [&root])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
