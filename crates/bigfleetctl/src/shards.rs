//! Finding and dialling shards: by id through the coordinator, by address, or by where
//! they last were.

use std::time::Duration;

use bigfleet_net::{
    grpc::connect_lazy, identity::Identity, message_limits, rule::Rule, tls::Security,
};
use bigfleet_wire::v1alpha1::{
    InspectNeedsRequest, ShardRegistryEntry, inspect_needs_response::Frame,
    shard_admin_client::ShardAdminClient, shard_observe_client::ShardObserveClient,
    shard_read_client::ShardReadClient,
};
use clap::Args;
use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;
use tonic::{Code, Request, Response, Status, transport::Channel};

use crate::{Error, console::Console, fleet::Fleet, known};

/// Shards that are asked at a time.
pub(crate) const AT_ONCE: usize = 64;

/// Which shard a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct Select {
    /// Id of the shard; may be left out where there is but one, or one that has needs of --cluster
    #[arg(long, value_name = "ID", conflicts_with = "shard_addr")]
    pub shard: Option<String>,
    /// host:port of the shard, without asking the coordinator
    #[arg(long, value_name = "ADDR")]
    pub shard_addr: Option<String>,
}

/// One shard to call.
#[derive(Debug, Clone)]
pub struct Shard {
    /// Its id, or its address where no id is known.
    pub name: String,
    /// Where it is.
    pub addr: String,
    channel: Channel,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

impl Shard {
    /// Dials at the first call. Under mTLS the server must be the shard that is meant,
    /// for an address may by now be another's.
    pub fn dial(
        id: Option<&str>,
        addr: &str,
        security: &Security,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let expect =
            id.map_or_else(Rule::any_shard, |id| Rule::exactly(Identity::Shard(id.to_owned())));
        let channel = connect_lazy(addr, security, expect)?;
        let (name, addr) = (id.unwrap_or(addr).to_owned(), addr.to_owned());
        Ok(Self { name, addr, channel, timeout })
    }

    /// Verdicts.
    #[must_use]
    pub fn read(&self) -> ShardReadClient<Channel> {
        message_limits!(ShardReadClient::new(self.channel.clone()))
    }

    /// The live view.
    #[must_use]
    pub fn observe(&self) -> ShardObserveClient<Channel> {
        message_limits!(ShardObserveClient::new(self.channel.clone()))
    }

    /// The brake.
    #[must_use]
    pub fn admin(&self) -> ShardAdminClient<Channel> {
        message_limits!(ShardAdminClient::new(self.channel.clone()))
    }

    /// A message with this command's deadline.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }

    /// The answer to such a request, and what a refusal means.
    pub async fn answer<R>(
        &self,
        what: &str,
        called: impl Future<Output = Result<Response<R>, Status>>,
    ) -> Result<R, Error> {
        let late = |_| Err(Status::deadline_exceeded("no answer in time"));
        let answered = timeout(self.timeout, called).await.unwrap_or_else(late);
        answered.map(Response::into_inner).map_err(|status| self.refused(what, &status))
    }

    /// Whether it has needs of a cluster.
    async fn serves(&self, cluster: &str) -> Result<bool, Error> {
        let what = "needs";
        let cluster_id = cluster.to_owned();
        let request = self.request(InspectNeedsRequest { cluster_id, limit: 1 });
        let mut rpc = self.read();
        let mut frames = self.answer(what, rpc.inspect_needs(request)).await?;
        let refused = |status| self.refused(what, &status);
        while let Some(frame) = frames.message().await.map_err(refused)? {
            if let Some(Frame::Need(_)) = frame.frame {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What this refusal by the shard means.
    #[must_use]
    pub fn refused(&self, what: &str, status: &Status) -> Error {
        if matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded) {
            let problem = status.message();
            return Error::Failed(format!(
                "shard {} does not answer at {}: {problem}",
                self.name, self.addr
            ));
        }
        Error::refused(format!("{what} of shard {}", self.name), status)
    }
}

/// The shard that is meant.
pub async fn select(
    fleet: &mut Fleet,
    console: &mut Console,
    select: &Select,
) -> Result<Shard, Error> {
    if let Some(addr) = &select.shard_addr {
        return Shard::dial(None, addr, &fleet.security, fleet.timeout);
    }
    let addresses = addresses(fleet, console).await?;
    one_of(fleet, &addresses, select)
}

/// The shard that is meant, or where none is named the one that serves this cluster.
pub async fn serving(
    fleet: &mut Fleet,
    console: &mut Console,
    named: &Select,
    cluster: &str,
) -> Result<Shard, Error> {
    if named.shard.is_some() || named.shard_addr.is_some() || cluster.is_empty() {
        return select(fleet, console, named).await;
    }
    let addresses = addresses(fleet, console).await?;
    if addresses.len() < 2 {
        return one_of(fleet, &addresses, named);
    }
    let ask = |(id, addr): (&String, &String)| {
        let dialled = Shard::dial(Some(id), addr, &fleet.security, fleet.timeout);
        async move {
            let shard = dialled?;
            Ok::<_, Error>(shard.serves(cluster).await?.then_some(shard))
        }
    };
    let asked: Vec<_> = addresses.iter().map(ask).collect();
    let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(shard) => found.extend(shard),
            Err(error) => silent.push(error.to_string()),
        }
    }
    match <[Shard; 1]>::try_from(found) {
        Ok([shard]) => Ok(shard),
        Err(none) if none.is_empty() => {
            let asked = addresses.len();
            let none =
                format!("none of {asked} shards has needs of {cluster}; say --shard to ask one");
            let lines: Vec<String> = std::iter::once(none).chain(silent).collect();
            Err(Error::Failed(lines.join("\n  ")))
        }
        Err(several) => {
            let names: Vec<&str> = several.iter().map(|shard| shard.name.as_str()).collect();
            let names = names.join(", ");
            Err(Error::Usage(format!("{cluster} has needs in several; say --shard: {names}")))
        }
    }
}

fn one_of(fleet: &Fleet, addresses: &known::Addresses, select: &Select) -> Result<Shard, Error> {
    let known = || addresses.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let (id, addr) = match &select.shard {
        Some(id) => addresses.get_key_value(id).ok_or_else(|| {
            Error::Failed(format!("no shard is called {id:?}; known: {}", known()))
        })?,
        None if addresses.len() == 1 => {
            addresses.first_key_value().ok_or_else(|| Error::Failed("no shard".to_owned()))?
        }
        None if addresses.is_empty() => {
            return Err(Error::Failed(
                "no shard has registered; give its address with --shard-addr".to_owned(),
            ));
        }
        None => {
            return Err(Error::Usage(format!("say which shard with --shard: {}", known())));
        }
    };
    Shard::dial(Some(id), addr, &fleet.security, fleet.timeout)
}

/// Every shard as the coordinator lists it; where it gives no list, those last known,
/// and why there is none.
pub async fn listed(
    fleet: &mut Fleet,
    console: &mut Console,
) -> (Vec<ShardRegistryEntry>, Option<Error>) {
    match fleet.coordinator.shards().await {
        Ok(shards) => {
            fleet.remember(console, &shards);
            (shards, None)
        }
        Err(error) => {
            let entry = |(shard_id, address)| ShardRegistryEntry {
                shard_id,
                address,
                ..ShardRegistryEntry::default()
            };
            (fleet.known.read().into_iter().map(entry).collect(), Some(error))
        }
    }
}

/// Where all shards are: as the coordinator says, else as it last said.
pub async fn addresses(
    fleet: &mut Fleet,
    console: &mut Console,
) -> Result<known::Addresses, Error> {
    let (shards, failure) = listed(fleet, console).await;
    match failure {
        None => {}
        Some(error @ Error::NoLeader(_)) if !shards.is_empty() => {
            console.note(&format!("note: {error}; using the last known addresses of shards"));
        }
        Some(error) => return Err(error),
    }
    Ok(known::of_list(&shards))
}
