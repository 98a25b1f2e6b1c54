//! What capacity costs and how likely it is taken away. Asked for in the background and
//! kept: nothing that a List waits for ever asks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{PoisonError, RwLock},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    api::{ApiError, Ec2, SpotPrice},
    config::{Capacity, Ec2Config, Pinned},
    http::Http,
    json::JsonService,
};

/// The advisor's buckets of interruption: under 5 %, 5–10 %, 10–15 %, 15–20 %, above.
const BUCKETS: [f64; 5] = [0.025, 0.075, 0.125, 0.175, 0.30];
/// Of a type that the advisor does not know.
const UNKNOWN: f64 = 0.125;

/// How often prices are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// Market prices drift.
    pub spot: Duration,
    /// List prices change by the month.
    pub on_demand: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        Self { spot: Duration::from_secs(5 * 60), on_demand: Duration::from_secs(60 * 60) }
    }
}

/// The latest known of everything.
#[derive(Debug, Default)]
pub struct PriceBook {
    pinned: BTreeMap<String, Pinned>,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    on_demand: HashMap<String, f64>,
    /// By type, then zone.
    spot: HashMap<String, HashMap<String, f64>>,
    buckets: HashMap<String, usize>,
}

impl PriceBook {
    /// Knows only what is pinned.
    #[must_use]
    pub fn new(pinned: BTreeMap<String, Pinned>) -> Self {
        Self { pinned, known: RwLock::default() }
    }

    /// Dollars an hour; none if nobody ever told.
    #[must_use]
    pub fn price(&self, capacity: Capacity, instance_type: &str, zone: &str) -> Option<f64> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let pinned = self.pinned.get(instance_type);
        match capacity {
            Capacity::OnDemand => {
                let told = known.on_demand.get(instance_type).copied();
                told.or_else(|| pinned.and_then(|pinned| pinned.on_demand))
            }
            Capacity::Spot => {
                let told = known.spot.get(instance_type).and_then(|zones| zones.get(zone)).copied();
                told.or_else(|| pinned.and_then(|pinned| pinned.spot))
            }
        }
        .filter(|price| price.is_finite() && *price > 0.0)
    }

    /// Of being taken away.
    #[must_use]
    pub fn probability(&self, capacity: Capacity, instance_type: &str) -> f64 {
        if capacity == Capacity::OnDemand {
            return 0.0;
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let bucket = known.buckets.get(instance_type).and_then(|bucket| BUCKETS.get(*bucket));
        bucket.copied().unwrap_or(UNKNOWN)
    }

    /// The first offering that nobody has priced.
    #[must_use]
    pub fn unpriced<'a>(&self, config: &'a Ec2Config) -> Option<&'a crate::config::Offering> {
        config.offerings.iter().find(|offering| {
            self.price(offering.capacity, &offering.instance_type, &offering.zone).is_none()
        })
    }

    /// Takes list prices; whether any changed.
    fn learn_on_demand(&self, prices: HashMap<String, f64>) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let news = prices.iter().any(|(name, price)| known.on_demand.get(name) != Some(price));
        known.on_demand.extend(prices);
        news
    }

    /// Takes market prices, the latest of each; whether any changed.
    fn learn_spot(&self, mut prices: Vec<SpotPrice>) -> bool {
        prices.sort_by(|one, other| one.at.cmp(&other.at));
        let mut latest: HashMap<(String, String), f64> = HashMap::new();
        for SpotPrice { instance_type, zone, price, .. } in prices {
            latest.insert((instance_type, zone), price);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut news = false;
        for ((instance_type, zone), price) in latest {
            let old = known.spot.entry(instance_type).or_default().insert(zone, price);
            news |= old != Some(price);
        }
        news
    }

    fn learn_buckets(&self, buckets: HashMap<String, usize>) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let news = known.buckets != buckets;
        known.buckets = buckets;
        news
    }
}

/// Who tells prices.
#[derive(Debug)]
pub struct PriceSources {
    /// List prices; none with an empty `--pricing-endpoint`.
    pub pricing: Option<JsonService>,
    /// For the advisor's public document.
    pub http: Http,
    /// Its address; may be empty.
    pub advisor_url: String,
    /// Where we are.
    pub region: String,
}

impl PriceSources {
    /// Asks for list prices and interruption frequencies; whether anything changed. What
    /// cannot be had keeps its last value.
    pub async fn refresh_on_demand(&self, types: &[&str], book: &PriceBook) -> bool {
        let mut prices = HashMap::new();
        if let Some(pricing) = &self.pricing {
            for name in types {
                match on_demand(pricing, &self.region, name).await {
                    Ok(Some(price)) => drop(prices.insert((*name).to_owned(), price)),
                    Ok(None) => tracing::warn!(instance_type = name, "no list price is told"),
                    Err(error) => tracing::warn!(instance_type = name, %error, "no list price"),
                }
            }
        }
        let mut news = book.learn_on_demand(prices);
        if !self.advisor_url.is_empty() {
            match self.advice().await {
                Ok(buckets) => news |= book.learn_buckets(buckets),
                Err(problem) => tracing::warn!(problem, "no frequencies of interruption"),
            }
        }
        news
    }

    async fn advice(&self) -> Result<HashMap<String, usize>, String> {
        let answer = self.http.get(&self.advisor_url).await.map_err(|error| error.to_string())?;
        let document: Value =
            serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        Ok(buckets(&document, &self.region))
    }
}

/// Refreshes for ever, and says when anything has changed.
pub async fn follow(
    ec2: &Ec2,
    sources: &PriceSources,
    types: &[&str],
    book: &PriceBook,
    cadence: Cadence,
    changed: impl Fn(),
) {
    let mut list_prices = Instant::now() + cadence.on_demand;
    loop {
        sleep(cadence.spot).await;
        let mut news = refresh_spot(ec2, types, book).await;
        if Instant::now() >= list_prices {
            news |= sources.refresh_on_demand(types, book).await;
            list_prices = Instant::now() + cadence.on_demand;
        }
        if news {
            changed();
        }
    }
}

/// Asks for market prices; whether any changed.
pub async fn refresh_spot(ec2: &Ec2, types: &[&str], book: &PriceBook) -> bool {
    if types.is_empty() {
        return false;
    }
    match ec2.spot_prices(types).await {
        Ok(prices) => book.learn_spot(prices),
        Err(error) => {
            tracing::warn!(%error, "no fresh spot prices");
            false
        }
    }
}

async fn on_demand(
    pricing: &JsonService,
    region: &str,
    name: &str,
) -> Result<Option<f64>, ApiError> {
    let filter =
        |field: &str, value: &str| json!({"Type": "TERM_MATCH", "Field": field, "Value": value});
    let body = json!({
        "ServiceCode": "AmazonEC2",
        "FormatVersion": "aws_v1",
        "MaxResults": 100,
        "Filters": [
            filter("instanceType", name),
            filter("regionCode", region),
            filter("operatingSystem", "Linux"),
            filter("tenancy", "Shared"),
            filter("preInstalledSw", "NA"),
            filter("capacitystatus", "Used"),
        ],
    });
    let answer = pricing.call("GetProducts", &body).await?;
    let list = answer.get("PriceList").and_then(Value::as_array).cloned().unwrap_or_default();
    // Each product comes as JSON within JSON.
    let products = list.iter().filter_map(Value::as_str);
    let mut prices = products
        .filter_map(|text| serde_json::from_str(text).ok())
        .filter_map(|product: Value| list_price(&product));
    Ok(prices.next())
}

/// `terms.OnDemand.*.priceDimensions.*.pricePerUnit.USD`, the first above zero.
fn list_price(product: &Value) -> Option<f64> {
    let terms = product.get("terms")?.get("OnDemand")?.as_object()?;
    let dimensions = terms.values().filter_map(|term| term.get("priceDimensions")?.as_object());
    dimensions
        .flat_map(|dimensions| dimensions.values())
        .filter_map(|dimension| dimension.get("pricePerUnit")?.get("USD")?.as_str())
        .filter_map(|text| text.parse().ok())
        .find(|price: &f64| *price > 0.0)
}

/// `spot_advisor.<region>.Linux.<type>.r`.
fn buckets(document: &Value, region: &str) -> HashMap<String, usize> {
    let types = document
        .get("spot_advisor")
        .and_then(|regions| regions.get(region)?.get("Linux")?.as_object());
    let bucket = |entry: &Value| usize::try_from(entry.get("r")?.as_u64()?).ok();
    types
        .into_iter()
        .flatten()
        .filter_map(|(name, entry)| Some((name.clone(), bucket(entry)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{
        http::LIMIT,
        json::Version,
        sign::Scope,
        standin::{self, StandIn},
    };

    /// Prices move while the provider runs: each change is told once, what stays is not
    /// told, and a cloud that does not answer leaves the last prices.
    #[tokio::test]
    async fn prices_are_followed_and_survive_their_source() {
        let cloud = StandIn::start(standin::Settings::default(), None).await.unwrap();
        let (url, config) = (cloud.url(), standin::config(8, &cloud.url()));
        let http = Http::new(standin::credentials(), false).unwrap();
        let at = |service: &str, region: &str| {
            let scope = Scope { region: region.to_owned(), service: service.to_owned() };
            http.endpoint(&url, scope).unwrap()
        };
        let ec2 = Ec2::new(at("ec2", &config.region), config.page_size);
        let pricing = at("pricing", &config.pricing_region);
        let sources = PriceSources {
            pricing: Some(JsonService::new(pricing, "AWSPriceListService", Version::V1_1)),
            http: http.clone(),
            advisor_url: config.spot_advisor_url.clone(),
            region: config.region.clone(),
        };
        let (name, zone) = ("m6i.large", "standin-1b");
        let (book, told) = (PriceBook::default(), AtomicUsize::new(0));
        assert!(refresh_spot(&ec2, &[name], &book).await);
        assert!(sources.refresh_on_demand(&[name], &book).await);
        let cadence =
            Cadence { spot: Duration::from_millis(20), on_demand: Duration::from_millis(50) };
        let types = [name];
        let changed = || {
            told.fetch_add(1, Ordering::SeqCst);
        };
        let follow = follow(&ec2, &sources, &types, &book, cadence, changed);

        let set = async |price: Value| {
            let scope = Scope { region: "r".into(), service: "admin".into() };
            let endpoint = http.endpoint(&format!("{url}/admin/price"), scope).unwrap();
            let body = price.to_string().into();
            let answer = endpoint.post("application/json", None, body, LIMIT).await.unwrap();
            assert!(answer.status.is_success(), "{answer:?}");
        };
        let shown = async |capacity, price| {
            while book.price(capacity, name, zone) != Some(price) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let story = async {
            set(json!({"type": name, "zone": zone, "price": 0.077})).await;
            shown(Capacity::Spot, 0.077).await;
            set(json!({"type": name, "price": 0.2})).await;
            shown(Capacity::OnDemand, 0.2).await;
            // As long as several refreshes, in which nothing is new.
            sleep(20 * cadence.spot).await;
            assert_eq!(told.load(Ordering::SeqCst), 2);
            drop(cloud);
            sleep(20 * cadence.spot).await;
            assert_eq!(book.price(Capacity::Spot, name, zone), Some(0.077));
            assert_eq!(book.price(Capacity::OnDemand, name, zone), Some(0.2));
        };
        tokio::select! {
            () = follow => {}
            ended = tokio::time::timeout(Duration::from_secs(60), story) => ended.unwrap(),
        }
    }

    #[test]
    fn list_prices_are_asked_for_hourly_and_market_prices_every_five_minutes() {
        let Cadence { spot, on_demand } = Cadence::default();
        assert_eq!((spot.as_secs(), on_demand.as_secs()), (300, 3600));
    }

    fn spot(at: &str, price: f64) -> SpotPrice {
        SpotPrice { instance_type: "t".into(), zone: "a".into(), at: at.into(), price }
    }

    #[test]
    fn fresh_beats_pinned_and_the_latest_beats_the_rest() {
        let pinned = Pinned { on_demand: Some(1.0), spot: Some(0.5) };
        let book = PriceBook::new(BTreeMap::from([("t".into(), pinned)]));
        assert_eq!(book.price(Capacity::OnDemand, "t", "a"), Some(1.0));
        assert_eq!(book.price(Capacity::Spot, "t", "a"), Some(0.5));
        assert_eq!(book.price(Capacity::Spot, "u", "a"), None);
        assert!(book.learn_spot(vec![spot("2026-01-02", 0.3), spot("2026-01-01", 0.2)]));
        assert_eq!(book.price(Capacity::Spot, "t", "a"), Some(0.3));
        assert_eq!(book.price(Capacity::Spot, "t", "b"), Some(0.5), "another zone");
        assert!(!book.learn_spot(vec![spot("2026-01-03", 0.3)]), "nothing new");
        assert!(book.learn_on_demand(HashMap::from([("t".into(), 0.9)])));
        assert_eq!(book.price(Capacity::OnDemand, "t", "b"), Some(0.9));
    }

    #[test]
    fn a_price_of_zero_is_none() {
        let book = PriceBook::default();
        book.learn_on_demand(HashMap::from([("t".into(), 0.0)]));
        assert_eq!(book.price(Capacity::OnDemand, "t", "a"), None);
    }

    #[test]
    fn the_list_price_is_deep_in_the_product() {
        let product = json!({"terms": {"OnDemand": {"x": {"priceDimensions": {
            "reserved": {"pricePerUnit": {"USD": "0.0000000000"}},
            "y": {"pricePerUnit": {"USD": "0.1070000000"}},
        }}}}});
        assert_eq!(list_price(&product), Some(0.107));
        assert_eq!(list_price(&json!({})), None);
    }

    #[test]
    fn buckets_become_probabilities() {
        let document = json!({"spot_advisor": {"r1": {"Linux": {
            "a": {"s": 70, "r": 0}, "b": {"r": 4}, "c": {"r": 9}
        }}}});
        let book = PriceBook::default();
        book.learn_buckets(buckets(&document, "r1"));
        let told = |name| book.probability(Capacity::Spot, name);
        assert_eq!([told("a"), told("b"), told("c"), told("d")], [0.025, 0.30, 0.125, 0.125]);
        assert_eq!(book.probability(Capacity::OnDemand, "a"), 0.0);
        assert!(buckets(&document, "r2").is_empty());
    }
}
