//! Frames as bytes. A roll-up is encoded need by need and mostly was so before; through
//! the generated message all of it would be copied and encoded again.

use std::marker::PhantomData;

use bigfleet_wire::v1alpha1::ShardMessage;
use prost::Message;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::outgoing::Frame;

/// Of `Shard.Session`, seen from the operator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionCodec(PhantomData<()>);

impl Codec for SessionCodec {
    type Encode = Frame;
    type Decode = ShardMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for SessionCodec {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, frame: Frame, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        match frame {
            Frame::Message(message) => {
                message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
            }
            Frame::RollUp(demand) => {
                buffer.reserve(demand.roll_up.encoded_len());
                demand.roll_up.encode(buffer);
                Ok(())
            }
        }
    }

    /// A frame at a time: what is yielded is on its way, and no longer replaceable.
    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(8 * 1024, 1)
    }
}

impl Decoder for SessionCodec {
    type Item = ShardMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<ShardMessage>, Status> {
        let message = ShardMessage::decode(buffer);
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
