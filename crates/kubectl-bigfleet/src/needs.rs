//! Requests, grouped as the operator rolls them up.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::once,
};

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, conditions};
use bigfleet_model::{Quantity, quantity::QuantitySum};
use bigfleet_operator::rollup::{Demand, Translator};
use bigfleet_plain::{table::table, text};
use bigfleet_wire::v1alpha1::NodeSelectorRequirement;

use crate::why::condition;

const HEAD: [&str; 8] =
    ["PRIORITY", "PODS", "WHERE", "GROUP", "SUM", "LARGEST", "WAITING", "REASON"];

/// One need, of requests that count for it.
#[derive(Default)]
struct Need {
    priority: i32,
    requirements: String,
    group: String,
    pods: usize,
    waiting: usize,
    sums: BTreeMap<String, QuantitySum>,
    largest: BTreeMap<String, Quantity>,
    reasons: BTreeSet<String>,
}

/// What a request counts for, or nothing if it cannot be translated.
pub(crate) fn demand(request: &CapacityRequest) -> Option<Demand> {
    let namespace = request.metadata.namespace.as_deref().unwrap_or_default();
    Translator::default().translate(namespace, &request.spec).ok()
}

/// All needs: the highest priority first, then the most pods.
#[must_use]
pub fn screen(requests: &[CapacityRequest]) -> String {
    if requests.is_empty() {
        return "no pod asks for capacity\n".to_owned();
    }
    let mut needs: BTreeMap<(String, String), Need> = BTreeMap::new();
    let mut untranslatable = 0_usize;
    for request in requests {
        match demand(request) {
            Some(demand) => {
                let key = (demand.need.fingerprint().to_owned(), demand.need.group().to_owned());
                let need = needs.entry(key).or_insert_with(|| Need::of(&demand, request));
                need.count(request);
            }
            None => untranslatable += 1,
        }
    }
    let mut needs: Vec<Need> = needs.into_values().collect();
    // Stable: what is equal stays in the order of identities.
    needs.sort_by(|a, b| b.priority.cmp(&a.priority).then(b.pods.cmp(&a.pods)));
    let waits = needs.iter().any(|need| need.waiting > 0);
    let mut text = match needs.is_empty() {
        true => String::new(),
        false => table(once(HEAD.map(str::to_owned).to_vec()).chain(needs.iter().map(Need::row))),
    };
    text += &match untranslatable {
        0 => String::new(),
        1 => "one request cannot be understood and counts for nothing; its condition Translatable \
              says why\n"
            .to_owned(),
        many => format!(
            "{many} requests cannot be understood and count for nothing; their condition \
             Translatable says why\n"
        ),
    };
    if waits {
        text += "`kubectl bigfleet why` lists the pods that wait\n";
    }
    text
}

impl Need {
    fn of(demand: &Demand, request: &CapacityRequest) -> Self {
        let requirements: Vec<NodeSelectorRequirement> =
            demand.need.profile().requirements().iter().map(Into::into).collect();
        Self {
            priority: request.spec.priority,
            requirements: text::requirements(&requirements),
            group: text::or_dash(&text::group(demand.need.group())),
            ..Self::default()
        }
    }

    fn count(&mut self, request: &CapacityRequest) {
        self.pods += 1;
        for (name, amount) in &request.spec.resources {
            let Ok(amount) = amount.as_str().parse::<Quantity>() else { continue };
            self.sums.entry(name.clone()).or_default().add(amount);
            let largest = self.largest.entry(name.clone()).or_insert(amount);
            *largest = amount.max(*largest);
        }
        let unmet = condition(request, conditions::SATISFIED).filter(|it| it.status == "False");
        let unheard = request.phase() == CapacityRequestPhase::Pending;
        self.waiting += usize::from(unheard || unmet.is_some());
        self.reasons.extend(unmet.map(|it| it.reason.clone()));
    }

    fn row(&self) -> Vec<String> {
        let vector = |pairs: &mut dyn Iterator<Item = (&String, Quantity)>| {
            let pairs: Vec<String> =
                pairs.map(|(name, amount)| format!("{name}={amount}")).collect();
            text::or_dash(&pairs.join(" "))
        };
        let reasons: Vec<&str> = self.reasons.iter().map(String::as_str).collect();
        vec![
            self.priority.to_string(),
            self.pods.to_string(),
            self.requirements.clone(),
            self.group.clone(),
            vector(&mut self.sums.iter().map(|(name, sum)| (name, sum.total()))),
            vector(&mut self.largest.iter().map(|(name, amount)| (name, *amount))),
            self.waiting.to_string(),
            text::or_dash(&reasons.join(",")),
        ]
    }
}
