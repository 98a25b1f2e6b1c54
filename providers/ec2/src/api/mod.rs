//! The query API, as far as a provider needs it.

mod error;
mod xml;

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use bytes::Bytes;
pub use error::{ApiError, Meaning};
use tokio::time::sleep;

use crate::{
    http::{Endpoint, LIMIT},
    rate::Pace,
};

const VERSION: &str = "2016-11-15";
/// Tries of one call, over some six seconds; the kit tries on later.
const TRIES: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(200);
/// Types that one call may name.
const TYPE_NAMES: usize = 100;
/// Values of one filter.
pub const FILTER_VALUES: usize = 200;

/// Where an instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Up.
    Running,
    /// Going to stop, or stopped: off, but still ours and partly paid for.
    Stopped,
    /// Going, or gone.
    Terminated,
    /// A word we do not know: not believed to be gone.
    Unknown,
}

impl InstanceState {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "pending" => Self::Pending,
            "running" => Self::Running,
            "stopping" | "stopped" => Self::Stopped,
            "shutting-down" | "terminated" => Self::Terminated,
            _ => Self::Unknown,
        }
    }

    /// Whether it holds its slot.
    #[must_use]
    pub fn is_live(self) -> bool {
        self != Self::Terminated
    }
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// For example `i-0123456789abcdef0`.
    pub id: String,
    /// Where it stands.
    pub state: InstanceState,
    /// Its type.
    pub instance_type: String,
    /// Where it is.
    pub zone: String,
    /// May be taken away.
    pub spot: bool,
    /// Of the call that brought it.
    pub client_token: String,
    /// As the API writes it; sorts by time.
    pub launched: String,
    /// Why it ended; a code.
    pub reason: String,
    /// All of them.
    pub tags: BTreeMap<String, String>,
}

impl Instance {
    /// The value of a tag.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str)
    }
}

/// A price of spot capacity at some time.
#[derive(Clone, Debug, PartialEq)]
pub struct SpotPrice {
    /// Of which type.
    pub instance_type: String,
    /// Where.
    pub zone: String,
    /// Since when; sorts by time.
    pub at: String,
    /// Dollars an hour.
    pub price: f64,
}

/// What the catalogue says of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// Its name.
    pub instance_type: String,
    /// Virtual CPUs.
    pub vcpus: u64,
    /// Memory.
    pub memory_mib: u64,
    /// Accelerators.
    pub gpus: u64,
}

/// One `RunInstances`. Everything in it depends on configuration and the operation
/// alone, so that a repeated call is the same call.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The operation's id.
    pub client_token: &'a str,
    /// Which type.
    pub instance_type: &'a str,
    /// Where.
    pub zone: &'a str,
    /// Spot market or not.
    pub spot: bool,
    /// Given at launch, so that no instance is ever without them.
    pub tags: &'a [(&'a str, &'a str)],
    /// Further parameters of the account: image, network, role.
    pub account: &'a [(String, String)],
}

/// The client.
#[derive(Debug)]
pub struct Ec2 {
    endpoint: Endpoint,
    pace: Pace,
    page_size: u16,
}

type Params = Vec<(String, String)>;

impl Ec2 {
    /// Of this endpoint, with so many rows a page.
    #[must_use]
    pub fn new(endpoint: Endpoint, page_size: u16) -> Self {
        Self { endpoint, pace: Pace::default(), page_size }
    }

    /// One instance, or the one that the same token brought before.
    pub async fn run(&self, launch: &Launch<'_>) -> Result<Instance, ApiError> {
        let mut params: Params = vec![
            pair("MinCount", &1),
            pair("MaxCount", &1),
            pair("ClientToken", &launch.client_token),
            pair("InstanceType", &launch.instance_type),
            pair("Placement.AvailabilityZone", &launch.zone),
            pair("TagSpecification.1.ResourceType", &"instance"),
        ];
        if launch.spot {
            params.push(pair("InstanceMarketOptions.MarketType", &"spot"));
        }
        for (number, (key, value)) in (1..).zip(launch.tags) {
            params.push(pair(&format!("TagSpecification.1.Tag.{number}.Key"), key));
            params.push(pair(&format!("TagSpecification.1.Tag.{number}.Value"), value));
        }
        params.extend(launch.account.iter().cloned());
        let text = self.call("RunInstances", params).await?;
        let document = xml::parse("RunInstances", &text)?;
        let instance = xml::instances(&document).into_iter().next();
        instance.ok_or_else(|| xml::malformed("RunInstances", &"no instance in it"))
    }

    /// All that match every filter; values of one filter are alternatives, at most
    /// [`FILTER_VALUES`]. Ids that are not visible so far are simply absent.
    pub async fn describe(&self, filters: &[(&str, &[&str])]) -> Result<Vec<Instance>, ApiError> {
        let mut params: Params = vec![pair("MaxResults", &self.page_size)];
        write_filters(&mut params, filters);
        self.pages("DescribeInstances", params, xml::instances).await
    }

    /// Ends an instance.
    pub async fn terminate(&self, id: &str) -> Result<(), ApiError> {
        self.call("TerminateInstances", vec![pair("InstanceId.1", &id)]).await.map(drop)
    }

    /// Power cycle.
    pub async fn reboot(&self, id: &str) -> Result<(), ApiError> {
        self.call("RebootInstances", vec![pair("InstanceId.1", &id)]).await.map(drop)
    }

    /// Sets one tag.
    pub async fn tag(&self, id: &str, key: &str, value: &str) -> Result<(), ApiError> {
        let params =
            vec![pair("ResourceId.1", &id), pair("Tag.1.Key", &key), pair("Tag.1.Value", &value)];
        self.call("CreateTags", params).await.map(drop)
    }

    /// Removes one tag.
    pub async fn untag(&self, id: &str, key: &str) -> Result<(), ApiError> {
        let params = vec![pair("ResourceId.1", &id), pair("Tag.1.Key", &key)];
        self.call("DeleteTags", params).await.map(drop)
    }

    /// The latest price of each type and zone.
    pub async fn spot_prices(&self, types: &[&str]) -> Result<Vec<SpotPrice>, ApiError> {
        let mut all = Vec::new();
        for names in types.chunks(TYPE_NAMES) {
            let now = jiff::Timestamp::now();
            let mut params = type_names(names);
            params.extend([pair("MaxResults", &self.page_size), pair("StartTime", &now)]);
            params.push(pair("ProductDescription.1", &"Linux/UNIX"));
            all.extend(self.pages("DescribeSpotPriceHistory", params, xml::spot_prices).await?);
        }
        Ok(all)
    }

    /// What the catalogue says of these types.
    pub async fn types(&self, types: &[&str]) -> Result<Vec<TypeInfo>, ApiError> {
        let mut all = Vec::new();
        for names in types.chunks(TYPE_NAMES) {
            let params = type_names(names);
            all.extend(self.pages("DescribeInstanceTypes", params, xml::types).await?);
        }
        Ok(all)
    }

    async fn pages<T>(
        &self,
        action: &str,
        mut params: Params,
        read: impl Fn(&roxmltree::Document<'_>) -> Vec<T>,
    ) -> Result<Vec<T>, ApiError> {
        let mut all = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let text = self.call(action, params.clone()).await?;
            let document = xml::parse(action, &text)?;
            all.extend(read(&document));
            let next = xml::next_token(&document);
            if next.is_some() && next == token {
                return Err(xml::malformed(action, &"the next page is this page"));
            }
            params.retain(|(key, _)| key != "NextToken");
            let Some(next) = next else { return Ok(all) };
            params.push(pair("NextToken", &next));
            token = Some(next);
        }
    }

    /// One call in its turn, a few times if the service asks for patience. Safe for
    /// every action we know: launches carry a token, the others set what they say.
    async fn call(&self, action: &str, mut params: Params) -> Result<String, ApiError> {
        params.push(pair("Action", &action));
        params.push(pair("Version", &VERSION));
        let body = Bytes::from(form(&params));
        patiently(|| self.once(action, body.clone())).await
    }

    async fn once(&self, action: &str, body: Bytes) -> Result<String, ApiError> {
        const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
        self.pace.turn().await;
        let answer = self.endpoint.post(FORM, None, body, LIMIT).await?;
        let text = String::from_utf8(answer.body.into())
            .map_err(|error| xml::malformed(action, &error))?;
        if answer.status.is_success() {
            self.pace.served();
            return Ok(text);
        }
        let refusal = xml::refusal(answer.status, &text);
        if refusal.meaning() == Meaning::Throttled {
            self.pace.throttled();
        }
        tracing::debug!(action, %refusal, "the API refused");
        Err(refusal)
    }
}

/// Tries again while the service throttles or is down.
pub(crate) async fn patiently<T, F>(call: impl Fn() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let mut tries = 1;
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let passing = matches!(error.meaning(), Meaning::Throttled | Meaning::Unavailable);
        if !passing || tries == TRIES {
            return Err(error);
        }
        sleep(BETWEEN * 2u32.pow(tries - 1)).await;
        tries += 1;
    }
}

fn form(params: &Params) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish()
}

fn type_names(names: &[&str]) -> Params {
    (1..).zip(names).map(|(number, name)| pair(&format!("InstanceType.{number}"), name)).collect()
}

fn write_filters(params: &mut Params, filters: &[(&str, &[&str])]) {
    for (number, (name, values)) in (1..).zip(filters) {
        params.push(pair(&format!("Filter.{number}.Name"), name));
        for (value_number, value) in (1..).zip(*values) {
            params.push(pair(&format!("Filter.{number}.Value.{value_number}"), value));
        }
    }
}

fn pair(key: &str, value: &dyn Display) -> (String, String) {
    (key.to_owned(), value.to_string())
}
