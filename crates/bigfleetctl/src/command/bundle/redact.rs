//! Taking secrets out of text: what looks like one goes, and rather too much than too
//! little.

/// What stands in its place.
const REMOVED: &str = "[removed]";

/// Names whose value is a secret, wherever they are part of a name.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "private_key",
    "private-key",
    "credential",
    "authorization",
    "bearer",
    "user_data",
    "userdata",
    "bootstrap_blob",
    "bootstrapblob",
    "cookie",
    "session_key",
    "client-key-data",
    "client_key_data",
];

/// Shapes that are secrets by themselves: prefix, and how long it is at least.
const SHAPES: &[(&str, usize)] = &[
    ("AKIA", 20),
    ("ASIA", 20),
    ("eyJ", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("github_pat_", 20),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AIza", 30),
    ("sk-", 20),
    ("ya29.", 20),
    ("hvs.", 20),
];

/// The text without its secrets; lines stay lines, so that places can be told.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let begins = line.contains("-----BEGIN ") && !line.contains("BEGIN CERTIFICATE");
        if begins && !line.contains("-----END ") {
            in_key = true;
            out += "[removed: PEM block]\n";
        } else if begins {
            // A block written in one line, as JSON does.
            out += "[removed: PEM block]\n";
        } else if in_key {
            in_key = !line.contains("-----END ");
        } else {
            out += &without_userinfo(&words(&values(line)));
        }
    }
    out
}

/// `name: value`, `name=value` and `"name": "value"` of names that say so, and `Bearer x`.
fn values(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let mut out = String::new();
    let mut rest = 0;
    loop {
        let found =
            NAMES.iter().filter_map(|name| Some((lower[rest..].find(name)? + rest, name.len())));
        let Some((at, len)) = found.min_by_key(|(at, len)| (*at, usize::MAX - len)) else { break };
        // The rest of the name, what ties it to its value, and an opening quote.
        let name_end =
            at + len + run(&line[at + len..], |c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        let tie = run(&line[name_end..], |c| "\"':= \\".contains(c));
        let tied = &line[name_end..name_end + tie];
        let value_at = name_end + tie;
        let speaks = tied.contains(':') || tied.contains('=') || lower[at..].starts_with("bearer ");
        let quoted = tied.ends_with(['"', '\'']);
        let length = run(&line[value_at..], |c| {
            if quoted { !"\"'\n".contains(c) } else { !c.is_whitespace() && !",}])\"".contains(c) }
        });
        out += &line[rest..value_at];
        let value = &line[value_at..value_at + length];
        let follows = value.eq_ignore_ascii_case("bearer") || value.eq_ignore_ascii_case("basic");
        if speaks && length > 0 && !follows {
            out += REMOVED;
        } else {
            out += value;
        }
        rest = value_at + length;
        if follows {
            // `Authorization: Basic x`: the value comes after its kind.
            let space = run(&line[rest..], |c| c == ' ');
            let length =
                run(&line[rest + space..], |c| !c.is_whitespace() && !",}])\"".contains(c));
            out += &line[rest..rest + space];
            if length > 0 {
                out += REMOVED;
            }
            rest += space + length;
        }
    }
    out + &line[rest..]
}

/// Bytes at the start of `text` whose characters are all so.
fn run(text: &str, so: impl Fn(char) -> bool) -> usize {
    text.find(|c| !so(c)).unwrap_or(text.len())
}

/// Words that are secrets by their shape.
fn words(line: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-.+/=".contains(c);
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word = run(rest, part);
        let (token, tail) = rest.split_at(word);
        let secret =
            SHAPES.iter().any(|(prefix, least)| token.starts_with(prefix) && token.len() >= *least);
        out += if secret || is_blob(token) { REMOVED } else { token };
        let gap = run(tail, |c| !part(c));
        out += &tail[..gap];
        rest = &tail[gap..];
    }
    out
}

/// Long and random: base64 of a key or a blob. Names, paths and hex digests are not.
fn is_blob(token: &str) -> bool {
    let has = |so: fn(&u8) -> bool| token.bytes().any(|byte| so(&byte));
    token.len() >= 60
        && !token.contains("..")
        && token.bytes().filter(|byte| b"._-".contains(byte)).count() * 12 < token.len()
        && token.bytes().filter(|byte| *byte == b'/').count() * 16 < token.len()
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// `https://user:password@host` keeps its host.
fn without_userinfo(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out += head;
        let authority = run(tail, |c| !c.is_whitespace() && !"/\"'".contains(c));
        match tail[..authority].rfind('@') {
            Some(end) => {
                out += REMOVED;
                rest = &tail[end..];
            }
            None => rest = tail,
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        for (line, left) in [
            ("password: hunter2", "password: [removed]"),
            ("db_password=hunter2 port=5", "db_password=[removed] port=5"),
            (
                r#"{"joinToken": "abc.def", "cpu": "8"}"#,
                r#"{"joinToken": "[removed]", "cpu": "8"}"#,
            ),
            ("Authorization: Bearer abc123 next", "Authorization: Bearer [removed] next"),
            ("authorization=Basic dXNlcjpwYXNz", "authorization=Basic [removed]"),
            ("http://u:p@host:9/x", "http://[removed]@host:9/x"),
            ("key AKIAIOSFODNN7EXAMPLE used", "key [removed] used"),
            ("shard s-1 at 10.0.0.1:7780", "shard s-1 at 10.0.0.1:7780"),
            ("topology.kubernetes.io/zone=eu-1a", "topology.kubernetes.io/zone=eu-1a"),
            ("the token is refused", "the token is refused"),
        ] {
            assert_eq!(text(line), left);
        }
    }

    #[test]
    fn keys_go_with_their_block_and_certificates_stay() {
        let pem = "a\n-----BEGIN PRIVATE KEY-----\nMIIE\nabc\n-----END PRIVATE KEY-----\nb\n";
        assert_eq!(text(pem), "a\n[removed: PEM block]\nb\n");
        let line = r#"{"k":"-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----"}"#;
        assert!(!text(line).contains("MII"));
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(text(certificate), certificate);
    }

    #[test]
    fn blobs_go_by_their_look() {
        let blob = "aGVsbG8gd29ybGQgdGhpcyBpcyBhIGJvb3RzdHJhcCBibG9iIDEyMzQ1Njc4OTA5ODc2NTQzMjE";
        assert_eq!(text(&format!("x {blob} y")), "x [removed] y");
        let hex = "a14c8748549f29333b8b251abb8ff432a14c8748549f29333b8b251abb8ff432";
        assert_eq!(text(hex), hex);
        let fingerprint =
            "p=1000000|ipb=16|rpb=19|reqs=node.kubernetes.io/instance-type:1:a3-highgpu-8g;|spr=";
        assert_eq!(text(fingerprint), fingerprint);
    }
}
