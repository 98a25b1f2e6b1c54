//! All machines, page by page (wire chapter §5.1).

use bigfleet_engine::MachineView;
use bigfleet_model::{Class, ClusterId, MachineId, MachineState};
use bigfleet_wire::v1alpha1::{self as wire, ListMachinesRequest, ListMachinesResponse};
use tonic::Status;

use crate::{
    live::{Desk, Entry},
    shard::Shard,
    views::wire::{count, cycle_number},
};

/// Most machines of one page.
const PAGE: usize = 1_000;
/// Machines looked at in one hold of the engine.
const CHUNK: usize = 512;

/// A question for machines.
pub(super) struct Listing {
    states: Vec<MachineState>,
    cluster: Option<ClusterId>,
    request: ListMachinesRequest,
    page: usize,
    token: Option<Token>,
}

/// Where a page ended: pages after the first are not counted again.
struct Token {
    total: u32,
    after: MachineId,
}

impl Token {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (total, after) = bytes.split_first_chunk()?;
        let after = std::str::from_utf8(after).ok()?;
        Some(Self { total: u32::from_be_bytes(*total), after: after.into() })
    }

    fn to_bytes(&self) -> Vec<u8> {
        [&self.total.to_be_bytes()[..], self.after.as_bytes()].concat()
    }
}

impl Listing {
    pub(super) fn of(request: ListMachinesRequest) -> Result<Self, Status> {
        let state = |(at, number): (usize, &i32)| {
            MachineState::from_wire(*number).ok_or_else(|| {
                Status::invalid_argument(format!(
                    "states[{at}]: {number} is no state; leave states empty for all"
                ))
            })
        };
        let states = request.states.iter().enumerate().map(state).collect::<Result<_, _>>()?;
        let token = match &*request.page_token {
            [] => None,
            bytes => Some(Token::parse(bytes).ok_or_else(|| {
                Status::invalid_argument("page_token: none of ours; begin again without it")
            })?),
        };
        let page = usize::try_from(request.page_size).ok().filter(|size| (1..=PAGE).contains(size));
        let cluster = Some(&request.cluster_id).filter(|cluster| !cluster.is_empty());
        let cluster = cluster.map(|cluster| cluster.as_str().into());
        Ok(Self { states, cluster, page: page.unwrap_or(PAGE), token, request })
    }

    /// One page, in short holds of the engine.
    pub(super) async fn read(self, shard: &Shard) -> ListMachinesResponse {
        let mut page = Page { machines: Vec::new(), matched: 0, more: false };
        let mut as_of = (0, 0);
        let mut after = self.token.as_ref().map(|token| token.after.clone());
        let mut of_cluster = match &self.cluster {
            Some(cluster) => Some(shard.desk().await.machines_of(cluster).into_iter()),
            None => None,
        };
        loop {
            {
                let desk = shard.desk().await;
                let snapshot = shard.needs_read.load();
                as_of = as_of.max((snapshot.cycle, snapshot.computed_at));
                after = match &mut of_cluster {
                    Some(ids) => {
                        let some: Vec<MachineId> = ids.by_ref().take(CHUNK).collect();
                        self.look_at_ids(&desk, &some, &mut page)
                    }
                    None => self.look_at_all(&desk, after.as_ref(), &mut page),
                };
            }
            // Pages after the first know the total.
            if after.is_none() || (page.more && self.token.is_some()) {
                break;
            }
            // Whoever waits for the engine goes first.
            tokio::task::yield_now().await;
        }
        self.answer(page, as_of)
    }

    fn answer(self, page: Page, (cycle, computed_at): (u64, i64)) -> ListMachinesResponse {
        let total = self.token.map_or(page.matched, |token| token.total);
        let last = page.machines.last().and_then(|view| view.machine.as_ref());
        let next = last.filter(|_| page.more);
        let next = next.map(|last| Token { total, after: last.id.as_str().into() });
        ListMachinesResponse {
            next_page_token: next.map(|token| token.to_bytes()).unwrap_or_default(),
            machines: page.machines,
            cycle: cycle_number(cycle),
            total: count(total),
            computed_at_unix_nanos: computed_at,
        }
    }

    /// Looks at the next machines by id; where to go on.
    fn look_at_all(
        &self,
        desk: &Desk<'_>,
        after: Option<&MachineId>,
        page: &mut Page,
    ) -> Option<MachineId> {
        let engine = &desk.decider.engine;
        // Ids with a prefix are neighbours.
        let prefix = self.request.id_prefix.as_str();
        let mut last = None;
        let mut looked_at = 0;
        let reader = engine.reader();
        let from = after.map(|after| &**after).filter(|after| *after >= prefix);
        // The prefix itself may be an id, and comes before all that begin with it.
        let start = Some(from.unwrap_or(prefix)).filter(|start| !start.is_empty());
        if from.is_none()
            && let Some(view) = engine.view(prefix)
        {
            self.look_at(desk, &reader, prefix, Looked::at(desk, &view), page);
        }
        for view in engine.views_after(start).take(CHUNK) {
            if !view.id().starts_with(prefix) {
                return None;
            }
            self.look_at(desk, &reader, view.id(), Looked::at(desk, &view), page);
            last = Some(view.id());
            looked_at += 1;
        }
        last.filter(|_| looked_at == CHUNK).map(Into::into)
    }

    /// Looks at machines of a cluster; the last of them.
    fn look_at_ids(
        &self,
        desk: &Desk<'_>,
        ids: &[MachineId],
        page: &mut Page,
    ) -> Option<MachineId> {
        let engine = &desk.decider.engine;
        let reader = engine.reader();
        let seen = self.token.as_ref().map(|token| &token.after);
        for id in ids.iter().filter(|id| seen.is_none_or(|seen| *id > seen)) {
            let looked = match (desk.live.entry(id), engine.view(id)) {
                (Some(entry), _) => Looked::moving(entry),
                (None, Some(view)) => Some(Looked::resting(&view)),
                (None, None) => None,
            };
            self.look_at(desk, &reader, id, looked, page);
        }
        ids.last().cloned()
    }

    fn look_at(
        &self,
        desk: &Desk<'_>,
        reader: &bigfleet_engine::Reader<'_>,
        id: &str,
        looked: Option<Looked<'_>>,
        page: &mut Page,
    ) {
        if !looked.is_some_and(|looked| self.wants(id, &looked)) {
            return;
        }
        page.matched += 1;
        if page.machines.len() == self.page {
            page.more = true;
        } else if let Some(tracked) = desk.tracked(&id.into()) {
            page.machines.push(desk.machine_view(reader, tracked));
        }
    }

    fn wants(&self, id: &str, looked: &Looked<'_>) -> bool {
        let request = &self.request;
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        (self.states.is_empty() || self.states.contains(&looked.state))
            && (self.cluster.is_none() || self.cluster.as_ref() == looked.cluster)
            && is(&request.instance_type, &looked.class.instance_type)
            && is(&request.zone, &looked.class.zone)
            && id.starts_with(&request.id_prefix)
            && is(&request.host_ref, looked.host_ref)
            && (!request.with_error || looked.has_error)
    }
}

/// A page as it fills.
struct Page {
    machines: Vec<wire::MachineView>,
    matched: u32,
    /// There is at least one more than fits.
    more: bool,
}

/// What filters look at.
struct Looked<'a> {
    state: MachineState,
    /// Bound to, or being created for.
    cluster: Option<&'a ClusterId>,
    class: &'a Class,
    host_ref: &'a str,
    has_error: bool,
}

impl<'a> Looked<'a> {
    /// None if it is gone.
    fn at(desk: &'a Desk<'_>, view: &MachineView<'a>) -> Option<Self> {
        match desk.live.entries.get(view.id()) {
            Some(entry) => Self::moving(entry),
            None => Some(Self::resting(view)),
        }
    }

    fn resting(view: &MachineView<'a>) -> Self {
        Self {
            state: view.state(),
            cluster: view.association(),
            class: view.class(),
            host_ref: view.host().map_or("", |(_, reference)| reference),
            has_error: !view.last_error().is_empty(),
        }
    }

    fn moving(entry: &'a Entry) -> Option<Self> {
        let machine = &entry.tracked.machine;
        (!entry.is_gone()).then(|| Self {
            state: machine.state,
            cluster: entry.association(),
            class: &machine.class,
            host_ref: machine.host.as_ref().map_or("", |host| &host.reference),
            has_error: !machine.last_error.is_empty(),
        })
    }
}
