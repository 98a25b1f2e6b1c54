//! Who could give what (coordinator chapter §9, donor rows).

use std::collections::BTreeMap;

use super::{
    Picture, Settings,
    bits::Bits,
    classes::Classes,
    fleet::Fleet,
    shelf::{Shelf, Victims, Yielding},
};
use crate::state::{TransferKind, TransferPhase};

/// All donor rows, by tier.
#[derive(Debug)]
pub(super) struct Donors {
    pub(super) idle: Shelf,
    pub(super) speculative: Shelf,
    pub(super) yielding: Yielding,
}

/// What donors were asked for and have not let go of: they report it as theirs.
type Promised<'a> = BTreeMap<(u32, &'a str, &'a str, i32, TransferKind), u32>;

impl Donors {
    /// `wanted`: by shard, the classes that its own shortfalls could be served by; such
    /// rows stay.
    pub(super) fn of(
        picture: &Picture,
        fleet: &Fleet<'_>,
        classes: &Classes<'_>,
        wanted: &[Bits],
        settings: &Settings,
    ) -> Self {
        let size = classes.len();
        let mut donors = Self {
            idle: Shelf::new(size),
            speculative: Shelf::new(size),
            yielding: Yielding::new(size),
        };
        let mut promised = promised(picture, fleet);
        for (shard, figures) in fleet.iter() {
            for (pool, class) in figures.pools.iter().zip(classes.of_pools(shard)) {
                if wanted[shard as usize].has(class) {
                    continue;
                }
                let mut gives = |has: u32, kind: TransferKind| {
                    let surplus = settings.surplus(has);
                    let key = (shard, &*pool.instance_type, &*pool.zone, pool.capacity_type, kind);
                    let Some(promised) = promised.get_mut(&key) else { return surplus };
                    let taken = surplus.min(*promised);
                    *promised -= taken;
                    surplus - taken
                };
                donors.idle.put(class, shard, gives(pool.idle, TransferKind::Idle));
                let slots = gives(pool.speculative, TransferKind::Speculative);
                donors.speculative.put(class, shard, slots);
                donors.yielding.put(
                    class,
                    Victims {
                        shard,
                        configured: pool.configured,
                        min_priority: pool.min_priority,
                        min_bucket: pool.min_interruption_bucket,
                    },
                );
            }
        }
        donors.idle.sort();
        donors.speculative.sort();
        donors.yielding.sort();
        donors
    }
}

fn promised<'a>(picture: &'a Picture, fleet: &Fleet<'_>) -> Promised<'a> {
    let mut promised = Promised::default();
    let releasing = picture.transfers.values().filter(|one| one.phase == TransferPhase::Releasing);
    for transfer in releasing {
        let Some(shard) = fleet.number(&transfer.from) else { continue };
        let request = &transfer.request;
        let key =
            (shard, &*request.instance_type, &*request.zone, request.capacity_type, transfer.kind);
        *promised.entry(key).or_default() += u32::try_from(request.count).unwrap_or_default();
    }
    promised
}
