//! A network that loses, delays, reorders and parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::sleep;

use super::*;

#[derive(Debug, Default)]
struct Weather {
    /// Lost messages in 1,000.
    loss: u64,
    /// Longest delay of a message, in ms.
    delay: u64,
    /// Pairs that cannot reach each other, one way.
    cut: BTreeSet<(String, String)>,
    /// Names that do not resolve.
    unresolved: BTreeSet<String>,
}

/// Whether a message to an address is lost.
type Veto = Arc<dyn Fn(&str, &Envelope) -> bool + Send + Sync>;

/// Clones are the same network.
#[derive(Clone)]
pub(super) struct Net {
    replicas: Arc<Mutex<BTreeMap<String, (u64, Consensus)>>>,
    weather: Arc<Mutex<Weather>>,
    veto: Arc<Mutex<Option<Veto>>>,
    random: Arc<Entropy>,
}

impl Net {
    pub(super) fn new(seed: u64) -> Self {
        let weather = Weather { loss: 0, delay: 2, ..Weather::default() };
        Self {
            replicas: Arc::default(),
            weather: Arc::new(Mutex::new(weather)),
            veto: Arc::default(),
            random: Arc::new(Entropy::seeded(seed ^ 0x1234)),
        }
    }

    pub(super) fn end(&self, address: &str) -> End {
        End { net: self.clone(), address: address.to_owned() }
    }

    pub(super) fn attach(&self, address: &str, replica: &Consensus) {
        let number = self.random.next();
        self.replicas.lock().unwrap().insert(address.to_owned(), (number, replica.clone()));
    }

    pub(super) fn detach(&self, address: &str) {
        let gone = self.replicas.lock().unwrap().remove(address);
        drop(gone);
    }

    pub(super) fn replica(&self, address: &str) -> Option<Consensus> {
        self.found(address).map(|(_, replica)| replica)
    }

    fn found(&self, address: &str) -> Option<(u64, Consensus)> {
        self.replicas.lock().unwrap().get(address).cloned()
    }

    /// Whether the process that was `number` still runs at an address.
    fn lives(&self, address: &str, number: u64) -> bool {
        self.found(address).is_some_and(|(now, _)| now == number)
    }

    pub(super) fn set(&self, loss: u64, delay: u64) {
        let mut weather = self.weather.lock().unwrap();
        (weather.loss, weather.delay) = (loss, delay);
    }

    /// Nothing passes from `from` to `to`.
    pub(super) fn cut(&self, from: &str, to: &str) {
        self.weather.lock().unwrap().cut.insert((from.to_owned(), to.to_owned()));
    }

    /// Loses these messages between members, on top of everything else.
    pub(super) fn lose(&self, lost: impl Fn(&str, &Envelope) -> bool + Send + Sync + 'static) {
        *self.veto.lock().unwrap() = Some(Arc::new(lost));
    }

    /// Parts one address from all others, both ways.
    pub(super) fn isolate(&self, one: &str, others: impl IntoIterator<Item = String>) {
        for other in others {
            self.cut(one, &other);
            self.cut(&other, one);
        }
    }

    pub(super) fn heal(&self) {
        self.weather.lock().unwrap().cut.clear();
        self.set(0, 2);
    }

    pub(super) fn resolve(&self, address: &str, resolves: bool) {
        let mut weather = self.weather.lock().unwrap();
        if resolves {
            weather.unresolved.remove(address);
        } else {
            weather.unresolved.insert(address.to_owned());
        }
    }

    async fn travel(&self, from: &str, to: &str) -> bool {
        let (lost, delay) = {
            let weather = self.weather.lock().unwrap();
            let lost = self.random.next() % 1000 < weather.loss;
            (lost, self.random.next() % (weather.delay + 1))
        };
        sleep(Duration::from_micros(100 + delay * 1000)).await;
        let pair = (from.to_owned(), to.to_owned());
        !lost && !self.weather.lock().unwrap().cut.contains(&pair)
    }
}

/// One replica's end of the network.
pub(super) struct End {
    net: Net,
    address: String,
}

impl End {
    /// Runs `ask` on the other end, if the message and its answer arrive.
    async fn over<T, F: Future<Output = T>>(
        &self,
        to: &str,
        ask: impl FnOnce(Consensus) -> F,
    ) -> Result<T, String> {
        let lost = || async {
            sleep(Duration::from_secs(1)).await;
            Err("no answer".to_owned())
        };
        if !self.net.travel(&self.address, to).await {
            return lost().await;
        }
        let Some((number, replica)) = self.net.found(to) else {
            return Err("connection refused".to_owned());
        };
        let answer = ask(replica).await;
        // A process that died meanwhile says nothing.
        if !self.net.lives(to, number) || !self.net.travel(to, &self.address).await {
            return lost().await;
        }
        Ok(answer)
    }

    fn resolved(&self) -> Vec<String> {
        let unresolved = self.net.weather.lock().unwrap().unresolved.clone();
        let replicas = self.net.replicas.lock().unwrap();
        replicas.keys().filter(|one| !unresolved.contains(*one)).cloned().collect()
    }
}

impl Transport for End {
    fn call<'a>(
        &'a self,
        to: &'a Member,
        envelope: Envelope,
    ) -> Answer<'a, Result<Response, CallError>> {
        Box::pin(async move {
            let veto = self.net.veto.lock().unwrap().clone();
            if veto.is_some_and(|lost| lost(&to.raft_address, &envelope)) {
                sleep(Duration::from_secs(1)).await;
                return Err(CallError::Unreachable("no answer".to_owned()));
            }
            let answer = self
                .over(&to.raft_address, |replica| async move { replica.answer(envelope).await });
            answer.await.map_err(CallError::Unreachable)?
        })
    }
}

impl Peers for End {
    fn statuses(&self) -> Answer<'_, Vec<Result<Status, String>>> {
        Box::pin(async move {
            let mut statuses = Vec::new();
            for address in self.resolved() {
                statuses.push(self.over(&address, |replica| async move { replica.status() }).await);
            }
            statuses
        })
    }

    fn join(&self, request: Joiner) -> Answer<'_, Result<(), MembershipError>> {
        Box::pin(async move {
            let mut failure = MembershipError::Unavailable("nobody answers".to_owned());
            for address in self.resolved() {
                let request = request.clone();
                let ask = |replica: Consensus| async move { replica.join(&request).await };
                match self.over(&address, ask).await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(MembershipError::NotLeader)) | Err(_) => {}
                    Ok(Err(error)) => failure = error,
                }
            }
            Err(failure)
        })
    }
}
