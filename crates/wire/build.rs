//! Compiles `api/proto` in pure Rust: no `protoc` on the machine is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

const FILES: [&str; 7] = [
    "bigfleet/v1alpha1/capacity.proto",
    "bigfleet/v1alpha1/provider.proto",
    "bigfleet/v1alpha1/shardread.proto",
    "bigfleet/v1alpha1/shard.proto",
    "bigfleet/v1alpha1/shardadmin.proto",
    "bigfleet/v1alpha1/observe.proto",
    "bigfleet/v1alpha1/coordinator.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../api/proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    // In Rust the accessors of `ActuationState.mode` would be `mode` and
    // `set_mode`, the latter also a field. Names are not on the wire.
    descriptors
        .file
        .iter_mut()
        .flat_map(|file| &mut file.message_type)
        .filter(|message| message.name() == "ActuationState")
        .flat_map(|message| &mut message.field)
        .filter(|field| field.name() == "set_mode")
        .for_each(|field| field.name = Some("requested_mode".to_owned()));

    let grpc_only = "#[cfg(feature = \"grpc\")]";
    tonic_prost_build::configure()
        .client_mod_attribute(".", grpc_only)
        .server_mod_attribute(".", grpc_only)
        .btree_map(".")
        // Written by hand in `src/secret.rs`: what joins a machine is in no log.
        .skip_debug([
            ".bigfleet.v1alpha1.BootstrapBlobResponse",
            ".bigfleet.v1alpha1.ConfigureRequest",
        ])
        .compile_fds(descriptors)?;
    Ok(())
}
