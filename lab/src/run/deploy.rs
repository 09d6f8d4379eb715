//! Where a sub-experiment's requests go: functions that are deployed for it, or the endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::platform::hearth::{Function, Hearth};
use crate::platform::transfer::Transfer;
use crate::stellar::SubExperiment;

use super::{Context, Event, RunError, Target};

/// Endpoints, and the iterations that make each service time.
pub(super) struct Prepared {
    pub(super) urls: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) functions: Vec<String>,
    /// Chains of which they are the members.
    pub(super) chains: Vec<String>,
    pub(super) increments: Vec<u64>,
    /// How long they really take.
    pub(super) reached: Vec<Duration>,
}

impl Prepared {
    pub(super) async fn new(
        context: &Context<'_>,
        number: usize,
        experiment: &SubExperiment,
    ) -> Result<Self, RunError> {
        Ok(match &context.settings.target {
            Target::Hearth(hearth) => deploy(context, hearth, number, experiment).await?,
            Target::Endpoint(url) => Self {
                urls: endpoints(url, experiment),
                headers: Vec::new(),
                functions: Vec::new(),
                chains: Vec::new(),
                increments: given_increments(experiment).unwrap_or_else(|| vec![0]),
                reached: Vec::new(),
            },
        })
    }

    /// How the functions' requests got their instances so far.
    pub(super) async fn starts(
        &self,
        context: &Context<'_>,
    ) -> Result<Option<BTreeMap<String, u64>>, RunError> {
        let Target::Hearth(hearth) = &context.settings.target else {
            return Ok(None);
        };
        if !self.chains.is_empty() {
            // A chain's instances are there before its requests.
            return Ok(None);
        }
        let mut all = BTreeMap::new();
        for name in &self.functions {
            for (start, count) in hearth.starts(name).await? {
                *all.entry(start).or_default() += count;
            }
        }
        Ok(Some(all))
    }
}

/// The address of each replica: its route below the endpoint, or the endpoint, which stands for all of them.
fn endpoints(url: &str, experiment: &SubExperiment) -> Vec<String> {
    if experiment.routes.is_empty() {
        return vec![url.to_owned(); experiment.parallelism];
    }
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let address = |route: &String| {
        let mut url = format!(
            "{}/{}",
            base.trim_end_matches('/'),
            route.trim_start_matches('/')
        );
        if let Some(query) = query {
            url.push(if route.contains('?') { '&' } else { '?' });
            url.push_str(query);
        }
        url
    };
    let routes = experiment.routes.iter().take(experiment.parallelism);
    routes.map(address).collect()
}

/// What was counted since then.
pub(crate) fn since(
    before: &BTreeMap<String, u64>,
    mut after: BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    for (start, count) in &mut after {
        *count = count.saturating_sub(before.get(start).copied().unwrap_or(0));
    }
    after
}

async fn deploy(
    context: &Context<'_>,
    hearth: &Hearth,
    number: usize,
    experiment: &SubExperiment,
) -> Result<Prepared, RunError> {
    // Parsed when the experiment was read.
    let times = experiment.service_times().unwrap_or_default();
    let store = context.store.as_ref();
    let store = store.filter(|_| experiment.storage_transfer);
    let function = Function {
        source: experiment.function.clone(),
        memory_mb: experiment.function_memory_mb,
        image_mb: experiment.function_image_size_mb,
        concurrency: match experiment.concurrency_limit {
            0 => experiment.burst_sizes.iter().copied().max().unwrap_or(1),
            limit => limit,
        },
        busy: times.iter().copied().max().unwrap_or_default(),
        idle_timeout_s: experiment.idle_timeout_seconds,
        transfer: store.map(|store| Transfer {
            store: store.access().clone(),
            bytes: experiment.payload_length_bytes,
            functions: experiment.data_transfer_chain_length,
        }),
    };
    let (mut functions, mut chains) = (Vec::new(), Vec::new());
    for replica in 0..experiment.parallelism {
        context.check_cancelled()?;
        let name = format!("{}-{number}-{replica}", context.prefix);
        if let Some(store) = store {
            store.note(&name, experiment.data_transfer_chain_length);
        }
        hearth.deploy(&name, &function).await?;
        if let Some(store) = store.filter(|_| replica == 0) {
            hearth.check_transfer(&name, &store.access().bucket).await?;
        }
        if experiment.is_chain() {
            let length = experiment.data_transfer_chain_length;
            // Through storage, functions hand on nothing but a key.
            let payload = match experiment.storage_transfer {
                true => 0,
                false => experiment.payload_length_bytes,
            };
            hearth
                .deploy_chain(&name, &function, length, payload)
                .await?;
            chains.push(name.clone());
        }
        functions.push(name);
        (context.tell)(Event::Deployed {
            number,
            done: functions.len(),
            total: experiment.parallelism,
        });
    }
    let mut increments = Vec::new();
    let mut reached = Vec::new();
    match given_increments(experiment) {
        Some(given) => increments = given,
        None => {
            for wanted in times {
                // A deploy is waited for, so that it can be removed; this may take minutes and leaves nothing.
                let (found, time) = tokio::select! {
                    found = hearth.calibrate(&functions[0], wanted) => found?,
                    () = context.cancelled() => return Err(RunError::Cancelled),
                };
                increments.push(found);
                reached.push(time);
            }
        }
    }
    Ok(Prepared {
        urls: functions
            .iter()
            .map(|name| match experiment.is_chain() {
                true => Hearth::chain_path(name),
                false => Hearth::path(name),
            })
            .map(|path| hearth.client().url(&path))
            .collect(),
        headers: vec![("authorization".to_owned(), hearth.client().authorization())],
        functions,
        chains,
        increments,
        reached,
    })
}

fn given_increments(experiment: &SubExperiment) -> Option<Vec<u64>> {
    let given = &experiment.busy_spin_increments;
    (!given.is_empty()).then(|| given.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_at_their_routes_or_share_the_endpoint() {
        let addresses = |url: &str, routes: &[&str], parallelism| {
            let experiment = SubExperiment {
                routes: routes.iter().map(|&route| route.to_owned()).collect(),
                parallelism,
                ..SubExperiment::default()
            };
            endpoints(url, &experiment)
        };
        assert_eq!(
            addresses("http://a/b", &[], 2),
            ["http://a/b", "http://a/b"]
        );
        let routes = ["invoke/hello", "/x?y=1", "unused"];
        assert_eq!(
            addresses("http://a:1/", &routes, 2),
            ["http://a:1/invoke/hello", "http://a:1/x?y=1"]
        );
        assert_eq!(
            addresses("http://a/b?key=k", &routes, 2),
            ["http://a/b/invoke/hello?key=k", "http://a/b/x?y=1&key=k"]
        );
        // Whatever a route is, the host stays.
        assert_eq!(addresses("http://a", &["@evil/"], 1), ["http://a/@evil/"]);
    }
}
