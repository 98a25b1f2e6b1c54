//! Which needs the last cycle looked at.

use crate::{engine::Engine, handle::PreparedIx, input::NeedKey};

impl Engine {
    /// Needs, as sent, that the last cycle decided, members of folds included, and
    /// those that wait for machines or have just got the last of them. The rows of all
    /// others are what they were (but for whether supply exists, of which nobody asks a
    /// need that is met), so a reader need not look at them again. A need that is
    /// gone is in no cycle: look at all rows of a cluster whose roll-up was taken in.
    /// Ask before taking in changes.
    pub fn decided_needs(&self) -> impl Iterator<Item = NeedKey> {
        let (world, decided) = (&self.world, &self.decided);
        let looked_at = decided.touched.iter().chain(&decided.arrived).chain(&world.unready);
        let mut sent: Vec<PreparedIx> = Vec::new();
        for &need in looked_at.filter(|need| !world.needs[**need].removed) {
            let row = &world.needs[need];
            if row.is_fold() {
                sent.extend(world.folded(row));
            } else {
                sent.push(need);
            }
        }
        sent.sort_unstable();
        sent.dedup();
        sent.into_iter().map(|need| self.key_of(need))
    }
}
