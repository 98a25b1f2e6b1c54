//! `generate` writes every generated page; `preprocess` is mdBook's, see `book.toml`; `check FOLDER`
//! looks at what it built.

use std::{path::Path, process::ExitCode};

use bigfleet_docs::{Error, GENERATE, reference, root, site};
use bigfleet_testkit::binaries::{beside, binary};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["generate"] => generate(),
        // mdBook calls without arguments, and asks first which renderer is served.
        ["preprocess"] => site::preprocess(),
        ["preprocess", "supports", renderer] => {
            return if *renderer == "html" { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        ["check", folder] => check(Path::new(folder)),
        _ => {
            eprintln!("usage: {GENERATE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet-docs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(folder: &Path) -> Result<(), Error> {
    let problems = site::problems(folder)?;
    if problems.is_empty() { Ok(()) } else { Err(Error::Site(problems.join("\n"))) }
}

fn generate() -> Result<(), Error> {
    let ours = std::env::current_exe()
        .map_err(|source| Error::File { path: "this program".into(), source })?;
    // Binaries are chosen as tests choose them; those beside this program are one folder nearer.
    let named = std::env::var_os("BIGFLEET_BINARIES").is_some();
    let find = |package: &str| if named { binary(package) } else { beside(&ours, package) };
    for file in reference::files(find)? {
        let path = root().join(file.path);
        std::fs::write(&path, &file.text).map_err(|source| Error::File { path, source })?;
        println!("{}", file.path);
    }
    Ok(())
}
