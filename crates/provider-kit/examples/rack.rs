//! A whole provider: a rack of machines that are rented by the hour.
//!
//! The "machines" are directories, so that you can watch it work with `ls`; replace
//! the file calls with those of your cloud.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use bigfleet_provider_kit::{
    CapacityType, Caps, Cloud, CloudError, Host, Machine, Offer, Op, Ready,
    flags::{self, ProviderFlags},
    serve,
};

/// Machines of one rack
#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    provider: ProviderFlags,

    /// Where the machines are
    #[arg(long, value_name = "DIR", default_value = "rack")]
    rack: PathBuf,
}

fn main() -> ExitCode {
    let flags: Flags = flags::parse();
    let slots = flags.provider.seed_count;
    serve::main("rack", &flags.provider, async || Rack::open(slots, &flags.rack))
}

/// So many places in one rack; a machine that is switched on is a directory.
pub struct Rack {
    slots: usize,
    directory: PathBuf,
}

impl Rack {
    /// Takes the rack into service, with the machines that are on already.
    pub fn open(slots: usize, directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self { slots, directory: directory.to_owned() })
    }

    fn host(&self, machine: &Machine) -> PathBuf {
        self.directory.join(machine.id.as_str())
    }
}

impl Cloud for Rack {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    /// Every slot, whether it has a host or not. The kit calls this again and again,
    /// and finds out from it which hosts were lost.
    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let quantity = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let offer = |number: usize| {
            let id = format!("slot-{number:06}");
            Offer {
                host: self.directory.join(&id).exists().then(|| reference(&id)),
                id,
                instance_type: "rack.large".into(),
                zone: "zone-a".into(),
                capacity_type: CapacityType::OnDemand,
                price_per_hour: 1.0,
                interruption_probability: 0.01,
                resources: [quantity("cpu", "8"), quantity("memory", "32Gi")].into(),
                allocatable: [quantity("cpu", "7500m"), quantity("memory", "28Gi")].into(),
                labels: BTreeMap::new(),
            }
        };
        Ok((0..self.slots).map(offer).collect())
    }

    /// Switching on what is on already changes nothing, so a repeated call is harmless.
    /// Where your cloud would launch a second host, give it `op.id` as client token.
    async fn create(&self, _: &Op, machine: &Machine) -> Result<Host, CloudError> {
        fs::create_dir_all(self.host(machine)).map_err(|error| failed(&error))?;
        Ok(Host::new(reference(&machine.id)))
    }

    /// The blob is a secret: it goes to the host, and into no log and no error text.
    async fn bootstrap(
        &self,
        _: &Op,
        machine: &Machine,
        cluster: &str,
        blob: &[u8],
    ) -> Result<(), CloudError> {
        let mut only_ours = OpenOptions::new();
        only_ours.write(true).create(true).truncate(true).mode(0o600);
        let opened = only_ours.open(self.host(machine).join("join"));
        opened.and_then(|mut file| file.write_all(blob)).map_err(|error| failed(&error))?;
        // A real machine runs the blob and joins; this one says at once that it has.
        fs::write(self.host(machine).join("node"), cluster).map_err(|error| failed(&error))
    }

    /// What the cluster says, not what we hope for.
    async fn ready(&self, _: &Op, machine: &Machine, cluster: &str) -> Result<Ready, CloudError> {
        let joined = fs::read_to_string(self.host(machine).join("node"));
        Ok(if joined.is_ok_and(|joined| joined == cluster) { Ready::Yes } else { Ready::NotYet })
    }

    /// Nothing of this cluster stays on the host for the next one.
    async fn drain(&self, _: &Op, machine: &Machine, _: Duration) -> Result<(), CloudError> {
        for file in ["node", "join"] {
            match fs::remove_file(self.host(machine).join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn destroy(&self, _: &Op, machine: &Machine) -> Result<(), CloudError> {
        fs::remove_dir_all(self.host(machine)).map_err(|error| failed(&error))
    }
}

fn reference(slot: &str) -> String {
    format!("rack://{slot}")
}

/// The kit takes `Gone` from a drain or a destroy as done, elsewhere as a failure.
fn failed(error: &io::Error) -> CloudError {
    match error.kind() {
        io::ErrorKind::NotFound => CloudError::Gone("it is switched off".into()),
        _ => CloudError::Retry(error.to_string()),
    }
}
