//! A range of addresses.

use std::{fmt, net::IpAddr, str::FromStr};

/// `10.0.0.0/8`, `::1/128`; an address alone is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Whether an address lies in it. IPv4 in the guise of IPv6 is IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(one)) => {
                same(net.to_bits().into(), one.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(net), IpAddr::V6(one)) => {
                same(net.to_bits(), one.to_bits(), 128, self.bits)
            }
            _ => false,
        }
    }
}

fn same(net: u128, one: u128, width: u8, bits: u8) -> bool {
    (net ^ one).checked_shr((width - bits).into()).unwrap_or(0) == 0
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a range; write for example 10.0.0.0/8");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match text.contains('/') {
            true => bits.parse().ok().filter(|bits| *bits <= width).ok_or_else(wrong)?,
            false => width,
        };
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_they_say() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("127.0.0.1/32", "::ffff:127.0.0.1", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let range: Cidr = range.parse().unwrap();
            assert!(range.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!range.contains(outside.parse().unwrap()), "{range} {outside}");
        }
        let all: Cidr = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("8.8.8.8".parse().unwrap()));
        for wrong in ["", "a", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129"] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }
}
