//! `hearth lab store`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::store::Access;
use crate::store::access::Keys;
use crate::store::attached;
use crate::store::process::{Program, Source, bucket, random};

/// Fewest characters of a token that somebody chooses.
const TOKEN_MIN: usize = 16;

/// An object store for storage transfers, on another host than the server's: PUT, GET, HEAD and DELETE as S3 has them.
#[derive(Args)]
pub(super) struct Store {
    /// Address and port to listen at
    #[arg(long, default_value = "0.0.0.0:9000")]
    listen: SocketAddr,
    /// Directory on the disk that objects are to be on; their files have no names [default: that for temporary files]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Who has this may use it, as Authorization: Bearer TOKEN [default: a random one, which is printed]
    #[arg(long, env = "HEARTH_STORE_TOKEN", hide_env_values = true)]
    store_token: Option<String>,
    /// Be led by the process that started this one, by stdin
    #[arg(long, hide = true)]
    attached: bool,
}

/// Where the store of a run is.
#[derive(Args)]
pub(super) struct Stored {
    /// Object store for storage transfers: one of hearth lab store on another host, or a bucket of S3 (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_SESSION_TOKEN, AWS_REGION), at an address that begins with http:// [default: the run starts one, which takes root]
    #[arg(long = "store", env = "HEARTH_STORE", value_name = "URL")]
    url: Option<String>,
    /// Token of hearth lab store
    #[arg(long, env = "HEARTH_STORE_TOKEN", hide_env_values = true)]
    store_token: Option<String>,
}

impl Stored {
    pub(super) fn source(self, own: &Program) -> anyhow::Result<Source> {
        let Some(url) = self.url else {
            return Ok(Source::Own(own.clone()));
        };
        if let Some(token) = self.store_token.filter(|token| !token.is_empty()) {
            return Ok(Source::At(Access::with_token(&url, &token)?));
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let keys = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
        let (id, secret) = keys.context(
            "the store's token is needed (HEARTH_STORE_TOKEN), or S3's keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
        )?;
        let keys = Keys {
            id,
            secret,
            session_token: variable("AWS_SESSION_TOKEN"),
            region: variable("AWS_REGION").unwrap_or_else(|| "us-east-1".to_owned()),
        };
        Ok(Source::At(Access::with_keys(&url, keys)?))
    }
}

impl Store {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        if self.attached {
            let served = runtime.block_on(attached::serve());
            // Not waiting for a read of stdin that may be pending.
            runtime.shutdown_background();
            return Ok(served?);
        }
        let token = match self.store_token {
            Some(token) => {
                let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
                ensure!(
                    is_plain && token.len() >= TOKEN_MIN,
                    "HEARTH_STORE_TOKEN: at least {TOKEN_MIN} letters, digits and signs"
                );
                token
            }
            None => {
                let token = format!("{:032x}{:032x}", random()?, random()?);
                println!("HEARTH_STORE_TOKEN={token}");
                token
            }
        };
        let directory = self.directory.unwrap_or_else(std::env::temp_dir);
        runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let listener = TcpListener::bind(self.listen).await;
            let listener = listener.with_context(|| self.listen.to_string())?;
            println!("{}", bucket(&listener.local_addr()?.to_string()));
            let store = Arc::new(crate::store::Store::new(directory, token));
            tokio::select! {
                () = store.serve(listener) => {}
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            Ok(())
        })
    }
}
