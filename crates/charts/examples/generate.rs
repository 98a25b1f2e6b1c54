//! Writes every generated file.

use std::process::ExitCode;

use bigfleet_charts::{Error, generated, root};

fn main() -> ExitCode {
    match write() {
        Ok(count) => {
            println!("{count} files are current");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> Result<usize, Error> {
    let files = generated::files()?;
    for file in &files {
        let path = root().join(&file.path);
        let done = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        done.and_then(|()| std::fs::write(&path, &file.text))
            .map_err(|source| Error::File { path, source })?;
    }
    Ok(files.len())
}
