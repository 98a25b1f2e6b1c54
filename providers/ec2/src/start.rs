//! From flags to a cloud that may be served.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    api::Ec2,
    cloud::{Ec2Cloud, Parts},
    command::Commands,
    config::{Ec2Config, Offering},
    flags::{CloudFlags, Ec2Flags},
    http::{Http, HttpError},
    json::{JsonService, Version},
    prices::{self, PriceBook, PriceSources},
    queue::Queue,
    sign::{Credentials, Scope},
    slots::Slots,
    standin::{self, StandIn},
};

/// Why the provider does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Flags.
    #[error(transparent)]
    Flags(#[from] crate::flags::FlagError),
    /// The file.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// An endpoint.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Nobody to call as.
    #[error("no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
    Credentials,
    /// Nobody told a price.
    #[error(
        "no price for {capacity} {instance_type} in {zone}, and an unpriced offer would win every \
         comparison; see that --pricing-endpoint and --ec2-endpoint answer, or pin one in --config \
         under pinned_prices"
    )]
    Unpriced {
        /// How it is bought.
        capacity: &'static str,
        /// Which type.
        instance_type: String,
        /// Where.
        zone: String,
    },
    /// The catalogue does not know a type.
    #[error(
        "resources of {instance_type} are neither in --config nor to be had from the catalogue: \
         {problem}"
    )]
    Resources {
        /// Which type.
        instance_type: String,
        /// What is wrong.
        problem: String,
    },
    /// Kubeconfigs without the means to use them.
    #[error(
        "--config: kubeconfigs: this build cannot read nodes; build with --features node-ready"
    )]
    NodeReady,
    /// The simulated cloud.
    #[error("--use-fake-backend: {0}")]
    StandIn(#[from] standin::Error),
}

/// Checks the flags, asks for prices and types, and builds the cloud.
pub async fn start(flags: &Ec2Flags) -> Result<Ec2Cloud, StartError> {
    flags.check()?;
    let provider = &flags.provider;
    if provider.use_fake_backend {
        let file = (!provider.state.as_os_str().is_empty()).then(|| provider.state.join("standin"));
        let settings = standin::Settings { file, ..standin::Settings::default() };
        let fake = StandIn::start(settings, None).await?;
        tracing::warn!(url = fake.url(), "the cloud is simulated: --use-fake-backend");
        let cloud = fake.flags();
        let config = standin::config(provider.seed_count, &fake.url());
        let credentials = standin::credentials();
        return build(&provider.provider, &cloud, config, credentials, Some(fake)).await;
    }
    let config = Ec2Config::read(&flags.cloud.config)?;
    let credentials = Credentials::from_environment().ok_or(StartError::Credentials)?;
    build(&provider.provider, &flags.cloud, config, credentials, None).await
}

async fn build(
    provider: &str,
    flags: &CloudFlags,
    mut config: Ec2Config,
    credentials: Credentials,
    fake: Option<StandIn>,
) -> Result<Ec2Cloud, StartError> {
    if cfg!(not(feature = "node-ready")) && !config.kubeconfigs.is_empty() {
        return Err(StartError::NodeReady);
    }
    let urls = [
        &flags.ec2_endpoint,
        &flags.pricing_endpoint,
        &flags.command_endpoint,
        &flags.queue_endpoint,
        &config.spot_advisor_url,
    ];
    let http = Http::new(credentials, urls.iter().any(|url| url.starts_with("https:")))?;
    let region = config.region.clone();
    let at = |url: &str, region: &str, service: &str| {
        http.endpoint(url, Scope { region: region.to_owned(), service: service.to_owned() })
    };
    let ec2 = Arc::new(Ec2::new(at(&flags.ec2_endpoint, &region, "ec2")?, config.page_size));
    let command = at(&flags.command_endpoint, &region, "ssm")?;
    let command = JsonService::new(command, "AmazonSSM", Version::V1_1);
    let commands = Commands::new(command, config.command_bytes);
    let queue = if flags.queue_endpoint.is_empty() {
        tracing::warn!("no --queue-endpoint: interruptions are noticed by sweeps alone");
        None
    } else {
        let service = at(&flags.queue_endpoint, &region, "sqs")?.root();
        let service = JsonService::new(service, "AmazonSQS", Version::V1_0);
        Some(Queue { service, url: flags.queue_endpoint.clone() })
    };
    let pricing = if flags.pricing_endpoint.is_empty() {
        None
    } else {
        let service = at(&flags.pricing_endpoint, &config.pricing_region, "pricing")?;
        Some(JsonService::new(service, "AWSPriceListService", Version::V1_1))
    };
    let sources = PriceSources {
        pricing,
        http: http.clone(),
        advisor_url: config.spot_advisor_url.clone(),
        region: region.clone(),
    };
    complete(&ec2, &mut config).await?;
    let book = PriceBook::new(config.pinned_prices.clone());
    let types: Vec<_> = config.types().into_iter().collect();
    sources.refresh_on_demand(&types, &book).await;
    prices::refresh_spot(&ec2, &types, &book).await;
    if let Some(Offering { capacity, instance_type, zone, .. }) = book.unpriced(&config) {
        return Err(StartError::Unpriced {
            capacity: capacity.name(),
            instance_type: instance_type.clone(),
            zone: zone.clone(),
        });
    }
    let slots = Slots::new(provider, config.offerings.clone());
    let provider = provider.to_owned();
    Ok(Ec2Cloud::new(Parts { provider, config, ec2, slots, book, sources, commands, queue, fake }))
}

/// Resources that the file leaves out come from the catalogue of types.
async fn complete(ec2: &Ec2, config: &mut Ec2Config) -> Result<(), StartError> {
    let open = |offering: &&Offering| offering.resources.is_empty();
    let mut types: Vec<String> =
        config.offerings.iter().filter(open).map(|one| one.instance_type.clone()).collect();
    types.sort_unstable();
    types.dedup();
    let Some(first) = types.first() else { return Ok(()) };
    let names: Vec<_> = types.iter().map(String::as_str).collect();
    let resources = |instance_type: &str, problem: String| StartError::Resources {
        instance_type: instance_type.to_owned(),
        problem,
    };
    let told = ec2.types(&names).await.map_err(|error| resources(first, error.to_string()))?;
    for offering in config.offerings.iter_mut().filter(|one| one.resources.is_empty()) {
        let name = &offering.instance_type;
        let info = told.iter().find(|info| info.instance_type == *name);
        let Some(info) = info.filter(|info| info.vcpus > 0 && info.memory_mib > 0) else {
            return Err(resources(name, "it does not know the type".to_owned()));
        };
        offering.resources = BTreeMap::from([
            ("cpu".to_owned(), info.vcpus.to_string()),
            ("memory".to_owned(), format!("{}Mi", info.memory_mib)),
        ]);
        if info.gpus > 0 {
            offering.resources.insert("nvidia.com/gpu".to_owned(), info.gpus.to_string());
        }
    }
    Ok(())
}
