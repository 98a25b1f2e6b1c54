//! The compiled descriptors, and how they read in `contract.txt`.

use bigfleet_wire::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

pub(crate) const PACKAGE: &str = "bigfleet.v1alpha1";

pub(crate) fn files() -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("a descriptor set").file
}

/// `capacity.proto` of `bigfleet/v1alpha1/capacity.proto`; a foreign file keeps its path.
pub(crate) fn short_name(path: &str) -> &str {
    path.strip_prefix("bigfleet/v1alpha1/").unwrap_or(path)
}

pub(crate) fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(|options| options.map_entry())
}

/// One line per fact of the file.
pub(crate) fn render(file: &FileDescriptorProto) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(file.dependency.iter().map(|path| format!("import {}", short_name(path))));
    file.service.iter().for_each(|service| render_service(service, &mut lines));
    file.enum_type.iter().for_each(|item| render_enum("", item, &mut lines));
    file.message_type.iter().for_each(|message| render_message(message, &mut lines));
    lines
}

fn render_service(service: &ServiceDescriptorProto, lines: &mut Vec<String>) {
    let name = service.name();
    lines.push(format!("service {name}"));
    for method in &service.method {
        let stream = |streaming| if streaming { "stream " } else { "" };
        lines.push(format!(
            "rpc {name}.{}({}{}) returns ({}{})",
            method.name(),
            stream(method.client_streaming()),
            local_type(method.input_type()),
            stream(method.server_streaming()),
            local_type(method.output_type()),
        ));
    }
}

fn render_enum(owner: &str, item: &EnumDescriptorProto, lines: &mut Vec<String>) {
    let name = format!("{owner}{}", item.name());
    lines.push(format!("enum {name}"));
    for value in &item.value {
        lines.push(format!("value {name} {} {}", value.number(), value.name()));
    }
    for range in &item.reserved_range {
        // Unlike a message's, an enum's range includes its end.
        lines.push(reserved_range(&name, range.start(), range.end()));
    }
    lines.extend(item.reserved_name.iter().map(|word| format!("reserved {name} \"{word}\"")));
}

fn render_message(message: &DescriptorProto, lines: &mut Vec<String>) {
    let name = message.name();
    lines.push(format!("message {name}"));
    for field in &message.field {
        let oneof = field.oneof_index.map_or_else(String::new, |index| {
            let index = usize::try_from(index).expect("an index");
            format!(" oneof {}", message.oneof_decl[index].name())
        });
        let kind = field_type(message, field);
        lines.push(format!("field {name} {} {} {kind}{oneof}", field.number(), field.name()));
    }
    for range in &message.reserved_range {
        lines.push(reserved_range(name, range.start(), range.end() - 1));
    }
    lines.extend(message.reserved_name.iter().map(|word| format!("reserved {name} \"{word}\"")));
    for item in &message.enum_type {
        render_enum(&format!("{name}."), item, lines);
    }
}

fn reserved_range(owner: &str, first: i32, last: i32) -> String {
    if first == last {
        format!("reserved {owner} {first}")
    } else {
        format!("reserved {owner} {first} to {last}")
    }
}

fn field_type(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let map = message.nested_type.iter().find(|nested| {
        is_map_entry(nested)
            && field.type_name().ends_with(&format!(".{}.{}", message.name(), nested.name()))
    });
    if let Some(entry) = map {
        let (key, value) = (scalar_or_local(&entry.field[0]), scalar_or_local(&entry.field[1]));
        return format!("map<{key},{value}>");
    }
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    format!("{repeated}{}", scalar_or_local(field))
}

fn scalar_or_local(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum | Type::Group => local_type(field.type_name()).to_owned(),
        // TYPE_INT64 is written int64.
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

/// Types of this package go by their own name, all others by their full one.
fn local_type(full: &str) -> &str {
    full.strip_prefix('.')
        .and_then(|name| name.strip_prefix(PACKAGE)?.strip_prefix('.'))
        .unwrap_or(full)
}
