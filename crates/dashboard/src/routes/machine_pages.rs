//! Pages of machines as a viewer sees them. For whom some are hidden, a page is filled with others
//! and ends where there is no other: how many are hidden between two rows, and whether any is
//! behind the last, shows nowhere.

use std::{sync::Arc, time::Duration};

use bigfleet_wire::v1alpha1::{
    ListMachinesRequest, ListMachinesResponse, Machine as WireMachine, MachineView,
};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Shared;
use crate::{api::Refusal, auth::Viewer, source::coalesce::Fetched};

/// Machines that a shard shows at once: all of them, so that viewers share calls.
const WHOLE: i32 = 1_000;

/// Pages of a shard that are looked through for one of a viewer, and for how long; past these a
/// viewer's page is short, and says where to go on.
const MOST: usize = 100;
const WITHIN: Duration = Duration::from_secs(8);

/// Where a page begins: in this page of the shard, after this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    token: Vec<u8>,
    after: String,
}

impl Place {
    /// As a viewer carries it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let length = u16::try_from(self.after.len()).unwrap_or(u16::MAX);
        let after = &self.after.as_bytes()[..usize::from(length)];
        [&length.to_be_bytes()[..], after, &self.token].concat()
    }

    /// As a viewer carried it; nothing is the beginning.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let (length, rest) = bytes.split_first_chunk()?;
        let (after, token) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        Some(Self { token: token.to_vec(), after: String::from_utf8(after.to_vec()).ok()? })
    }
}

/// One page.
pub(super) struct Page {
    /// Pages of the shard that have rows of it.
    of_shard: Vec<Arc<Fetched<ListMachinesResponse>>>,
    /// Page of the shard, and row there.
    rows: Vec<(usize, usize)>,
    pub(super) next: Option<Place>,
    pub(super) total: i32,
    pub(super) cycle: i64,
    pub(super) computed_at: i64,
    pub(super) at: Timestamp,
}

/// A view without its machine shows nothing.
pub(super) fn with_machine(view: &MachineView) -> Option<(&MachineView, &WireMachine)> {
    Some((view, view.machine.as_ref()?))
}

impl Page {
    fn new(first: &Fetched<ListMachinesResponse>) -> Self {
        Self {
            of_shard: Vec::new(),
            rows: Vec::new(),
            next: None,
            total: first.value.total,
            cycle: first.value.cycle,
            computed_at: first.value.computed_at_unix_nanos,
            at: first.at,
        }
    }

    /// Machines, by id.
    pub(super) fn machines(&self) -> impl Iterator<Item = (&MachineView, &WireMachine)> {
        let view = |(page, row): &(usize, usize)| {
            with_machine(self.of_shard.get(*page)?.value.machines.get(*row)?)
        };
        self.rows.iter().filter_map(view)
    }

    /// Whether nothing of it is there.
    pub(super) fn is_nothing(&self) -> bool {
        self.rows.is_empty() && self.next.is_none()
    }

    /// Takes rows after this machine up to the limit; whether there is one more, after which.
    fn take(
        &mut self,
        page: &Arc<Fetched<ListMachinesResponse>>,
        after: &str,
        limit: usize,
        viewer: &Viewer,
    ) -> Option<String> {
        let of_shard = self.of_shard.len();
        let mut last = None;
        for (row, view) in page.value.machines.iter().enumerate() {
            let Some((_, machine)) = with_machine(view) else { continue };
            if machine.id.as_str() <= after || !viewer.sees(&machine.cluster) {
                continue;
            }
            if self.rows.len() >= limit {
                return last.or_else(|| Some(String::new()));
            }
            if last.is_none() {
                self.of_shard.push(page.clone());
            }
            self.rows.push((of_shard, row));
            last = Some(machine.id.clone());
        }
        None
    }
}

/// The page of a viewer that begins at this place.
pub(super) async fn read(
    app: &Shared,
    viewer: &Viewer,
    shard: &str,
    mut request: ListMachinesRequest,
    Place { mut token, mut after }: Place,
    limit: usize,
) -> Result<Page, Refusal> {
    // Of a cluster that the viewer sees, everything is seen.
    let filters = viewer.is_scoped() && request.cluster_id.is_empty();
    request.page_size = if filters { WHOLE } else { i32::try_from(limit).unwrap_or(WHOLE) };
    let begun = Instant::now();
    let mut whole: Option<Page> = None;
    for turn in 1.. {
        request.page_token.clone_from(&token);
        let page = app.sources.shards.machines(shard, request.clone()).await?;
        let so_far = whole.get_or_insert_with(|| Page::new(&page));
        if let Some(after_last) = so_far.take(&page, &after, limit, viewer) {
            let after = if after_last.is_empty() { after } else { after_last };
            so_far.next = Some(Place { token, after });
            break;
        }
        token.clone_from(&page.value.next_page_token);
        after.clear();
        if token.is_empty() {
            break;
        }
        if !filters || turn >= MOST || begun.elapsed() >= WITHIN {
            so_far.next = Some(Place { token, after });
            break;
        }
    }
    whole.ok_or_else(|| Refusal::failed(crate::api::Source::Shard, "no page"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_went() {
        let place =
            |token: &[u8], after: &str| Place { token: token.to_vec(), after: after.into() };
        for place in [place(b"", ""), place(b"", "m-1"), place(b"\0\0m", ""), place(b"t", "m")] {
            assert_eq!(Place::parse(&place.to_bytes()), Some(place));
        }
        assert_eq!(Place::parse(b""), Some(Place::default()));
        for broken in [&b"\0"[..], b"\0\x05m-1", b"\0\x01\xff"] {
            assert_eq!(Place::parse(broken), None);
        }
    }
}
