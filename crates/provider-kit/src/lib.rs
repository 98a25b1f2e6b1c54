//! What a provider author uses.
