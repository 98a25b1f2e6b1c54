//! Where in a document a path leads, so that an error found after parsing still
//! names line and column.

/// Line and column, from 1, of the value at `path` (`machines[3].labels["a"]`),
/// or of the last value on the way to it that exists.
pub(super) fn locate(text: &str, path: &str) -> (usize, usize) {
    let mut scan = Scan { text: text.as_bytes(), at: 0 };
    scan.space();
    let mut found = scan.at;
    for step in steps(path) {
        if !scan.enter(&step) {
            break;
        }
        found = scan.at;
    }
    let before = &text[..found];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (1 + before.matches('\n').count(), 1 + before[line_start..].chars().count())
}

enum Step {
    Field(String),
    Index(usize),
}

/// `a.b[3]["c.d"]` in steps.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let Some(end) = quoted.find("\"]") else { break };
            steps.push(Step::Field(quoted[..end].to_owned()));
            rest = &quoted[end + 2..];
        } else if let Some(index) = rest.strip_prefix('[') {
            let Some(end) = index.find(']') else { break };
            let Ok(number) = index[..end].parse() else { break };
            steps.push(Step::Index(number));
            rest = &index[end + 1..];
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Field(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    steps
}

/// A cursor over a document that is known to be valid JSON.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') {
            self.at += 1;
        }
    }

    /// From the start of a value to the start of one inside it.
    fn enter(&mut self, step: &Step) -> bool {
        let open = self.peek();
        if !matches!((open, step), (b'{', Step::Field(_)) | (b'[', Step::Index(_))) {
            return false;
        }
        self.at += 1;
        self.space();
        let mut index = 0;
        while !matches!(self.peek(), b'}' | b']' | 0) {
            let wanted = match step {
                Step::Field(name) => {
                    let key_start = self.at;
                    self.skip();
                    let key = &self.text[key_start..self.at];
                    self.space();
                    serde_json::from_slice::<String>(key).is_ok_and(|key| key == *name)
                }
                Step::Index(number) => *number == index,
            };
            if wanted {
                return true;
            }
            self.skip();
            self.space();
            index += 1;
        }
        false
    }

    /// Past one value, which may be nested.
    fn skip(&mut self) {
        let mut depth = 0;
        loop {
            match self.peek() {
                0 => return,
                b'"' => {
                    self.at += 1;
                    while !matches!(self.peek(), b'"' | 0) {
                        self.at += if self.peek() == b'\\' { 2 } else { 1 };
                    }
                    self.at += 1;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    while !matches!(
                        self.peek(),
                        b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | 0
                    ) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::locate;

    const TEXT: &str =
        "{\n  \"a\": [1, {\"b\": \"x,]\\\"\", \"c.d\": true}],\n  \"ü\": 2, \"e\": {}\n}";

    #[test]
    fn a_path_leads_to_its_value() {
        for (path, place) in [
            ("", (1, 1)),
            ("a", (2, 8)),
            ("a[0]", (2, 9)),
            ("a[1]", (2, 12)),
            ("a[1].b", (2, 18)),
            ("a[1][\"c.d\"]", (2, 34)),
            ("ü", (3, 8)),
            ("e", (3, 16)),
        ] {
            assert_eq!(locate(TEXT, path), place, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_where_it_should_have_been() {
        assert_eq!(locate(TEXT, "a[1].none"), (2, 12));
        assert_eq!(locate(TEXT, "a[7].none"), (2, 8));
        assert_eq!(locate(TEXT, "none"), (1, 1));
    }
}
