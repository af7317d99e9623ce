//! The addresses to which an internet server may refer us: its documents must not make us send requests to a machine
//! of the local network (2025-11-25, basic/security_best_practices, server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A resolver that never returns private addresses. It runs at the moment of connecting, so that a name cannot change
/// its meaning in between. Proxies may have any address.
#[derive(Debug, Clone, Default)]
pub(in crate::upstream) struct AddressGuard {
    /// The hosts that may be private.
    exempt: Vec<String>,
}

impl AddressGuard {
    /// Creates a guard that permits connections to the hosts of these proxies.
    pub(in crate::upstream) fn sparing<'a>(proxies: impl IntoIterator<Item = &'a str>) -> Self {
        let host = |proxy: &str| {
            let url = reqwest::Url::parse(proxy)
                .or_else(|_| reqwest::Url::parse(&format!("http://{proxy}")))
                .ok()?;
            Some(url.host_str()?.to_owned())
        };
        Self {
            exempt: proxies.into_iter().filter_map(host).collect(),
        }
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_exempt = self
            .exempt
            .iter()
            .any(|host| host.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if !is_exempt && found.iter().any(|address| !is_public(address.ip())) {
                return Err("its name resolves to a private address".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether `address` is public: IANA's registries of special-purpose addresses (RFC 6890) list it as globally
/// reachable. An IPv6 address that embeds an IPv4 address is as public as that one.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match within(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

/// The IPv4 address embedded in an IPv6 address: mapped and translated (RFC 4291, 2765), compatible, by NAT64 (RFC
/// 6052), by 6to4 (RFC 3056), by ISATAP (RFC 5214).
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of =
        |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => of(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => of(high, low),
        _ => None,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Global unicast alone: no loopback, local, unique-local, site-local, link-local, multicast, discard or segment address,
    // and not the local prefix of NAT64 (64:ff9b:1::/48).
    a & 0xe000 == 0x2000
        // Protocol assignments (2001::/23), including Teredo,
        && !(a == 0x2001 && b < 0x200)
        // and documentation.
        && (a, b) != (0x2001, 0xdb8)
        && !(a == 0x3fff && b < 0x1000)
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments, the former relays of 6to4, and benchmarks.
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && matches!(b, 18 | 19)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_stands_for_a_private_address_is_not_resolved() {
        let resolve = |guard: &AddressGuard| guard.resolve("localhost".parse().unwrap());
        assert!(resolve(&AddressGuard::default()).await.is_err());
        // Only the proxy may be there.
        assert!(
            resolve(&AddressGuard::sparing(["http://localhost:3128"]))
                .await
                .is_ok()
        );
        assert!(
            resolve(&AddressGuard::sparing(["proxy.example:3128"]))
                .await
                .is_err()
        );
    }

    #[test]
    fn private_addresses_are_known_in_every_dress() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "ff02::1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "240.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::808:808",
            "64:ff9b:1:ffff::1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fec0::1",
            "feff::1",
            "2606:4700::5efe:a00:1",
            "2606:4700::200:5efe:a00:1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2a00:1450::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
