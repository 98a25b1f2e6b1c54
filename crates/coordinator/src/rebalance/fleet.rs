//! Shards of a picture, by number.

use super::{Figures, Picture};
use crate::state::ShardId;

/// Numbers follow names: who has the lesser name has the lesser number.
#[derive(Debug)]
pub(super) struct Fleet<'a> {
    shards: Vec<(&'a ShardId, &'a Figures)>,
}

impl<'a> Fleet<'a> {
    pub(super) fn of(picture: &'a Picture) -> Self {
        Self { shards: picture.shards.iter().map(|(id, figures)| (id, &**figures)).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a Figures)> + Clone {
        self.shards.iter().enumerate().map(|(number, (_, figures))| (number as u32, *figures))
    }

    pub(super) fn id(&self, number: u32) -> &'a ShardId {
        self.shards[number as usize].0
    }

    pub(super) fn figures(&self, number: u32) -> &'a Figures {
        self.shards[number as usize].1
    }

    /// The number of a shard that takes part.
    pub(super) fn number(&self, id: &ShardId) -> Option<u32> {
        self.shards.binary_search_by_key(&id, |(known, _)| known).ok().map(|at| at as u32)
    }
}
