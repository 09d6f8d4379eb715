//! A function that has its events in place, for tests and benchmarks. An event is a JSON string that says what it does; any other
//! string is passed on in upper case, and whatever is no string as it is.

use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use hearth_native::{Chain, ChainError, Error, InPlace, Request};

fn main() {
    hearth_native::serve_blocks(|mut request, context| {
        // As fast as can be: for measurements.
        if !request.bytes().starts_with(b"\"") || request.bytes().starts_with(b"\"pass") {
            return Ok(request.pass());
        }
        let (word, rest) = order(&request);
        match word.as_str() {
            "call" => {
                let mut chain = context.chain()?;
                let mut block = chain.block()?;
                block.write(format!("{rest:?}").as_bytes())?;
                let result = chain.call_block("double", block)?;
                request.write(result.bytes())?;
                Ok(request.pass())
            }
            "respond" => {
                request.write(format!("{rest:?}").as_bytes())?;
                Ok(context.chain()?.respond_block(request)?)
            }
            "send" => {
                request.write(format!("{rest:?}").as_bytes())?;
                Ok(context.chain()?.send_block("last", request)?)
            }
            "fail" => Err(Error::new("Asked", rest)),
            "panic" => panic!("asked"),
            "fill" => {
                let all = request.capacity();
                request.resize(all)?;
                request.bytes_mut().fill(b' ');
                request.bytes_mut()[0] = b'1';
                Ok(request.pass())
            }
            "overflow" => {
                let more = request.capacity() + 1;
                request.resize(more)?;
                Ok(request.pass())
            }
            "enlarge" => {
                let bytes = rest.parse()?;
                let mut request = context.chain()?.enlarge(request, bytes)?;
                // What came is there, and there is room.
                let kept = request.bytes().starts_with(b"\"enlarge ");
                request.resize(bytes)?;
                request.bytes_mut().fill(if kept { b'l' } else { b'?' });
                request.bytes_mut()[0] = b'"';
                request.bytes_mut()[bytes - 1] = b'"';
                Ok(request.pass())
            }
            "enlarge-die" => {
                let _ = context.chain()?.enlarge(request, rest.parse()?)?;
                std::process::exit(3)
            }
            "large" => {
                let is_right = large(&mut context.chain()?, &rest)?;
                serde_json::to_writer(request.rewrite(), &is_right)?;
                Ok(request.pass())
            }
            "grow" => {
                // In steps, of which each takes other blocks.
                let bytes = rest.parse()?;
                let mut request = request;
                for part in [4, 2, 1] {
                    request = context.chain()?.enlarge(request, bytes / part)?;
                }
                request.resize(bytes)?;
                request.bytes_mut().fill(b'g');
                request.bytes_mut()[0] = b'"';
                request.bytes_mut()[bytes - 1] = b'"';
                Ok(request.pass())
            }
            "where" => {
                let file = mapped_file(request.bytes().as_ptr().addr());
                serde_json::to_writer(request.rewrite(), &file)?;
                Ok(request.pass())
            }
            "left" => {
                let left = left(&mut context.chain()?)?;
                serde_json::to_writer(request.rewrite(), &left)?;
                Ok(request.pass())
            }
            "time" | "time-apart" => {
                let mut chain = context.chain()?;
                if word == "time-apart" {
                    stay(0)?;
                    let mut block = chain.block()?;
                    block.write(b"\"stay 1\"")?;
                    chain.call_block("peer", block)?;
                }
                let times = time(&mut chain, rest.parse()?)?;
                serde_json::to_writer(request.rewrite(), &times)?;
                Ok(request.pass())
            }
            "stay" => {
                stay(rest.parse()?)?;
                Ok(request.pass())
            }
            _ => {
                request.bytes_mut().make_ascii_uppercase();
                Ok(request.pass())
            }
        }
    })
}

/// Runs on one of the processors only: the one with this number among those that it may have.
fn stay(number: usize) -> Result<(), Error> {
    let may = sched_getaffinity(None).map_err(|error| Error::new("Affinity", error.to_string()))?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| may.is_set(cpu))
        .collect();
    let mut only = CpuSet::new();
    only.set(processors[number % processors.len()]);
    sched_setaffinity(None, &only).map_err(|error| Error::new("Affinity", error.to_string()))
}

/// Calls the member `peer` so many times; how long each call took, in ns.
fn time(chain: &mut Chain<'_, '_, InPlace>, calls: usize) -> Result<Vec<u64>, ChainError> {
    let mut block = chain.block()?;
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        // A block has room for more.
        let _ = block.write(b"\"pass\"");
        let begun = Instant::now();
        block = chain.call_block("peer", block)?;
        times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(times)
}

/// Calls a member with a payload of so many bytes, for a result of so many; whether it is as it must be.
fn large(chain: &mut Chain<'_, '_, InPlace>, order: &str) -> Result<bool, Error> {
    let mut words = order.split(' ');
    let (how, member) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let bytes: usize = words.next().unwrap_or("").parse()?;
    let want: usize = words.next().unwrap_or("").parse()?;
    if how == "grown" {
        let mut block = chain.block()?;
        block.write(format!("\"grow {want}\"").as_bytes())?;
        let result = chain.call_block(member, block)?;
        let inner = result.bytes().get(1..want - 1).unwrap_or_default();
        return Ok(result.len() == want && inner.iter().all(|&byte| byte == b'g'));
    }
    let head = format!(r#"{{"want":{want},"text":""#);
    let text = "x".repeat(bytes - head.len() - 2);
    let payload = format!(r#"{head}{text}"}}"#);
    let mut expected = format!("{}:", text.len());
    expected.push_str(&"r".repeat(want - 2 - expected.len()));
    if how == "value" {
        let value: serde_json::Value = serde_json::from_str(&payload)?;
        let result: String = chain.call(member, &value)?;
        return Ok(result == expected);
    }
    let room = if how == "roomy" {
        bytes.max(want)
    } else {
        bytes
    };
    let mut block = chain.block_for(room)?;
    block.write(payload.as_bytes())?;
    let mut result = chain.call_block(member, block)?;
    let is_right =
        |result: &[u8]| serde_json::from_slice::<String>(result).ok().as_ref() == Some(&expected);
    let first = is_right(result.bytes());
    // The block that it came in can be called with again.
    result.write(format!(r#"{{"want":{want},"text":""}}"#).as_bytes())?;
    let again = chain.call_block(member, result)?;
    let is_again = serde_json::from_slice::<String>(again.bytes())?;
    Ok(first && is_again.starts_with("0:") && is_again.len() == want - 2)
}

/// How many bytes of a block for calls something has written to before.
fn left(chain: &mut Chain<'_, '_, InPlace>) -> Result<usize, Error> {
    let mut block = chain.block()?;
    let all = block.capacity();
    block.resize(all)?;
    Ok(block.bytes().iter().filter(|&&byte| byte != 0).count())
}

/// The first word of a string, and what follows.
fn order(request: &Request<'_>) -> (String, String) {
    let text = request.bytes().strip_prefix(b"\"").unwrap_or_default();
    let text = text.strip_suffix(b"\"").unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
    (word.to_owned(), rest.to_owned())
}

/// The file that is mapped at this address.
fn mapped_file(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let is_in = |line: &&str| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        range.is_some_and(|(begin, end)| {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or_default();
            (number(begin)..number(end)).contains(&address)
        })
    };
    let line = maps.lines().find(is_in)?;
    line.split_whitespace().nth(5).map(str::to_owned)
}
