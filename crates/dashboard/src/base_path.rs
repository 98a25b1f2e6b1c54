//! Under which path the dashboard is reached.

use std::{fmt, str::FromStr};

/// A path that begins and ends with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// Without the last slash: empty for the root.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.0.trim_end_matches('/')
    }
}

impl Default for BasePath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl FromStr for BasePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inner = text.trim_matches('/');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let segments = || inner.split('/');
        if !text.starts_with('/')
            || !inner.bytes().all(plain)
            || (!inner.is_empty() && segments().any(|part| matches!(part, "" | "." | "..")))
        {
            return Err(format!("{text:?} is not a path; write for example / or /bigfleet"));
        }
        Ok(if inner.is_empty() { Self::default() } else { Self(format!("/{inner}/")) })
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_put_right() {
        for (text, path, prefix) in
            [("/", "/", ""), ("/a", "/a/", "/a"), ("/a/b/", "/a/b/", "/a/b")]
        {
            let base: BasePath = text.parse().unwrap();
            assert_eq!((base.to_string().as_str(), base.prefix()), (path, prefix));
        }
        for wrong in ["", "a", "/a//b", "/../x", "/a b", "/\"><script>", "//evil/../"] {
            assert!(wrong.parse::<BasePath>().is_err(), "{wrong}");
        }
    }
}
