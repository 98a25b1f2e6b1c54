//! Ports that a killed process finds free when it comes back: below those that outgoing
//! connections are given.

use std::{io, net::TcpListener};

const FIRST: u16 = 13_000;
const COUNT: u16 = 6_000;

/// So many free addresses on loopback, none twice.
pub(crate) fn free<const N: usize>() -> io::Result<[String; N]> {
    let mut next = getrandom::u32().map_err(io::Error::other)? as u16 % COUNT;
    let mut taken = Vec::new();
    // Held until all are found, so that none is found twice.
    let mut held = Vec::new();
    for _ in 0..COUNT {
        let addr = format!("127.0.0.1:{}", FIRST + next);
        next = (next + 1) % COUNT;
        if let Ok(listener) = TcpListener::bind(&addr) {
            held.push(listener);
            taken.push(addr);
        }
        if taken.len() == N {
            break;
        }
    }
    taken.try_into().map_err(|_| io::Error::other("no free ports on loopback"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn none_is_given_twice() {
        let mut ports = super::free::<12>().unwrap().to_vec();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 12);
    }
}
