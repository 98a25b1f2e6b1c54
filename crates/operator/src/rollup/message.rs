//! A roll-up on its way to the shard.

use std::sync::Arc;

use bigfleet_wire::v1alpha1 as wire;
use prost::{
    Message,
    bytes::{BufMut, Bytes},
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::{identity::NeedIdentity, row::Sums};

/// `OperatorMessage.rollup`.
const ROLLUP: u32 = 2;
/// `ClusterCapacityNeeds.needs`.
const NEEDS: u32 = 3;
/// `CapacityNeed.aggregate_resources`.
const AGGREGATE: u32 = 2;
/// `CapacityNeed.min_unit`.
const MIN_UNIT: u32 = 8;

/// One roll-up, encoded need by need: those that did not change since the last one
/// share its bytes.
#[derive(Clone, Debug)]
pub struct RollUp {
    timestamp: i64,
    head: Bytes,
    needs: Arc<[Bytes]>,
    body_len: usize,
    requests: usize,
}

impl RollUp {
    /// Of encoded needs in identity order.
    pub(super) fn new(cluster: &str, timestamp: i64, needs: Arc<[Bytes]>, requests: usize) -> Self {
        let head = wire::ClusterCapacityNeeds {
            cluster_id: cluster.to_owned(),
            timestamp_unix_nanos: timestamp,
            needs: Vec::new(),
        };
        let head = Bytes::from(head.encode_to_vec());
        let body_len = head.len() + needs.iter().map(Bytes::len).sum::<usize>();
        Self { timestamp, head, needs, body_len, requests }
    }

    /// Names it among the shard's answers.
    #[must_use]
    pub const fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Needs in it.
    #[must_use]
    pub fn needs(&self) -> usize {
        self.needs.len()
    }

    /// Requests there were when it was built, whether in it or not.
    #[must_use]
    pub const fn requests(&self) -> usize {
        self.requests
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        key_len(ROLLUP) + encoded_len_varint(self.body_len as u64) + self.body_len
    }

    /// Writes the frame: an `OperatorMessage`.
    pub fn encode(&self, buffer: &mut impl BufMut) {
        encode_key(ROLLUP, WireType::LengthDelimited, buffer);
        encode_varint(self.body_len as u64, buffer);
        buffer.put_slice(&self.head);
        for need in &*self.needs {
            buffer.put_slice(need);
        }
    }
}

/// One need as a field of its roll-up.
pub(super) fn need(identity: &NeedIdentity, sums: &Sums) -> Bytes {
    let parts = identity.encoded();
    let mut body =
        Vec::with_capacity(64 + parts.requirements.len() + parts.profile.len() + parts.group.len());
    body.extend_from_slice(&parts.requirements);
    sums.each_total(|name, text| entry(AGGREGATE, name, text, &mut body));
    body.extend_from_slice(&parts.profile);
    sums.each_unit(|name, text| entry(MIN_UNIT, name, text, &mut body));
    body.extend_from_slice(&parts.group);
    let mut field = Vec::with_capacity(body.len() + 8);
    encode_key(NEEDS, WireType::LengthDelimited, &mut field);
    encode_varint(body.len() as u64, &mut field);
    field.extend_from_slice(&body);
    field.into()
}

/// An entry of a map of texts.
fn entry(field: u32, name: &str, text: &str, buffer: &mut Vec<u8>) {
    let string_len = |text: &str| 1 + encoded_len_varint(text.len() as u64) + text.len();
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint((string_len(name) + string_len(text)) as u64, buffer);
    for (field, text) in [(1, name), (2, text)] {
        encode_key(field, WireType::LengthDelimited, buffer);
        encode_varint(text.len() as u64, buffer);
        buffer.extend_from_slice(text.as_bytes());
    }
}
