//! Who asks for a fleet.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::HeaderMap;

/// What a proxy says of whom it speaks for.
const FORWARDED: &str = "x-forwarded-for";

/// The address of whoever asks. A proxy on this machine is believed about it, as to the last
/// entry: what stands before that is the visitor's own word. Of IPv6 the network counts, for
/// whoever has one address there has them all.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let peer = peer.to_canonical();
    let mut values = headers.get_all(FORWARDED).iter().filter_map(|value| value.to_str().ok());
    let last = values.next_back().and_then(|value| value.rsplit(',').next()?.trim().parse().ok());
    let address: IpAddr = last.filter(|_| peer.is_loopback()).unwrap_or(peer).to_canonical();
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED, value.parse().unwrap());
        }
        client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_proxy_on_this_machine_is_believed_and_only_its_own_word() {
        assert_eq!(told("203.0.113.7", &[]), "203.0.113.7");
        assert_eq!(told("::ffff:203.0.113.7", &[]), "203.0.113.7");
        assert_eq!(told("203.0.113.7", &["198.51.100.1"]), "203.0.113.7", "anybody can say so");
        assert_eq!(told("127.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(told("::1", &["192.0.2.9, 198.51.100.1"]), "198.51.100.1", "its own word");
        assert_eq!(told("::1", &["192.0.2.9", "198.51.100.1"]), "198.51.100.1");
        assert_eq!(told("127.0.0.1", &["nobody"]), "127.0.0.1");
        assert_eq!(told("2001:db8:1:2:3::4", &[]), told("2001:db8:1:2:ffff::9", &[]));
        assert_ne!(told("2001:db8:1:2::1", &[]), told("2001:db8:1:3::1", &[]));
    }
}
