//! Shape: what every record must be.

use crate::{
    case::{Binding, Case, Machine, State},
    catalogue::{Profile, rows},
    ensure,
    outcome::{Outcome, Stop},
    shape,
};
use bigfleet_wire::v1alpha1::CapacityType;

rows! { Shape:
    "SH-01" "id, state and type are set; labels hide no fact" [Core] [] M sh_01;
    "SH-02" "prices and probabilities are sound; SPOT has a risk" [Core Spot] [] M sh_02;
    "SH-03" "host and cluster fit the state" [Core] [] M sh_03;
    "SH-04" "quantities parse and are above zero" [Core] [] M sh_04;
    "SH-05" "host.provider is constant" [Core] [] M sh_05;
    "SH-06" "a host has a capacity type and a zone" [Core] [] M sh_06;
    "SH-07" "a deleted machine keeps nothing" [Cloud] [Slot Del] M sh_07;
}

async fn sh_01(t: Case) -> Outcome {
    t.fleet().await?.iter().try_for_each(shape::identity)
}

async fn sh_02(t: Case) -> Outcome {
    let fleet = t.fleet().await?;
    fleet
        .iter()
        .try_for_each(|machine| shape::cost(machine).and_then(|()| shape::spot(machine)))?;
    let spot = fleet.iter().any(|machine| machine.capacity_type() == CapacityType::Spot);
    if !spot && t.options().profiles.contains(&Profile::Spot) {
        return Err(Stop::Short("profile spot needs a SPOT machine, the target has none".into()));
    }
    Ok(())
}

/// Looks at a machine at every rest of a walk, by Get and by List.
async fn walk(t: &Case, look: impl Fn(&Machine) -> Outcome) -> Outcome {
    let m = t.start().await?;
    let both = async || {
        look(&t.get(&m).await?)?;
        let fleet = t.fleet().await?;
        let listed = fleet.iter().find(|machine| machine.id == m);
        listed.map_or_else(|| crate::fail!("{m:?} is not listed"), &look)
    };
    both().await?;
    if t.gates().slot {
        t.create_and_wait(&m).await?;
        both().await?;
    }
    t.configure_and_wait(&m, Binding::to(t.cluster("a"))).await?;
    both().await?;
    t.drain_and_wait(&m, 0).await?;
    both().await
}

async fn sh_03(t: Case) -> Outcome {
    t.fleet().await?.iter().try_for_each(shape::fits_state)?;
    walk(&t, shape::fits_state).await?;
    t.fleet().await?.iter().try_for_each(shape::fits_state)
}

async fn sh_04(t: Case) -> Outcome {
    t.fleet().await?.iter().try_for_each(shape::resources)
}

async fn sh_05(t: Case) -> Outcome {
    let names = std::sync::Mutex::new(std::collections::BTreeSet::new());
    walk(&t, |machine| {
        if let (Some(host), Ok(mut names)) = (&machine.host, names.lock()) {
            names.insert(host.provider.clone());
        }
        Ok(())
    })
    .await?;
    let names = names.into_inner().unwrap_or_default();
    ensure!(names.len() == 1 && !names.contains(""), "host.provider was seen as {names:?}");
    Ok(())
}

async fn sh_06(t: Case) -> Outcome {
    t.idle().await?;
    let fleet = t.fleet().await?;
    ensure!(fleet.iter().any(|machine| machine.host.is_some()), "no machine shows a host");
    fleet.iter().try_for_each(shape::placed)
}

async fn sh_07(t: Case) -> Outcome {
    let metadata = [("key".to_owned(), "value".to_owned())].into();
    let m = t.configured_to(Binding::to(t.cluster("a")).with(metadata)).await?;
    t.drain_and_wait(&m, 0).await?;
    t.delete(&m).await.accepted()?;
    let slot = t.settle(&m, State::Speculative).await?;
    ensure!(slot.host.is_none(), "{m:?} in SPECULATIVE still shows a host");
    ensure!(slot.cluster.is_empty(), "{m:?} in SPECULATIVE is bound to {:?}", slot.cluster);
    ensure!(slot.shard_metadata.is_empty(), "{m:?} in SPECULATIVE still has metadata");
    Ok(())
}
