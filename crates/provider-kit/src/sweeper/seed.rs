//! The first content of an empty store.

use std::{sync::Arc, time::Duration};

use super::offers::Offers;
use crate::{
    Error,
    cloud::Cloud,
    record::{Classes, Record},
    shape::ShapeCheck,
    store::{Batch, State, Store},
};

/// Stores everything that the cloud describes, in one commit. One invalid or doubled
/// offer fails the start: nobody would notice its absence later.
pub(crate) async fn seed<C: Cloud>(
    cloud: &C,
    store: &Arc<dyn Store>,
    shape: &ShapeCheck,
    limit: Duration,
    now: Duration,
    mut state: State,
) -> Result<State, Error> {
    let described = tokio::time::timeout(limit, cloud.describe()).await;
    let offers = described
        .map_err(|_| Error::Describe("the cloud did not answer in time".to_owned()))?
        .map_err(|error| Error::Describe(error.to_string()))?;
    let mut refused = None;
    let offers = Offers::check(offers, shape, |misshapen| {
        refused.get_or_insert(misshapen);
    });
    if let Some(misshapen) = refused {
        return Err(misshapen.into());
    }
    let mut classes = Classes::default();
    for (number, mut machine) in (state.revision + 1..).zip(offers.into_machines()) {
        classes.share(&mut machine);
        state.records.push(Record { revision: number, ..Record::new(machine, now) });
    }
    state.revision += state.records.len() as u64;
    let row = |record: &Record| (record.machine.id.clone(), Some(Arc::new(record.clone())));
    let batch = Batch {
        revision: state.revision,
        records: state.records.iter().map(row).collect(),
        ..Batch::default()
    };
    let store = store.clone();
    tokio::task::spawn_blocking(move || store.commit(&batch))
        .await
        .map_err(|error| Error::Store(crate::store::StoreError::Other(error.to_string())))??;
    Ok(state)
}
