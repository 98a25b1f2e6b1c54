//! Keys for what viewers carry.

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key, Tag};

use super::OidcConfig;

/// The key for one kind of thing that viewers carry. It comes from the client's secret, which all
/// replicas share, and from everything that says who may look at what: what was given out under
/// other rules, or by another dashboard of the same client, is worth nothing here.
pub(super) fn derive(config: &OidcConfig, kind: &str) -> Tag {
    let mut groups: Vec<&str> = config.allowed_groups.iter().map(String::as_str).collect();
    groups.sort_unstable();
    groups.dedup();
    let claim = config.cluster_scope_claim.as_deref();
    let scoped = if claim.is_some() { "scoped" } else { "whole" };
    let rules = [kind, &config.issuer, &config.client_id, scoped, claim.unwrap_or_default()];
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, config.client_secret.as_bytes()));
    context.update(b"bigfleet-web-dashboard, version 2");
    for part in rules.into_iter().chain(groups) {
        // With their lengths, so that no two lists of parts read alike.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.sign()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(groups: &[&str]) -> OidcConfig {
        OidcConfig {
            issuer: "https://i".to_owned(),
            client_id: "me".to_owned(),
            client_secret: "a secret".to_owned(),
            allowed_groups: groups.iter().map(|&group| group.to_owned()).collect(),
            cluster_scope_claim: None,
        }
    }

    fn key(config: &OidcConfig) -> Vec<u8> {
        derive(config, "session").as_ref().to_vec()
    }

    #[test]
    fn replicas_share_a_key() {
        assert_eq!(key(&config(&["a", "b"])), key(&config(&["b", "a", "b"])));
    }

    #[test]
    fn every_rule_makes_a_key_of_its_own() {
        let usual = config(&["a", "b"]);
        let text = str::to_owned;
        let mut keys = vec![key(&usual), derive(&usual, "login").as_ref().to_vec()];
        keys.extend([&["a"][..], &["ab"], &["a", "b", "c"]].map(|groups| key(&config(groups))));
        keys.extend(
            [
                OidcConfig { issuer: text("https://j"), ..usual.clone() },
                OidcConfig { client_id: text("you"), ..usual.clone() },
                OidcConfig { client_secret: text("another"), ..usual.clone() },
                OidcConfig { cluster_scope_claim: Some(text("c")), ..usual.clone() },
                OidcConfig { cluster_scope_claim: Some(text("")), ..usual },
            ]
            .map(|other| key(&other)),
        );
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
