//! Which addresses a server on the internet may send us to: a document that anybody wrote must not make us ask a machine
//! of the local network (2025-11-25, basic/security_best_practices, server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves names as usual, and knows no private address: it is asked at the moment of connecting, so that a name cannot
/// change its meaning in between. Proxies stand where they like.
#[derive(Debug, Clone, Default)]
pub(in crate::upstream) struct Guard {
    /// The hosts that may be private.
    exempt: Vec<String>,
}

impl Guard {
    /// A guard that lets connections to the hosts of these proxies pass.
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

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_exempt = self
            .exempt
            .iter()
            .any(|host| host.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if !is_exempt && found.iter().any(|address| !is_public(address.ip())) {
                return Err("its name stands for a private address".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether `address` is one of the internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match within(address) {
            Some(inner) => is_public_v4(inner),
            None => {
                let first = address.segments()[0];
                !(address.is_loopback()
                    || address.is_unspecified()
                    || address.is_multicast()
                    || first & 0xfe00 == 0xfc00
                    || first & 0xffc0 == 0xfe80)
            }
        },
    }
}

/// The older address that one of the newer kind stands for: mapped, compatible, or translated (`64:ff9b::/96`).
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let is_wrapped = matches!(
        (a, b, c, d, e, f),
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0)
    );
    let is_compatible = [a, b, c, d, e, f] == [0; 6] && high != 0;
    (is_wrapped || is_compatible)
        .then(|| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_stands_for_a_private_address_is_not_resolved() {
        let resolve = |guard: &Guard| guard.resolve("localhost".parse().unwrap());
        assert!(resolve(&Guard::default()).await.is_err());
        // A proxy may stand there, and that one only.
        assert!(
            resolve(&Guard::sparing(["http://localhost:3128"]))
                .await
                .is_ok()
        );
        assert!(
            resolve(&Guard::sparing(["proxy.example:3128"]))
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
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
