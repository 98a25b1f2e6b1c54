//! Names of requests and instructions.

/// 16 lower-case hex digits: 8 random bytes of the system.
pub(super) fn fresh() -> Result<String, getrandom::Error> {
    Ok(format!("{:016x}", getrandom::u64()?))
}
