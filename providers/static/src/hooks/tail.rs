//! The last of what a hook said.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::redact;

/// Kept until the hook ends, so that a secret is whole when it is looked for.
const KEPT: usize = 8 << 10;
/// Told; `last_error` holds more around it.
const TOLD: usize = 512;

/// Of a stream that may be endless.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Reads to the end of the stream.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    self.0.extend_from_slice(&buffer[..read]);
                    let surplus = self.0.len().saturating_sub(KEPT);
                    self.0.drain(..surplus);
                }
            }
        }
    }

    /// One line without anything of the blob.
    pub(super) fn text(&self, blob: Option<&[u8]>) -> String {
        let bytes = match blob {
            Some(blob) => redact::redact(&self.0, blob),
            None => self.0.clone(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|w| !w.is_empty())
            .collect();
        let line = words.join(" ");
        let from = line.len().saturating_sub(TOLD);
        let from = (from..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        match &line[from..] {
            "" => "it said nothing on stderr".to_owned(),
            tail if from > 0 => format!("…{tail}"),
            tail => tail.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_end_is_told_on_one_line() {
        let mut tail = Tail::default();
        let text = format!("{}\nthe \u{1b}[31mend\u{1b}\n", "é".repeat(40_000));
        tail.fill(text.as_bytes()).await;
        let told = tail.text(None);
        assert!(told.len() <= TOLD + "…".len(), "{}", told.len());
        assert!(told.ends_with("the [31mend"), "{told}");
        assert_eq!(Tail::default().text(None), "it said nothing on stderr");
    }
}
