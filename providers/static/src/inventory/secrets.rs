//! Inventories are copied, mailed and committed, so a secret in one is no secret: only
//! names of secrets are taken. No refusal repeats what it found.

use serde_json::Value;

use super::Wrong;

/// In a key, without its punctuation.
const WORDS: [&str; 9] = [
    "apikey",
    "community",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "token",
];
/// A label may well speak of secrets; nothing it says may be one.
const LABEL_WORDS: [&str; 5] = ["apikey", "passphrase", "passwd", "password", "privatekey"];

/// Names the first place that holds, or seems to hold, a secret.
pub(super) fn refuse_inline(file: &Value) -> Result<(), Wrong> {
    look(file, String::new())
}

fn look(value: &Value, path: String) -> Result<(), Wrong> {
    match value {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(number, item)| look(item, format!("{path}[{number}]")))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            let inner = format!("{path}{dot}{key}");
            field(key, value, &path, &inner)?;
            look(value, inner)
        }),
        Value::String(text) => match text.split_once("://") {
            Some((_, rest)) if rest.contains('@') => {
                refuse(path, "an address with credentials; write it without, and name a secret")
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn field(key: &str, value: &Value, within: &str, path: &str) -> Result<(), Wrong> {
    let refuse = |problem| refuse(path.to_owned(), problem);
    let in_bmc = within.ends_with(".bmc");
    match (key, value) {
        ("bmc", Value::Object(_) | Value::Null) => return Ok(()),
        ("bmc", _) => return refuse("write {address: …, secret: NAME}"),
        ("secret", Value::String(name)) if in_bmc && is_name(name) => return Ok(()),
        ("secret", _) if in_bmc => {
            return refuse(
                "not the name of a secret; keep the secret where the hooks look it up, and write \
                 its name (letters, digits, . _ - /)",
            );
        }
        ("address", Value::String(text)) if in_bmc && text.contains(['@', ' ']) => {
            return refuse("write a host name or an address, nothing else");
        }
        _ => {}
    }
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let words = if within.ends_with(".labels") { &LABEL_WORDS[..] } else { &WORDS[..] };
    if words.iter().any(|word| plain.contains(word)) {
        return refuse(
            "a secret must not lie in the inventory; keep it where the hooks look it up, and \
             name it as bmc: {secret: NAME}",
        );
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(legal)
}

fn refuse(path: String, problem: &str) -> Result<(), Wrong> {
    Err((path, problem.to_owned()))
}
