//! Commands of ours that pages name exist and take the flags they are given.

use bigfleet_docs::{
    commands::{named, problem},
    page::{self, Page},
    reference::flags,
};
use bigfleet_testkit::binaries::binary;

/// The specification names what is still to be built, records name what once was.
const OTHERS: [&str; 2] = ["docs/spec", "docs/decisions"];

#[test]
fn every_command_that_a_page_names_exists() {
    let helps = flags::all(binary).unwrap();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for path in page::all().unwrap() {
        if OTHERS.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        for (line, command) in named(&Page::read(&path).unwrap()) {
            match problem(&helps, &command) {
                Some(problem) => wrong.push(format!("{}:{line}: {problem}", path.display())),
                None => right += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(right > 100, "only {right} commands were found");
}
