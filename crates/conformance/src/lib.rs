//! The suite that certifies a provider.
