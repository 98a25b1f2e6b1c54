//! What is kept of a CapacityRequest: enough to see that it is as it should be.

use std::{
    io::{self, Write},
    sync::Arc,
};

use bigfleet_crds::{CapacityRequest, keys};
use kube::ResourceExt;
use sha2::{Digest as _, Sha256};

use crate::name::PREFIX;

/// A CapacityRequest of ours, stripped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// The pod that its label names.
    pub pod_uid: Option<Arc<str>>,
    /// The name of the pod that owns it.
    pub pod_name: Option<Arc<str>>,
    /// It is being deleted, and something holds it.
    pub terminating: bool,
    /// Of all that we write.
    pub digest: Digest,
}

/// Of all that we write into a CapacityRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 16]);

impl Existing {
    /// What is kept of `whole`; nothing if it was written by somebody else.
    #[must_use]
    pub fn of(whole: &CapacityRequest) -> Option<Self> {
        let name = whole.metadata.name.as_deref().unwrap_or_default();
        let pod_uid = whole.labels().get(keys::OWNED_BY_POD).map(|uid| uid.as_str().into());
        if pod_uid.is_none() && !name.starts_with(PREFIX) {
            return None;
        }
        let owner = whole.owner_references().iter().find(|owner| owner.kind == "Pod");
        Some(Self {
            name: name.into(),
            uid: whole.metadata.uid.as_deref().unwrap_or_default().into(),
            pod_uid,
            pod_name: owner.map(|owner| owner.name.as_str().into()),
            terminating: whole.metadata.deletion_timestamp.is_some(),
            digest: Digest::of(whole),
        })
    }
}

impl Digest {
    /// Of all that we would write into `request`.
    #[must_use]
    pub fn of(request: &CapacityRequest) -> Self {
        let mut hash = Hash(Sha256::new());
        let owner = request.owner_references().iter().find(|owner| owner.kind == "Pod");
        let metadata = [
            request.labels().get(keys::OWNED_BY_POD).map(String::as_str),
            request.labels().get(keys::DAEMONSET).map(String::as_str),
            request.annotations().get(keys::APPROXIMATED).map(String::as_str),
            owner.map(|owner| owner.uid.as_str()),
        ];
        // Writing to a hash cannot fail, and neither can the form of our own types.
        let _ = serde_json::to_writer(&mut hash, &(metadata, &request.spec));
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.0.finalize()[..16]);
        Self(digest)
    }
}

struct Hash(Sha256);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
