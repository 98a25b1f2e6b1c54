//! The protos say what the specification says, and nothing changes unnoticed.
//!
//! `contract.txt` was transcribed from the specification. Here the compiled
//! descriptors are rendered in its form and compared, line by line.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod descriptors;

use std::{collections::BTreeSet, fs, path::Path};

use descriptors::{PACKAGE, files, render, short_name};

const TABLE: &str = include_str!("contract.txt");

/// Facts of the base contract. It is closed: this number never changes.
const BASE_FACTS: usize = 409;

/// Where additions to base messages begin.
const FIRST_ADDED_NUMBER: i32 = 100;

const FROZEN: &str = "Numbers, types and meanings are frozen within v1alpha1 and what is removed \
    stays reserved (docs/spec/wire.md §14). An addition is made by adding lines to \
    tests/contract.txt, marked `+`, with field numbers from 100 up.";

/// One line of the table.
struct Fact {
    file: &'static str,
    added: bool,
    text: &'static str,
}

impl Fact {
    fn line(&self) -> String {
        format!("{}: {}", self.file, self.text)
    }

    /// The words of the line, if it is of that kind.
    fn of_kind(&self, kind: &str) -> Option<Vec<&'static str>> {
        self.text.strip_prefix(kind)?.strip_prefix(' ').map(|rest| rest.split(' ').collect())
    }
}

fn table() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut file = "";
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("  "), line.strip_prefix("+ ")) {
            (Some(text), _) => facts.push(Fact { file, added: false, text }),
            (_, Some(text)) => facts.push(Fact { file, added: true, text }),
            _ => file = line,
        }
    }
    facts
}

#[test]
fn protos_equal_the_table() {
    let mut expected = BTreeSet::new();
    for fact in table() {
        assert!(expected.insert(fact.line()), "twice in the table: {}", fact.line());
    }
    let actual: BTreeSet<String> = files()
        .iter()
        .flat_map(|file| {
            let name = short_name(file.name());
            render(file).into_iter().map(move |text| format!("{name}: {text}"))
        })
        .collect();

    let missing: Vec<_> = expected.difference(&actual).collect();
    let unexpected: Vec<_> = actual.difference(&expected).collect();
    assert!(
        missing.is_empty() && unexpected.is_empty(),
        "the protos differ from tests/contract.txt\n\
         missing from the protos: {missing:#?}\n\
         unexpected in the protos: {unexpected:#?}\n{FROZEN}"
    );
}

/// An edit of protos and table together passes the comparison. That it touches
/// the base contract shows here.
#[test]
fn the_base_contract_is_closed() {
    let base = table().iter().filter(|fact| !fact.added).count();
    assert_eq!(base, BASE_FACTS, "a line of the base contract came or went. {FROZEN}");
}

#[test]
fn additions_to_base_messages_are_numbered_from_100() {
    let facts = table();
    let base: BTreeSet<&str> = facts
        .iter()
        .filter(|fact| !fact.added)
        .filter_map(|fact| fact.of_kind("message"))
        .map(|words| words[0])
        .collect();
    for fact in &facts {
        let Some(words) = fact.of_kind("field") else {
            continue;
        };
        if base.contains(words[0]) {
            let number: i32 = words[1].parse().expect("a field number");
            assert_eq!(fact.added, number >= FIRST_ADDED_NUMBER, "{}. {FROZEN}", fact.line());
        } else {
            assert!(fact.added, "a base field of an added message: {}", fact.line());
        }
    }
}

#[test]
fn every_proto_file_is_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/proto/bigfleet/v1alpha1");
    let on_disk: BTreeSet<String> = fs::read_dir(folder)
        .expect("the folder of the protos")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let compiled = files().iter().map(|file| short_name(file.name()).to_owned()).collect();
    assert_eq!(on_disk, compiled);
}

#[test]
fn files_are_plain_proto3_of_one_package() {
    for file in files() {
        let name = file.name();
        assert_eq!(file.syntax(), "proto3", "{name}");
        assert_eq!(file.package(), PACKAGE, "{name}");
        // Options such as `packed` or `allow_alias` change what is
        // on the wire without changing a line of the table.
        assert_eq!(file.options, None, "{name}");
        assert!(file.extension.is_empty() && file.public_dependency.is_empty(), "{name}");
        assert!(file.enum_type.iter().all(|item| item.options.is_none()), "{name}");
        for service in &file.service {
            let methods = service.method.iter().all(|method| method.options.is_none());
            assert!(service.options.is_none() && methods, "{}", service.name());
        }
        for message in &file.message_type {
            let name = message.name();
            assert_eq!(message.options, None, "{name}");
            assert!(message.enum_type.iter().all(|item| item.options.is_none()), "{name}");
            assert!(message.nested_type.iter().all(descriptors::is_map_entry), "{name}");
            assert!(message.extension.is_empty() && message.extension_range.is_empty(), "{name}");
        }
    }
}

#[test]
fn fields_are_neither_optional_nor_well_known_types() {
    for file in files() {
        for message in &file.message_type {
            for field in &message.field {
                let name = format!("{}.{}", message.name(), field.name());
                assert!(!field.proto3_optional(), "{name} is optional");
                assert_eq!(field.options, None, "{name}");
                let own = field.type_name().is_empty()
                    || field.type_name().starts_with(&format!(".{PACKAGE}."));
                assert!(own, "{name} has the foreign type {}", field.type_name());
            }
        }
    }
}

/// wire.md §1. Its sentence predates `shardadmin`, which needs no other file.
#[test]
fn imports_are_those_of_the_specification() {
    for file in files() {
        let expected: &[&str] = match short_name(file.name()) {
            "capacity.proto" | "provider.proto" | "shardadmin.proto" => &[],
            "shardread.proto" | "coordinator.proto" => &["capacity.proto", "provider.proto"],
            _ => &["capacity.proto", "provider.proto", "shardread.proto"],
        };
        let imports: Vec<&str> = file.dependency.iter().map(|name| short_name(name)).collect();
        assert_eq!(imports, expected, "{}", file.name());
    }
}

/// The compiler refuses this too; here it holds for the table itself, so a
/// freed reservation cannot be reused by editing both.
#[test]
fn reserved_numbers_and_names_are_not_fields() {
    let facts = table();
    let reserved: BTreeSet<String> = facts
        .iter()
        .filter_map(|fact| fact.of_kind("reserved"))
        .map(|words| format!("{} {}", words[0], words[1].trim_matches('"')))
        .collect();
    for words in facts.iter().filter_map(|fact| fact.of_kind("field")) {
        for key in [words[1], words[2]] {
            let used = format!("{} {key}", words[0]);
            assert!(!reserved.contains(&used), "{used} is reserved");
        }
    }
}

#[test]
fn zero_values_are_unspecified() {
    let facts = table();
    let zeros: Vec<_> = facts
        .iter()
        .filter_map(|fact| fact.of_kind("value"))
        .filter(|words| words[1] == "0")
        .collect();
    let enums = facts.iter().filter_map(|fact| fact.of_kind("enum")).count();
    assert_eq!(zeros.len(), enums, "every enum has a zero value");
    for words in zeros {
        assert!(words[2].ends_with("_UNSPECIFIED"), "{words:?}");
    }
}

/// Read from the generated source: the paths are what other peers dial, and code
/// generators have options that change them.
#[test]
fn clients_call_the_specified_paths() {
    let generated = include_str!(concat!(env!("OUT_DIR"), "/bigfleet.v1alpha1.rs"));
    for fact in table() {
        let Some(words) = fact.of_kind("rpc") else {
            continue;
        };
        let (name, _) = words[0].split_once('(').expect("a method with its request");
        let path = format!("\"/bigfleet.v1alpha1.{}\"", name.replace('.', "/"));
        assert!(generated.contains(&path), "no client calls {path}");
    }
}
