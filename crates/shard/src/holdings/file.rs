//! Holdings on disk: one file, old or new, never torn.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use bigfleet_model::{ClusterId, MachineId, PenaltyBucket};
use serde::{Deserialize, Serialize};

use super::{Assignment, Domain, Drain, Holdings, Keys, Out, Slice, TransferId, TransferMachine};
use crate::data_dir::write_atomically;

/// The file cannot be used; the start ends.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: what this shard owns cannot be read: {problem}; do not remove the file: ask the \
     coordinator to remove the shard first, or put the file back from a backup",
    path.display()
)]
pub struct Error {
    path: PathBuf,
    problem: String,
}

/// What the file says; nothing at all if there is none.
pub fn read(path: &Path) -> Result<Holdings, Error> {
    let refused = |problem: String| Error { path: path.to_owned(), problem };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holdings::default()),
        Err(error) => return Err(refused(error.to_string())),
    };
    decode(&bytes).map_err(refused)
}

/// Replaces the file. When this returns, it is there, whatever happens.
pub fn write(path: &Path, holdings: &Holdings) -> io::Result<()> {
    write_atomically(path, &encode(holdings)?)
}

/// The bytes of the file.
pub fn encode(holdings: &Holdings) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Form::of(holdings))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What bytes of a file say.
pub fn decode(bytes: &[u8]) -> Result<Holdings, String> {
    let form: Form = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if form.format != FORMAT {
        return Err(format!("format {} is not {FORMAT}, which this version knows", form.format));
    }
    form.holdings()
}

/// Another one is refused: to overlook what one does not know is to own too much.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Form {
    format: u32,
    fleet_id: String,
    term: i64,
    assignment: Option<AssignmentForm>,
    releasing: KeysForm,
    settled: Vec<MachineForm>,
    out: Vec<OutForm>,
}

#[derive(Serialize, Deserialize)]
struct AssignmentForm {
    version: i64,
    digest: u64,
    held: KeysForm,
    machines_in: Vec<MachineForm>,
    machines_out: Vec<MachineForm>,
    quota_slices: Vec<SliceForm>,
    open_transfers: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct KeysForm {
    domains: Vec<DomainForm>,
    clusters: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct DomainForm {
    key: String,
    value: String,
}

#[derive(Serialize, Deserialize)]
struct MachineForm {
    transfer: String,
    machine: String,
    home: DomainForm,
    from: String,
}

#[derive(Serialize, Deserialize)]
struct SliceForm {
    provider: String,
    region: String,
    slice: i32,
}

#[derive(Serialize, Deserialize)]
struct OutForm {
    transfer: String,
    home: DomainForm,
    machines: Vec<String>,
    drain: Option<DrainForm>,
}

#[derive(Serialize, Deserialize)]
struct DrainForm {
    priority: i32,
    /// By its number on the wire. Earlier versions did not write it.
    #[serde(default)]
    bucket: i32,
    over: bool,
}

impl DrainForm {
    fn drain(self) -> Result<Drain, String> {
        let bucket = PenaltyBucket::from_wire(self.bucket);
        let bucket = bucket.ok_or_else(|| format!("{} is no penalty bucket", self.bucket))?;
        Ok(Drain { priority: self.priority, bucket, over: self.over })
    }
}

impl From<&Domain> for DomainForm {
    fn from(domain: &Domain) -> Self {
        Self { key: domain.key.clone(), value: domain.value.clone() }
    }
}

impl DomainForm {
    fn domain(self) -> Result<Domain, String> {
        Domain::new(self.key, self.value).map_err(|error| error.to_string())
    }
}

impl KeysForm {
    fn of(keys: &Keys) -> Self {
        let clusters = keys.clusters.iter().map(ToString::to_string).collect();
        Self { domains: keys.domains.iter().map(Into::into).collect(), clusters }
    }

    fn keys(self) -> Result<Keys, String> {
        let domains: Result<_, _> = self.domains.into_iter().map(DomainForm::domain).collect();
        let clusters = self.clusters.into_iter().map(ClusterId::from).collect();
        Ok(Keys { domains: domains?, clusters })
    }
}

impl From<&TransferMachine> for MachineForm {
    fn from(one: &TransferMachine) -> Self {
        Self {
            transfer: one.transfer.to_string(),
            machine: one.machine.to_string(),
            home: (&one.home).into(),
            from: one.from.clone(),
        }
    }
}

fn machines(forms: Vec<MachineForm>) -> Result<BTreeSet<TransferMachine>, String> {
    let machine = |form: MachineForm| {
        Ok(TransferMachine {
            transfer: form.transfer.into(),
            machine: form.machine.into(),
            home: form.home.domain()?,
            from: form.from,
        })
    };
    forms.into_iter().map(machine).collect()
}

impl AssignmentForm {
    fn of(assignment: &Assignment) -> Self {
        let slice = |one: &Slice| SliceForm {
            provider: one.provider.clone(),
            region: one.region.clone(),
            slice: one.slice,
        };
        Self {
            version: assignment.version,
            digest: assignment.digest,
            held: KeysForm::of(&assignment.held),
            machines_in: assignment.machines_in.iter().map(Into::into).collect(),
            machines_out: assignment.machines_out.iter().map(Into::into).collect(),
            quota_slices: assignment.slices.iter().map(slice).collect(),
            open_transfers: assignment.open_transfers.iter().map(ToString::to_string).collect(),
        }
    }

    fn assignment(self) -> Result<Assignment, String> {
        let slice =
            |one: SliceForm| Slice { provider: one.provider, region: one.region, slice: one.slice };
        Ok(Assignment {
            version: self.version,
            digest: self.digest,
            held: self.held.keys()?,
            machines_in: machines(self.machines_in)?,
            machines_out: machines(self.machines_out)?,
            slices: self.quota_slices.into_iter().map(slice).collect(),
            open_transfers: self.open_transfers.into_iter().map(TransferId::from).collect(),
        })
    }
}

impl OutForm {
    fn of((transfer, out): (&TransferId, &Out)) -> Self {
        let drain = |one: Drain| DrainForm {
            priority: one.priority,
            bucket: one.bucket.to_wire(),
            over: one.over,
        };
        Self {
            transfer: transfer.to_string(),
            home: (&out.home).into(),
            machines: out.machines.iter().map(ToString::to_string).collect(),
            drain: out.drain.map(drain),
        }
    }

    fn out(self) -> Result<(TransferId, Out), String> {
        let out = Out {
            home: self.home.domain()?,
            machines: self.machines.into_iter().map(MachineId::from).collect(),
            drain: self.drain.map(DrainForm::drain).transpose()?,
        };
        Ok((self.transfer.into(), out))
    }
}

impl Form {
    fn of(holdings: &Holdings) -> Self {
        let fleet = holdings.fleet.as_ref();
        Self {
            format: FORMAT,
            fleet_id: fleet.map_or_else(String::new, ToString::to_string),
            term: holdings.term,
            assignment: holdings.assignment.as_ref().map(AssignmentForm::of),
            releasing: KeysForm::of(&holdings.releasing),
            settled: holdings.settled.iter().map(Into::into).collect(),
            out: holdings.out.iter().map(OutForm::of).collect(),
        }
    }

    fn holdings(self) -> Result<Holdings, String> {
        let fleet = match self.fleet_id.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|error| format!("{error}"))?),
        };
        let out: Result<_, String> = self.out.into_iter().map(OutForm::out).collect();
        Ok(Holdings {
            fleet,
            term: self.term,
            assignment: self.assignment.map(AssignmentForm::assignment).transpose()?,
            releasing: self.releasing.keys()?,
            settled: machines(self.settled)?,
            out: out?,
        })
    }
}
