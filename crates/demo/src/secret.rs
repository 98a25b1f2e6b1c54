//! Secrets that nobody guesses.

/// 128 bits as text.
pub(crate) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_secrets_are_alike() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one != other && one.len() == 32, "{one} {other}");
    }
}
