//! One version of a chain in service.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::cores::Reservation;
use super::cpu;
use super::members::Members;
use super::path::Path;
use super::{ActivateError, InvokeError, Outcome, Request, Status};
use crate::engine::{Admitted, Engine};
use crate::model::chain::{Cpu, Version};

/// See the module. Dropping the last reference ends the instances; each request has one.
pub struct Live {
    version: Arc<Version>,
    path: Arc<Path>,
    members: Arc<Members>,
    /// Ends what waits and watches, with the last version that has these members.
    ending: Arc<DropGuard>,
    /// Its members' own cores, until the last of them is ended.
    cores: Arc<Option<Reservation>>,
}

impl Live {
    /// Makes the pool, starts all members and lets them join.
    ///
    /// # Errors
    /// [`ActivateError`]; nothing is left behind.
    pub(super) async fn start(
        engine: &Engine,
        version: Arc<Version>,
        cores: Option<Reservation>,
    ) -> Result<Arc<Self>, ActivateError> {
        let ending = CancellationToken::new();
        let guard = ending.clone().drop_guard();
        let path = Path::create(&version.spec, engine)?;
        path.clone().run(ending.clone());
        let members = Members::start(engine, &version, path.clone(), ending.clone()).await?;
        if version.spec.cpu == Cpu::Proportional {
            let (spec, members) = (version.spec.clone(), Arc::downgrade(&members));
            cpu::limit(spec, path.clone(), members, ending);
        }
        Ok(Arc::new(Self {
            version,
            path,
            members,
            ending: Arc::new(guard),
            cores: Arc::new(cores),
        }))
    }

    /// The same members for another version of the chain, which differs in nothing that concerns them.
    #[must_use]
    pub fn renewed(&self, version: Version) -> Arc<Self> {
        Arc::new(Self {
            version: Arc::new(version),
            path: self.path.clone(),
            members: self.members.clone(),
            ending: self.ending.clone(),
            cores: self.cores.clone(),
        })
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Sends a request along a route. Dropping the future gives it up: what a member makes of it is thrown away.
    pub async fn invoke(&self, route: &str, request: Request, admitted: &Admitted) -> Outcome {
        let (result, hops) = match self.version.spec.route_number(route) {
            None => (Err(InvokeError::NoRoute(route.to_owned())), Vec::new()),
            Some(route) => self.path.invoke(route, request, admitted).await,
        };
        let result = match result {
            // Its instances were ended with all others.
            Err(InvokeError::Crashed { .. }) if admitted.is_cut_off() => {
                Err(InvokeError::ShuttingDown)
            }
            other => other,
        };
        Outcome {
            result,
            hops,
            version: Some(self.version.version),
        }
    }

    /// Its figures.
    pub(super) fn status(&self) -> Status {
        let mut status = self.path.status(self.version.version);
        status.members = self.members.status(&self.version);
        status
    }
}
