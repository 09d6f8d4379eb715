//! The workloads of the lab's overhead study, and its function for STeLLAR's experiments, as a bootstrap: a program that asks for its
//! invocations by AWS Lambda's Runtime API, over one connection, and knows nothing of Hearth. The part of the handler's name behind the last
//! dot says which workload. Each answer of the study has its invocation's id, by which the history has its stages, and what was computed.
//!
//! A function is one line, which needs no more than this program in the sandbox: `#!/opt/hearth/provided/hearth-workloads`.
#![deny(unsafe_code)]

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

type Anything = Box<dyn Error>;

/// The address in front of which the API's paths are.
const API: &str = "AWS_LAMBDA_RUNTIME_API";
/// The setting `handler`.
const HANDLER: &str = "_HANDLER";
/// What an answer's body may have, in bytes.
const BODY_MAX: usize = 1 << 20;

/// What every invocation of the study has.
#[derive(Debug, Deserialize)]
struct Event {
    points: u64,
    sleep_ms: u64,
    pixels: usize,
}

fn main() -> Result<(), Anything> {
    let handler = std::env::var(HANDLER)?;
    let name = handler.rsplit('.').next().unwrap_or_default();
    let answer: fn(&str, &[u8]) -> Result<Value, Anything> = match name {
        "empty" => |id, event| study(id, event, |_| json!(0)),
        "math" => |id, event| study(id, event, |event| json!(pi(event.points))),
        "sleep" => |id, event| {
            study(id, event, |event| {
                std::thread::sleep(Duration::from_millis(event.sleep_ms));
                json!(event.sleep_ms)
            })
        },
        "image" => |id, event| study(id, event, |event| json!(image(event.pixels))),
        "stellar" => stellar,
        other => return Err(format!("there is no workload {other:?}").into()),
    };
    let mut api = Api::connect(std::env::var(API)?)?;
    loop {
        let (id, event) = api.next()?;
        api.respond(&id, &answer(&id, &event)?)?;
    }
}

/// One of the study's workloads.
fn study(id: &str, event: &[u8], work: fn(&Event) -> Value) -> Result<Value, Anything> {
    let event: Event = serde_json::from_slice(event)?;
    Ok(json!({"id": id, "value": work(&event)}))
}

/// An HTTP request, as far as STeLLAR's function reads it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    query_string_parameters: Option<Query>,
}

/// STeLLAR's parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Query {
    increment_limit: Option<String>,
    payload_length_bytes: Option<String>,
}

/// Spins, makes a payload, and says when it ran.
fn stellar(id: &str, request: &[u8]) -> Result<Value, Anything> {
    let request: Request = serde_json::from_slice(request)?;
    let query = request.query_string_parameters.as_ref();
    let number = |text: Option<&String>| text.map_or(Ok(0), |text| text.parse::<u64>());
    let spins = number(query.and_then(|query| query.increment_limit.as_ref()))?;
    let length = number(query.and_then(|query| query.payload_length_bytes.as_ref()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let mut spun = 0;
    while spun < spins {
        // A loop that does nothing else would be left out.
        spun = std::hint::black_box(spun + 1);
    }
    let mut payload = Vec::new();
    payload.try_reserve_exact(usize::try_from(length)?)?;
    payload.resize(length as usize, b'x');
    std::hint::black_box(payload);
    let body = json!({"RequestID": id, "TimestampChain": [now.to_string()]});
    let headers = json!({"content-type": "application/json"});
    Ok(json!({"statusCode": 200, "headers": headers, "body": body.to_string()}))
}

/// Pi by Monte Carlo, with a generator that is seeded in each call.
fn pi(points: u64) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // Xorshift, whose state must not be zero.
    let mut state = now.map_or(1, |now| now.as_nanos() as u64) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let inside = (0..points).filter(|_| {
        let (x, y) = (uniform(), uniform());
        x * x + y * y <= 1.0
    });
    4.0 * inside.count() as f64 / points as f64
}

/// A grey bitmap, box-blurred along both axes: the sum of all pixels.
fn image(size: usize) -> u64 {
    let bitmap: Vec<u8> = (0..size * size)
        .map(|at| {
            let (x, y) = (at % size, at / size);
            (x * y + 7 * x) as u8
        })
        .collect();
    let bitmap = blurred(&blurred(&bitmap, size, 1, size), size, size, 1);
    bitmap.into_iter().map(u64::from).sum()
}

/// Each pixel's mean with its neighbours along one axis; `step` leads to the next one, `across` to the next line.
fn blurred(pixels: &[u8], size: usize, step: usize, across: usize) -> Vec<u8> {
    let mut out = vec![0; size * size];
    for line in 0..size {
        for place in 0..size {
            let at = line * across + place * step;
            let before = if place > 0 { at - step } else { at };
            let after = if place < size - 1 { at + step } else { at };
            let sum: u16 = [before, at, after]
                .into_iter()
                .map(|at| u16::from(pixels[at]))
                .sum();
            out[at] = (sum / 3) as u8;
        }
    }
    out
}

/// A connection to the Runtime API.
#[derive(Debug)]
struct Api {
    host: String,
    stream: BufReader<TcpStream>,
}

impl Api {
    fn connect(host: String) -> Result<Self, Anything> {
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            host,
            stream: BufReader::new(stream),
        })
    }

    /// Waits for the next invocation: its id and its event.
    fn next(&mut self) -> Result<(String, Vec<u8>), Anything> {
        self.send("GET", "next", &[])?;
        let (id, event) = self.receive()?;
        Ok((id.ok_or("an invocation without an id")?, event))
    }

    fn respond(&mut self, id: &str, answer: &Value) -> Result<(), Anything> {
        let answer = answer.to_string();
        self.send("POST", &format!("{id}/response"), answer.as_bytes())?;
        self.receive().map(drop)
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(), Anything> {
        let mut request = format!(
            "{method} /2018-06-01/runtime/invocation/{path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        Ok(self.stream.get_mut().write_all(&request)?)
    }

    /// An answer's invocation id, if it has one, and its body.
    fn receive(&mut self) -> Result<(Option<String>, Vec<u8>), Anything> {
        let mut line = String::new();
        let mut next_line = |stream: &mut BufReader<TcpStream>| -> Result<String, Anything> {
            line.clear();
            match stream.read_line(&mut line)? {
                0 => Err("the Runtime API has closed the connection".into()),
                _ => Ok(line.trim_end().to_owned()),
            }
        };
        let status = next_line(&mut self.stream)?;
        if !status.starts_with("HTTP/1.1 2") {
            return Err(status.into());
        }
        let (mut id, mut length) = (None, 0);
        loop {
            let header = next_line(&mut self.stream)?;
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "lambda-runtime-aws-request-id" => id = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse()?,
                _ => {}
            }
        }
        if length > BODY_MAX {
            return Err(format!("an answer of {length} bytes").into());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((id, body))
    }
}
