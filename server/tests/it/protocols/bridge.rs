//! A broker in between: mosquitto, with a bridge to a port.

use std::process::{Command, Stdio};

use hearth_testkit::program::Program;
use serde_json::{Value, json};

use super::mqtt::{asked, with_ports};
use crate::ports::free;
use crate::support::TOKEN;

/// A broker whose bridge publishes what is below `house`, and takes the answers, in this version of MQTT.
fn broker(port: u16, of_hearth: u16, version: &str) -> (Program, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = format!(
        "user root\n\
         listener {port} 127.0.0.1\n\
         allow_anonymous true\n\
         connection hearth\n\
         address 127.0.0.1:{of_hearth}\n\
         bridge_protocol_version {version}\n\
         try_private false\n\
         notifications false\n\
         restart_timeout 1\n\
         remote_clientid bridge\n\
         remote_username bridge\n\
         remote_password {TOKEN}\n\
         topic house/# out 1\n\
         topic answers/# in 1\n"
    );
    let path = dir.path().join("mosquitto.conf");
    std::fs::write(&path, settings).expect("written");
    let mut run = Command::new("/usr/sbin/mosquitto");
    run.arg("-c").arg(&path);
    run.stdin(Stdio::null()).stdout(Stdio::null());
    let program = Program::start_with(&mut run);
    let program = program.expect("mosquitto; scripts/setup.sh test installs it");
    (program, dir)
}

#[tokio::test]
async fn a_brokers_bridge_brings_messages_and_takes_answers() {
    let (_server, _client, of_chain, _) = with_ports().await;
    for (version, arguments) in [
        // The settings say where the answer goes, by the name of the bridge; or the message says it.
        (
            "mqttv311",
            ["-V", "311", "-t", "house/hall/door", "-e", "answers/bridge"],
        ),
        (
            "mqttv50",
            ["-V", "5", "-t", "house/hall/door", "-e", "answers/me"],
        ),
    ] {
        let port = free();
        let (_broker, _dir) = broker(port, of_chain, version);
        crate::support::eventually("the broker listens", super::LIMIT, || async {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .await;
        let said = asked(port, &[&arguments[..], &["-q", "1", "-m", "hi"]].concat());
        let said: Value = serde_json::from_str(said.trim()).expect("JSON");
        assert_eq!(
            (&said["route"], &said["client"]),
            (&json!("doors"), &json!("bridge")),
            "{version}"
        );
    }
}
