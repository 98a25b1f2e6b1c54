//! `explain`: one need's way through the last cycle.

mod screen;

use bigfleet_wire::v1alpha1::{ExplainNeedRequest, NeedView};

pub use self::screen::screen;
use super::needs;
use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    shards::{self, Select},
    text, when,
};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// Cluster of the need
    #[arg(long, value_name = "ID")]
    cluster: String,
    /// Its fingerprint, or a part that no other has; `needs -o wide` shows it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    fingerprint: String,
    /// Its group, as `needs -o wide` shows it
    #[arg(long, value_name = "TEXT")]
    group: Option<String>,
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let shard = shards::serving(fleet, console, &args.shard, &args.cluster).await?;
    let (header, needs) = needs::inspect(&shard, &args.cluster, 0).await?;
    let need = find(&needs, args)?;
    let request = shard.request(ExplainNeedRequest {
        cluster_id: need.cluster_id.clone(),
        profile_fingerprint: need.profile_fingerprint.clone(),
        group: group_of(need).to_owned(),
    });
    let mut rpc = shard.observe();
    let explained = shard.answer("explain", rpc.explain_need(request)).await?;
    console.text(&screen(&shard.name, &explained, header.computed_at_unix_nanos, when::now()))
}

fn group_of(need: &NeedView) -> &str {
    need.need.as_ref().map_or("", |need| &need.group)
}

/// The one need that is meant; among several that match, the one that is unmet.
fn find<'a>(needs: &'a [NeedView], args: &Args) -> Result<&'a NeedView, Error> {
    let meant = |need: &&NeedView| {
        let group = args
            .group
            .as_ref()
            .is_none_or(|group| group == group_of(need) || *group == text::group(group_of(need)));
        group && need.profile_fingerprint.contains(&args.fingerprint)
    };
    let found: Vec<&NeedView> = needs.iter().filter(meant).collect();
    let exact = found.iter().filter(|need| need.profile_fingerprint == args.fingerprint);
    let unmet = found.iter().filter(|need| !need.satisfied);
    let one = only(found.iter()).or_else(|| only(exact)).or_else(|| only(unmet));
    match (one, found.as_slice()) {
        (Some(one), _) => Ok(one),
        (None, []) => Err(Error::Failed(format!(
            "cluster {} has no such need among its {}; see `needs -o wide`",
            args.cluster,
            needs.len()
        ))),
        (None, several) => {
            let mut message =
                format!("{} needs match; say which with --fingerprint and --group:", several.len());
            for need in several.iter().take(20) {
                let state = if need.satisfied { "satisfied" } else { "unmet" };
                let group = text::group(group_of(need));
                message += &format!("\n  {state}  {}", need.profile_fingerprint);
                if !group.is_empty() {
                    message += &format!("  --group '{group}'");
                }
            }
            Err(Error::Usage(message))
        }
    }
}

fn only<'a, 'b>(mut all: impl Iterator<Item = &'b &'a NeedView>) -> Option<&'a NeedView>
where
    'a: 'b,
{
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::CapacityNeed;

    use super::*;

    fn view(fingerprint: &str, group: &str, satisfied: bool) -> NeedView {
        NeedView {
            need: Some(CapacityNeed { group: group.to_owned(), ..CapacityNeed::default() }),
            profile_fingerprint: fingerprint.to_owned(),
            satisfied,
            ..NeedView::default()
        }
    }

    fn args(fingerprint: &str, group: Option<&str>) -> Args {
        Args {
            shard: Select::default(),
            cluster: "c".to_owned(),
            fingerprint: fingerprint.to_owned(),
            group: group.map(str::to_owned),
        }
    }

    #[test]
    fn a_part_of_the_fingerprint_is_enough_if_it_is_the_only_one() {
        let needs =
            [view("p=1|x", "", true), view("p=2|x", "a\0b", false), view("p=2|xy", "", true)];
        for (fingerprint, group, found) in [
            ("p=1", None, 0),
            ("", None, 1),
            ("p=2|x", None, 1),
            ("xy", None, 2),
            ("", Some("a\\0b"), 1),
        ] {
            let need = find(&needs, &args(fingerprint, group)).unwrap();
            assert!(std::ptr::eq(need, &needs[found]), "{fingerprint} {group:?}");
        }
        let none = find(&needs, &args("nothing", None)).unwrap_err();
        assert_eq!(none.exit_code(), 1);
        let two = [view("ab", "", true), view("ac", "", true)];
        assert_eq!(find(&two, &args("a", None)).unwrap_err().exit_code(), 2);
    }
}
