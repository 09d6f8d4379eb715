//! What requests are made of, ready to be sent.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::endpoint::Endpoint;
use super::plan::Plan;
use super::tls::{self, Tls};

/// A request that is ready to be sent.
pub(super) struct Prepared {
    pub(super) bytes: Rc<[u8]>,
    /// Which of the addresses.
    pub(super) address: usize,
}

/// All requests of a plan, and the addresses that they go to.
pub(super) struct Targets {
    pub(super) requests: Vec<Prepared>,
    /// Each once.
    pub(super) addresses: Vec<(SocketAddr, Option<Tls>)>,
}

impl Targets {
    /// Looks up the hosts, each once.
    pub(super) fn resolve(plan: &Plan) -> io::Result<Self> {
        let mut hosts: HashMap<(String, u16, bool), usize> = HashMap::new();
        let mut addresses = Vec::new();
        let mut requests = Vec::new();
        let mut config = None;
        for request in &plan.requests {
            let endpoint = Endpoint::parse(&request.url).map_err(io::Error::other)?;
            let host = (endpoint.host.clone(), endpoint.port, endpoint.is_tls);
            let address = match hosts.get(&host) {
                Some(address) => *address,
                None => {
                    let tls = match endpoint.is_tls {
                        true => {
                            let config = match &config {
                                Some(config) => Arc::clone(config),
                                None => config.insert(tls::config(&plan.trust)?).clone(),
                            };
                            Some(Tls::new(config, &endpoint.host)?)
                        }
                        false => None,
                    };
                    addresses.push((endpoint.resolve()?, tls));
                    hosts.insert(host, addresses.len() - 1);
                    addresses.len() - 1
                }
            };
            let bytes = endpoint.request(&request.method, &request.headers, &request.body);
            requests.push(Prepared {
                bytes: bytes.into(),
                address,
            });
        }
        Ok(Self {
            requests,
            addresses,
        })
    }
}
