//! One join token.

use std::{fmt, sync::Arc, time::Duration};

const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LETTERS: usize = 6;
const SECRET_LETTERS: usize = 16;

/// A token: a public id and a secret. Shows the id alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: Arc<str>,
    secret: Arc<str>,
    minted: Duration,
}

impl Token {
    /// A new one, minted at a time of the pool's clock.
    ///
    /// # Errors
    ///
    /// When the system has no randomness to give.
    pub fn random(minted: Duration) -> Result<Self, getrandom::Error> {
        let letters = letters(ID_LETTERS + SECRET_LETTERS)?;
        let (id, secret) = letters.split_at(ID_LETTERS);
        Ok(Self { id: id.into(), secret: secret.into(), minted })
    }

    /// The public half; names the Secret.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The other half.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// As a kubelet is given it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// When it was minted.
    #[must_use]
    pub fn minted(&self) -> Duration {
        self.minted
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Letters of which each is as likely as the others.
fn letters(count: usize) -> Result<String, getrandom::Error> {
    let mut text = String::with_capacity(count);
    let mut bytes = [0; 32];
    while text.len() < count {
        getrandom::fill(&mut bytes)?;
        // 252 is the largest multiple of 36 in a byte.
        let fair = bytes.iter().filter(|&&byte| byte < 252);
        let letters = fair.map(|byte| char::from(LETTERS[usize::from(byte % 36)]));
        text.extend(letters.take(count - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_form_that_kubernetes_asks_for_and_hides() {
        let token = Token::random(Duration::ZERO).unwrap();
        let text = token.text();
        let (id, secret) = text.split_once('.').unwrap();
        assert_eq!((id.len(), secret.len()), (6, 16));
        assert!(text.bytes().all(|byte| byte == b'.' || LETTERS.contains(&byte)), "{text}");
        assert!(!format!("{token:?}").contains(secret));
        assert_ne!(token.text(), Token::random(Duration::ZERO).unwrap().text());
    }
}
