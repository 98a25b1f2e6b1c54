//! Any request to any RPC: well formed by the descriptors, with values that mean
//! something, that mean nothing and that lie at the edges; some torn.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_scripted::random::Random;
use prost::{
    Message,
    bytes::{Buf, BufMut},
    encoding::{WireType, encode_key, encode_varint},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use tokio::time::timeout;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

/// How deep messages hold messages.
const DEEP: u32 = 4;
/// A call that answers nothing is a stream that waits.
const WAIT: Duration = Duration::from_millis(250);
const NUMBERS: [i64; 8] = [0, 1, 2, 7, -1, 1 << 40, i64::MAX, i64::MIN];
const FLOATS: [f64; 6] = [0.0, 1.5, -1.0, f64::NAN, f64::INFINITY, f64::MAX];

/// Requests of all services, from a seed.
pub(crate) struct Corpus {
    messages: BTreeMap<String, DescriptorProto>,
    /// Paths of methods, each with the type that it takes.
    methods: Vec<(String, String)>,
    /// What is put into texts.
    words: Vec<String>,
    /// How many of them are sane.
    known: usize,
    /// Nothing odd is said in this request.
    sane: bool,
    random: Random,
}

impl Corpus {
    /// For methods of these services of `bigfleet.v1alpha1`; `words` are names that are
    /// known where they are played.
    pub(crate) fn new(services: &[&str], words: &[&str], seed: u64) -> Self {
        let set = FileDescriptorSet::decode(bigfleet_wire::FILE_DESCRIPTOR_SET).unwrap();
        let (mut messages, mut methods) = (BTreeMap::new(), Vec::new());
        for file in &set.file {
            for message in &file.message_type {
                index(&mut messages, &format!(".{}", file.package()), message);
            }
            for service in file.service.iter().filter(|one| services.contains(&one.name())) {
                methods.extend(service.method.iter().map(|method| {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    (path, method.input_type().to_owned())
                }));
            }
        }
        assert!(methods.len() >= services.len(), "no such services: {services:?}");
        let known = words.len();
        let odd = ["", "nobody", "ZONE=1", "-1", "\u{0}", "100m"].map(str::to_owned);
        let long = "x".repeat(300);
        let words = words.iter().map(|&word| word.to_owned()).chain(odd).chain([long]).collect();
        Self { messages, methods, words, known, sane: false, random: Random::new(seed) }
    }

    /// So many requests to each method; what each answered, once each.
    pub(crate) async fn play(
        &mut self,
        channel: &Channel,
        times: usize,
    ) -> BTreeMap<String, Vec<Code>> {
        let mut answers: BTreeMap<String, Vec<Code>> = BTreeMap::new();
        for (path, input) in self.methods.clone() {
            for _ in 0..times {
                let request = self.request(&input);
                let code = call(channel, &path, request).await;
                let codes = answers.entry(path.clone()).or_default();
                if !codes.contains(&code) {
                    codes.push(code);
                }
            }
        }
        answers
    }

    fn request(&mut self, input: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.sane = self.random.below(2) == 0;
        self.message(input, 0, &mut bytes);
        // One in eight is torn.
        if !self.sane && !bytes.is_empty() && self.random.below(4) == 0 {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        bytes
    }

    /// One of the first, where nothing odd is said; else one of all.
    fn pick(&mut self, first: usize, all: usize) -> usize {
        self.random.below(if self.sane { first } else { all } as u64) as usize
    }

    fn message(&mut self, name: &str, depth: u32, out: &mut Vec<u8>) {
        let mut fields = self.messages[name].field.clone();
        // Of those that exclude each other the last counts: one is drawn.
        let of =
            |field: &FieldDescriptorProto| field.oneof_index.filter(|_| !field.proto3_optional());
        let oneofs: BTreeSet<i32> = fields.iter().filter_map(of).collect();
        for oneof in oneofs {
            let members: Vec<i32> = fields
                .iter()
                .filter(|field| of(field) == Some(oneof))
                .map(FieldDescriptorProto::number)
                .collect();
            let drawn = members[self.random.below(members.len() as u64) as usize];
            fields.retain(|field| of(field) != Some(oneof) || field.number() == drawn);
        }
        for field in fields {
            let times = match field.label() {
                Label::Repeated => self.random.below(3),
                _ => u64::from(self.sane || self.random.below(8) > 0),
            };
            for _ in 0..times {
                self.field(&field, depth, out);
            }
        }
    }

    fn field(&mut self, field: &FieldDescriptorProto, depth: u32, out: &mut Vec<u8>) {
        let number = field.number().unsigned_abs();
        match field.r#type() {
            Type::String | Type::Bytes => {
                let word = self.pick(self.known, self.words.len());
                text(number, self.words[word].as_bytes(), out);
            }
            Type::Message if depth >= DEEP => {}
            Type::Message => {
                let mut inner = Vec::new();
                self.message(field.type_name(), depth + 1, &mut inner);
                text(number, &inner, out);
            }
            Type::Double => {
                encode_key(number, WireType::SixtyFourBit, out);
                out.put_f64_le(FLOATS[self.pick(2, FLOATS.len())]);
            }
            Type::Fixed64 => {
                encode_key(number, WireType::SixtyFourBit, out);
                out.put_u64_le(self.random.next());
            }
            Type::Bool => varint(number, self.random.below(2), out),
            Type::Enum => varint(number, self.random.below(8), out),
            Type::Int32 | Type::Int64 | Type::Uint32 | Type::Uint64 => {
                let drawn = NUMBERS[self.pick(4, NUMBERS.len())];
                varint(number, drawn.cast_unsigned(), out);
            }
            other => panic!("{} is of a type that the corpus lacks: {other:?}", field.name()),
        }
    }
}

fn index(messages: &mut BTreeMap<String, DescriptorProto>, within: &str, one: &DescriptorProto) {
    let name = format!("{within}.{}", one.name());
    one.nested_type.iter().for_each(|nested| index(messages, &name, nested));
    messages.insert(name, one.clone());
}

fn varint(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

fn text(number: u32, value: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(value.len() as u64, out);
    out.put_slice(value);
}

/// Nobody was let in: not by who leads, and not by who does not. What is torn may not come
/// as far as the door.
pub(crate) fn refused(codes: &[Code]) -> bool {
    let door = [Code::PermissionDenied, Code::FailedPrecondition];
    let torn = [Code::Internal, Code::InvalidArgument];
    codes.iter().any(|code| door.contains(code))
        && codes.iter().all(|code| door.contains(code) || torn.contains(code))
}

/// One request on a stream of its own, whatever the method takes and gives.
async fn call(channel: &Channel, path: &str, request: Vec<u8>) -> Code {
    let mut grpc = Grpc::new(channel.clone());
    let asked = async {
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let requests = futures_util::stream::iter([request]);
        let path = PathAndQuery::try_from(path).unwrap();
        let mut answers = grpc.streaming(Request::new(requests), path, Raw).await?.into_inner();
        answers.message().await.map(drop)
    };
    timeout(WAIT, asked).await.map_or(Code::Ok, |answer: Result<(), Status>| {
        answer.map_or_else(|status| status.code(), |()| Code::Ok)
    })
}

/// Bytes as they are.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut item = vec![0; from.remaining()];
        from.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}
