//! Services, messages and enums of the protos, with their comments.

use std::{collections::BTreeMap, fmt::Write as _};

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

use super::cell;
use crate::{Error, GENERATE, root};

/// In the order of demand: what clusters ask, what providers have, who speaks with whom.
const FILES: [&str; 7] =
    ["capacity", "provider", "shard", "shardread", "observe", "shardadmin", "coordinator"];

/// Numbers of fields in the descriptors, by which comments name what they belong to.
mod at {
    pub(super) const MESSAGE: i32 = 4;
    pub(super) const ENUM: i32 = 5;
    pub(super) const SERVICE: i32 = 6;
    pub(super) const SYNTAX: i32 = 12;
    pub(super) const FIELD: i32 = 2;
    pub(super) const NESTED: i32 = 3;
    pub(super) const NESTED_ENUM: i32 = 4;
    pub(super) const VALUE: i32 = 2;
    pub(super) const METHOD: i32 = 2;
}

/// The page.
pub(super) fn page() -> Result<String, Error> {
    let includes = [root().join("api/proto")];
    let files = FILES.map(|name| format!("bigfleet/v1alpha1/{name}.proto"));
    let mut compiler = protox::Compiler::new(includes)?;
    compiler.include_source_info(true).open_files(files.clone())?;
    let set = compiler.file_descriptor_set();
    let mut page = format!(
        "# API reference\n\nEvery service, message and enum of the package `bigfleet.v1alpha1`, from \
         `api/proto`. Generated; write it anew with `{GENERATE}`. What the fields mean together, and who may \
         call what, is in the [wire chapter](../spec/wire.md).\n\n\
         Instants are unix nanoseconds, durations seconds, quantities Kubernetes quantity strings.\n"
    );
    for name in files {
        if let Some(file) = set.file.iter().find(|file| file.name() == name) {
            Writer { page: &mut page, comments: comments(file) }.file(file);
        }
    }
    Ok(page)
}

type Comments = BTreeMap<Vec<i32>, String>;

fn comments(file: &FileDescriptorProto) -> Comments {
    let info = file.source_code_info.clone().unwrap_or_default();
    let said = info.location.into_iter().filter_map(|location| {
        let comment = location.leading_comments().trim();
        let comment = if comment.is_empty() { location.trailing_comments() } else { comment };
        let words = comment.trim().to_owned();
        (!words.is_empty()).then_some((location.path, words))
    });
    said.collect()
}

struct Writer<'a> {
    page: &'a mut String,
    comments: Comments,
}

impl Writer<'_> {
    fn file(&mut self, file: &FileDescriptorProto) {
        let name = file.name().rsplit('/').next().unwrap_or_default();
        let _ = write!(self.page, "\n## {name}\n");
        self.comment(&[at::SYNTAX]);
        for (index, service) in (0..).zip(&file.service) {
            self.service(service, &[at::SERVICE, index]);
        }
        for (index, message) in (0..).zip(&file.message_type) {
            self.message(message, message.name(), &[at::MESSAGE, index]);
        }
        for (index, choices) in (0..).zip(&file.enum_type) {
            self.choices(choices, choices.name(), &[at::ENUM, index]);
        }
    }

    fn comment(&mut self, path: &[i32]) {
        if let Some(comment) = self.comments.get(path) {
            let lines: Vec<&str> = comment.lines().map(str::trim).collect();
            let _ = write!(self.page, "\n{}\n", lines.join("\n"));
        }
    }

    fn said(&self, path: &[i32], field: i32, index: i32) -> String {
        let path: Vec<i32> = path.iter().copied().chain([field, index]).collect();
        self.comments.get(&path).map(|comment| cell(comment)).unwrap_or_default()
    }

    fn service(&mut self, service: &ServiceDescriptorProto, path: &[i32]) {
        let _ = write!(self.page, "\n### service {}\n", service.name());
        self.comment(path);
        self.page.push_str("\n| Call | Request | Answer | |\n|---|---|---|---|\n");
        for (index, method) in (0..).zip(&service.method) {
            let stream = |is: bool| if is { "stream of " } else { "" };
            let _ = writeln!(
                self.page,
                "| `{}` | {}{} | {}{} | {} |",
                method.name(),
                stream(method.client_streaming()),
                linked(method.input_type()),
                stream(method.server_streaming()),
                linked(method.output_type()),
                self.said(path, at::METHOD, index)
            );
        }
    }

    fn message(&mut self, message: &DescriptorProto, name: &str, path: &[i32]) {
        let _ = write!(self.page, "\n### {name}\n");
        self.comment(path);
        if message.field.is_empty() {
            self.page.push_str("\nNo fields.\n");
        } else {
            self.page.push_str("\n| Field | # | Type | |\n|---|---|---|---|\n");
        }
        for (index, field) in (0..).zip(&message.field) {
            let one_of = field
                .oneof_index
                .and_then(|index| message.oneof_decl.get(usize::try_from(index).ok()?))
                .map(|one_of| format!("one of `{}` ", one_of.name()))
                .unwrap_or_default();
            let said = format!("{one_of}{}", self.said(path, at::FIELD, index));
            let _ = writeln!(
                self.page,
                "| `{}` | {} | {} | {} |",
                field.name(),
                field.number(),
                kind(message, field),
                said.trim()
            );
        }
        for (index, nested) in (0..).zip(&message.nested_type) {
            let map = nested.options.as_ref().is_some_and(|options| options.map_entry());
            let path: Vec<i32> = path.iter().copied().chain([at::NESTED, index]).collect();
            if !map {
                self.message(nested, &format!("{name}.{}", nested.name()), &path);
            }
        }
        for (index, choices) in (0..).zip(&message.enum_type) {
            let path: Vec<i32> = path.iter().copied().chain([at::NESTED_ENUM, index]).collect();
            self.choices(choices, &format!("{name}.{}", choices.name()), &path);
        }
    }

    fn choices(&mut self, choices: &EnumDescriptorProto, name: &str, path: &[i32]) {
        let _ = write!(self.page, "\n### enum {name}\n");
        self.comment(path);
        self.page.push_str("\n| Value | # | |\n|---|---|---|\n");
        for (index, value) in (0..).zip(&choices.value) {
            let said = self.said(path, at::VALUE, index);
            let _ = writeln!(self.page, "| `{}` | {} | {said} |", value.name(), value.number());
        }
    }
}

/// The name of a type, without its package.
fn short(name: &str) -> &str {
    name.strip_prefix(".bigfleet.v1alpha1.").unwrap_or(name)
}

fn linked(name: &str) -> String {
    let name = short(name);
    format!("[{name}](#{})", name.to_lowercase().replace('.', ""))
}

fn kind(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry = message.nested_type.iter().find(|nested| {
        nested.options.as_ref().is_some_and(|options| options.map_entry())
            && field.type_name().ends_with(&format!(".{}", nested.name()))
    });
    if let Some([key, value]) = entry.map(|entry| entry.field.as_slice()) {
        return format!("map of {} to {}", scalar(key), scalar(value));
    }
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    format!("{repeated}{}", scalar(field))
}

fn scalar(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message => linked(field.type_name()),
        Type::Enum => {
            let name = short(field.type_name());
            format!("[{name}](#enum-{})", name.to_lowercase().replace('.', ""))
        }
        other => format!("{other:?}").to_lowercase(),
    }
}
