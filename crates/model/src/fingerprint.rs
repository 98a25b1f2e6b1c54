//! The canonical text of a profile, its identity (wire chapter §9).
//!
//! The text is stored in machine metadata and shown to people, so it is frozen
//! within `v1alpha1`.

use std::fmt::Write;

use crate::{
    id::text_newtype, penalty::PenaltyBucket, requirement::Requirement, spread::TopologySpread,
};

text_newtype! {
    /// Text that is equal if and only if the profiles are equal. A text that was
    /// stored earlier is taken unchecked: it is only ever compared.
    Fingerprint
}

impl Fingerprint {
    /// Of parts that are already in canonical order.
    pub(crate) fn of_canonical(
        requirements: &[Requirement],
        spread: &[TopologySpread],
        priority: i32,
        interruption: PenaltyBucket,
        reclamation: PenaltyBucket,
    ) -> Self {
        let mut text = Text(String::with_capacity(capacity(requirements, spread)));
        text.plain("p=").number(priority);
        text.plain("|ipb=").number(interruption.to_wire());
        text.plain("|rpb=").number(reclamation.to_wire());
        text.plain("|reqs=");
        for requirement in requirements {
            text.escaped(&requirement.key).plain(":");
            text.number(requirement.operator.to_wire()).plain(":");
            text.values(&requirement.values).plain(";");
        }
        text.plain("|spr=");
        for entry in spread {
            text.escaped(&entry.topology_key).plain(":");
            text.number(entry.max_skew).plain(":");
            text.number(entry.when_unsatisfiable.to_wire()).plain(";");
        }
        Self(text.0.into())
    }
}

fn capacity(requirements: &[Requirement], spread: &[TopologySpread]) -> usize {
    let values = |r: &Requirement| r.values.iter().map(|value| value.len() + 1).sum::<usize>();
    let requirements: usize = requirements.iter().map(|r| r.key.len() + 4 + values(r)).sum();
    let spread: usize = spread.iter().map(|s| s.topology_key.len() + 8).sum();
    48 + requirements + spread
}

struct Text(String);

impl Text {
    fn plain(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    fn number(&mut self, number: i32) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{number}");
        self
    }

    /// A lone empty value prints as `%`, for a list of none prints as nothing:
    /// `In [""]` and `In []` are different demands. No escape is a bare `%`.
    fn values(&mut self, values: &[String]) -> &mut Self {
        match values {
            [only] if only.is_empty() => return self.plain("%"),
            _ => {}
        }
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                self.plain(",");
            }
            self.escaped(value);
        }
        self
    }

    fn escaped(&mut self, text: &str) -> &mut Self {
        // Labels never need it, so look before walking character by character, and
        // at every byte: without an early exit the look takes many bytes at once.
        if !text.bytes().fold(false, |found, byte| found | may_need_escape(byte)) {
            return self.plain(text);
        }
        for character in text.chars() {
            if matches!(character, '%' | ':' | ',' | ';' | '|') || character.is_control() {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(self.0, "%{byte:02X}");
                }
            } else {
                self.0.push(character);
            }
        }
        self
    }
}

/// Control characters past ASCII begin with 0xC2.
const fn may_need_escape(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'%' | b':' | b',' | b';' | b'|' | 0x7f | 0xc2)
}
