//! How much a shard may draw from a provider's accounts (coordinator chapter §8).

/// A share of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The account.
    pub provider: String,
    /// Where; everywhere if empty.
    pub region: String,
    /// How many elastic machines.
    pub slice: i32,
}

/// One elastic machine of our domains, as far as accounts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw<'a> {
    /// Of its host; none before there is one.
    pub provider: Option<&'a str>,
    /// By its label; none if it has none.
    pub region: Option<&'a str>,
}

impl Slice {
    /// Whether a machine is drawn from this share. What a machine does not say counts
    /// against every share that it may be of.
    fn covers(&self, draw: Draw<'_>) -> bool {
        draw.provider.is_none_or(|provider| provider == self.provider)
            && (self.region.is_empty() || draw.region.is_none_or(|region| region == self.region))
    }
}

/// What is left of the shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room(Vec<(Slice, i64)>);

impl Room {
    /// The shares, with nothing drawn.
    #[must_use]
    pub fn of(slices: &[Slice]) -> Self {
        Self(slices.iter().map(|slice| (slice.clone(), i64::from(slice.slice))).collect())
    }

    /// Whether there is no share: everything may be drawn.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a share of this provider's.
    #[must_use]
    pub fn names(&self, provider: &str) -> bool {
        self.0.iter().any(|(slice, _)| slice.provider == provider)
    }

    /// What a machine says of its account, as far as that tells anything: a name that no
    /// share has tells as little as none.
    fn attributed<'a>(&self, draw: Draw<'a>) -> Draw<'a> {
        Draw { provider: draw.provider.filter(|provider| self.names(provider)), ..draw }
    }

    /// A machine has been drawn, whether there was room or not.
    pub fn drawn(&mut self, draw: Draw<'_>) {
        let draw = self.attributed(draw);
        for (_, left) in self.0.iter_mut().filter(|(slice, _)| slice.covers(draw)) {
            *left -= 1;
        }
    }

    /// Draws one more if there is room; whether there was.
    pub fn take(&mut self, draw: Draw<'_>) -> bool {
        let draw = self.attributed(draw);
        let room = self.0.iter().all(|(slice, left)| !slice.covers(draw) || *left > 0);
        if room {
            self.drawn(draw);
        }
        room
    }
}
