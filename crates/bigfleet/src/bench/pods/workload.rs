//! Pods of five kinds in equal parts, and what could be bought for them.

use bigfleet_model::MachineState;
use k8s_openapi::{
    api::core::v1::{
        Affinity, Container, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity, PodSpec,
        ResourceRequirements, TopologySpreadConstraint,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector},
};
use kube::core::ObjectMeta;

use super::super::{
    driver::Driver,
    make::{MachineSpec, Maker},
    random::Random,
};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// Values of the label that spreads and affinities select by.
const APPS: usize = 7;

/// The five kinds.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    ZoneSpread,
    HostSpread,
    ZoneAffinity,
    HostAntiAffinity,
}

const KINDS: [Kind; 5] =
    [Kind::Plain, Kind::ZoneSpread, Kind::HostSpread, Kind::ZoneAffinity, Kind::HostAntiAffinity];

/// cpu 100m to 1500m, memory 100Mi to 4Gi.
pub(super) fn pods(count: usize) -> impl Iterator<Item = Pod> {
    let mut random = Random::new(42);
    (0..count).map(move |number| pod(number, KINDS[number % KINDS.len()], &mut random))
}

fn pod(number: usize, kind: Kind, random: &mut Random) -> Pod {
    let app = format!("app-{}", random.below(APPS));
    let cpu = format!("{}m", [100, 250, 500, 1000, 1500][random.below(5)]);
    let memory = format!("{}Mi", [100, 256, 512, 1024, 2048, 4096][random.below(6)]);
    let requests = [("cpu", cpu), ("memory", memory)];
    let requests = requests.map(|(name, amount)| (name.to_owned(), Quantity(amount)));
    let container = Container {
        name: "main".to_owned(),
        resources: Some(ResourceRequirements {
            requests: Some(requests.into()),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    };
    let labels = [("app".to_owned(), app)];
    let selector = Some(LabelSelector {
        match_labels: Some(labels.clone().into()),
        ..LabelSelector::default()
    });
    let mut spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let spread = |key: &str, selector| {
        vec![TopologySpreadConstraint {
            label_selector: selector,
            max_skew: 1,
            topology_key: key.to_owned(),
            when_unsatisfiable: "DoNotSchedule".to_owned(),
            ..TopologySpreadConstraint::default()
        }]
    };
    let term = |key: &str, selector| PodAffinityTerm {
        label_selector: selector,
        topology_key: key.to_owned(),
        ..PodAffinityTerm::default()
    };
    match kind {
        Kind::Plain => {}
        Kind::ZoneSpread => spec.topology_spread_constraints = Some(spread(ZONE, selector)),
        Kind::HostSpread => spec.topology_spread_constraints = Some(spread(HOST, selector)),
        Kind::ZoneAffinity => {
            let required = Some(vec![term(ZONE, selector)]);
            spec.affinity = Some(Affinity {
                pod_affinity: Some(PodAffinity {
                    required_during_scheduling_ignored_during_execution: required,
                    ..PodAffinity::default()
                }),
                ..Affinity::default()
            });
        }
        Kind::HostAntiAffinity => {
            let required = Some(vec![term(HOST, selector)]);
            spec.affinity = Some(Affinity {
                pod_anti_affinity: Some(PodAntiAffinity {
                    required_during_scheduling_ignored_during_execution: required,
                    ..PodAntiAffinity::default()
                }),
                ..Affinity::default()
            });
        }
    }
    Pod {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(format!("pod-{number}")),
            uid: Some(format!("00000000-0000-4000-8000-{number:012}")),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// Each type in each zone, enough of all of them together for every pod.
pub(super) fn machines(driver: &mut Driver, types: usize, pods: usize) {
    let mut maker = Maker::default();
    let each = pods.div_ceil(types * ZONES.len()).max(2);
    for number in 0..types {
        let cpus = 1 + number % 64;
        let (cpu, memory) = (cpus.to_string(), format!("{}Gi", cpus * (2 + number / 64 % 7)));
        let name = format!("type-{number:03}");
        for zone in ZONES {
            for copy in 0..each {
                driver.upsert(&maker.make(MachineSpec {
                    id: format!("{name}-{zone}-{copy}"),
                    state: MachineState::Speculative,
                    instance_type: &name,
                    zone,
                    price: 0.04 * cpus as f64 + 0.0001 * number as f64,
                    size: &[("cpu", &cpu), ("memory", &memory), ("pods", "110")],
                    ..MachineSpec::default()
                }));
            }
        }
    }
}
