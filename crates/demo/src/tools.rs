//! The tools that read the demo from a terminal.

use std::{env, path::Path};

/// How one of them is called: by its path where it lies beside this binary, by cargo where that
/// runs us and may have to build it first, else by its name.
pub(crate) fn call(tool: &str) -> String {
    let exe = env::current_exe().ok();
    let folder = exe.as_deref().and_then(Path::parent);
    if let Some(built) = folder.map(|folder| folder.join(tool)).filter(|path| path.is_file()) {
        let here = env::current_dir().ok();
        let near = here.as_deref().and_then(|here| built.strip_prefix(here).ok());
        return near.unwrap_or(&built).display().to_string();
    }
    let optimised = folder.is_some_and(|folder| folder.ends_with("release"));
    match env::var_os("CARGO") {
        Some(_) if optimised => format!("cargo run --release --bin {tool} --"),
        Some(_) => format!("cargo run --bin {tool} --"),
        None => tool.to_owned(),
    }
}
