//! What one pod asks for.

use std::sync::Arc;

use bigfleet_model::{
    Dimension, Group, Operator, PenaltyBucket, Profile, Requirement, Resources,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};

/// Equal pods of one workload.
///
/// The engine counts in sums, a cluster binds pods one by one: give shapes that
/// divide their machines, or a sum that fits may hold a pod that does not.
#[derive(Debug, Clone)]
pub struct Shape {
    request: Resources,
    requirements: Vec<Requirement>,
    priority: i32,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
    same: Option<String>,
}

impl Shape {
    /// So many thousandths of a core and bytes of memory, anywhere, at priority
    /// 0.
    #[must_use]
    pub fn new(cpu_millis: i64, memory_bytes: i64) -> Self {
        let memory = memory_bytes.saturating_mul(1_000);
        let request =
            [(Dimension::CPU, cpu_millis), (Dimension::MEMORY, memory)].into_iter().collect();
        Self {
            request,
            requirements: Vec::new(),
            priority: 0,
            interruption: PenaltyBucket::ZERO,
            reclamation: PenaltyBucket::ZERO,
            same: None,
        }
    }

    /// Also so many of another resource, such as `nvidia.com/gpu`. A name that
    /// Kubernetes could not have is left out.
    #[must_use]
    pub fn device(mut self, name: &str, count: i64) -> Self {
        if let Ok(dimension) = Dimension::intern(name) {
            self.request.set(dimension, count.saturating_mul(1_000));
        }
        self
    }

    /// At this priority.
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Costs so much to interrupt, and so much to part from its machine.
    #[must_use]
    pub const fn penalties(
        mut self,
        interruption: PenaltyBucket,
        reclamation: PenaltyBucket,
    ) -> Self {
        self.interruption = interruption;
        self.reclamation = reclamation;
        self
    }

    /// In one of these zones.
    #[must_use]
    pub fn zones(self, zones: &[&str]) -> Self {
        self.one_of(ZONE_LABEL, zones)
    }

    /// On one of these instance types.
    #[must_use]
    pub fn instance_types(self, types: &[&str]) -> Self {
        self.one_of(INSTANCE_TYPE_LABEL, types)
    }

    fn one_of(self, key: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        self.requirement(Requirement { key: key.to_owned(), operator: Operator::In, values })
    }

    /// Under one more requirement.
    #[must_use]
    pub fn requirement(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }

    /// A gang: all its pods on machines that share one value of this label.
    #[must_use]
    pub fn same(mut self, key: &str) -> Self {
        self.same = Some(key.to_owned());
        self
    }

    /// What one pod requests.
    #[must_use]
    pub const fn request(&self) -> &Resources {
        &self.request
    }

    /// The profile that its pods share.
    #[must_use]
    pub fn profile(&self) -> Arc<Profile> {
        let mut requirements = self.requirements.clone();
        requirements.extend(self.same.iter().map(|key| Requirement {
            key: key.clone(),
            operator: Operator::Same,
            values: Vec::new(),
        }));
        Arc::new(Profile::new(
            requirements,
            Vec::new(),
            self.priority,
            self.interruption,
            self.reclamation,
        ))
    }

    /// The gang of the workload of this name, in the text of wire chapter §9.
    pub(crate) fn group(&self, workload: &str) -> Group {
        self.same.as_ref().map_or_else(Group::none, |key| {
            Group::from(format!("{key}\0workload={workload},;\0default"))
        })
    }
}
