//! Messages that carry a bootstrap blob: whoever reads it can join a machine to a cluster, so
//! no log shows more than its size.

use std::fmt;

use crate::v1alpha1::{BootstrapBlobResponse, ConfigureRequest};

/// A blob as logs see it.
struct Hidden(usize);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} secret bytes>", self.0)
    }
}

impl fmt::Debug for BootstrapBlobResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whole, so that a new field is not forgotten here.
        let Self { request_id, user_data, ttl_seconds, error } = self;
        f.debug_struct("BootstrapBlobResponse")
            .field("request_id", request_id)
            .field("user_data", &Hidden(user_data.len()))
            .field("ttl_seconds", ttl_seconds)
            .field("error", error)
            .finish()
    }
}

impl fmt::Debug for ConfigureRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine_id,
            cluster_id,
            bootstrap_blob,
            shard_id,
            shard_epoch,
            sequence_number,
            shard_metadata,
        } = self;
        f.debug_struct("ConfigureRequest")
            .field("machine_id", machine_id)
            .field("cluster_id", cluster_id)
            .field("bootstrap_blob", &Hidden(bootstrap_blob.len()))
            .field("shard_id", shard_id)
            .field("shard_epoch", shard_epoch)
            .field("sequence_number", sequence_number)
            .field("shard_metadata", shard_metadata)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::v1alpha1::{OperatorMessage, operator_message::Payload};

    const TOKEN: &str = "abcdef.0123456789abcdef";

    /// As text, as a list of bytes, and whole or as a part of something.
    #[test]
    fn no_blob_is_shown() {
        let response = BootstrapBlobResponse {
            request_id: "r-1".to_owned(),
            user_data: TOKEN.into(),
            ..BootstrapBlobResponse::default()
        };
        let request =
            ConfigureRequest { bootstrap_blob: TOKEN.into(), ..ConfigureRequest::default() };
        let payload = Some(Payload::BootstrapResponse(response.clone()));
        let message = OperatorMessage { payload };
        assert!(!message.encode_to_vec().is_empty());
        let bytes = format!("{:?}", TOKEN.as_bytes());
        for shown in [
            format!("{response:?} {response:#?}"),
            format!("{request:?} {request:#?}"),
            format!("{message:?}"),
        ] {
            assert!(shown.contains("<23 secret bytes>"), "{shown}");
            assert!(!shown.contains(TOKEN) && !shown.contains(&bytes), "{shown}");
            assert!(!shown.contains("97,\n"), "{shown}");
        }
        assert!(format!("{response:?}").contains("r-1"));
    }
}
