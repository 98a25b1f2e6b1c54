//! Writes the manifests of `api/crd` anew.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/crd");
    std::fs::create_dir_all(&folder)?;
    for manifest in bigfleet_crds::manifests::manifests()? {
        std::fs::write(folder.join(&manifest.file_name), manifest.yaml)?;
        println!("api/crd/{}", manifest.file_name);
    }
    Ok(())
}
