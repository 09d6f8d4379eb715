//! The server's side of one instance.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

use hearth_abi::{Bell, Blocking, Kind, Region, RequestHead, Trigger};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Signal;
use serde_json::Value;

use super::sockets::{drain, pipe, seqpacket, wait_readable};

const RING_BYTES: u32 = 256 * 1024;

/// A whole response.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// RESPONSE_RESULT.
    Result(Value),
    /// RESPONSE_HEAD and RESPONSE_BODY.
    Http(Value, Vec<u8>),
    /// RESPONSE_ERROR.
    Error(Value),
}

/// An answer with what was printed until it was complete.
#[derive(Debug)]
pub struct Reply {
    /// The response.
    pub answer: Answer,
    /// Number of frames with a piece of an HTTP body.
    pub pieces: usize,
    /// Lines of stdout.
    pub stdout: String,
    /// Lines of stderr.
    pub stderr: String,
}

/// One instance.
pub struct Instance {
    channel: Blocking,
    bell: OwnedFd,
    ready: OwnedFd,
    stdout: File,
    stderr: File,
    /// Process id, once it is ready.
    pub pid: u32,
    requests: u8,
}

/// The server's ends of an instance to come, and the descriptors for its FORK message.
pub fn prepare_instance() -> (Instance, [OwnedFd; 6]) {
    let (region, channel) = Region::create(RING_BYTES).expect("region");
    let (ring_worker, worker_bell) = Bell::pair().expect("bell");
    let (host_bell, sleep_host) = Bell::pair().expect("bell");
    let (ready, their_ready) = seqpacket();
    let (stdout, their_stdout) = pipe();
    let (stderr, their_stderr) = pipe();
    // The harness waits on the bell itself, with a limit.
    let bell = sleep_host.as_fd().try_clone_to_owned().expect("dup");
    let blocking = Blocking::new(region.host(), sleep_host, ring_worker);
    let instance = Instance {
        channel: blocking,
        bell,
        ready,
        stdout: stdout.into(),
        stderr: stderr.into(),
        pid: 0,
        requests: 0,
    };
    (
        instance,
        [
            channel,
            worker_bell.into(),
            host_bell.into(),
            their_ready,
            their_stdout,
            their_stderr,
        ],
    )
}

impl Instance {
    /// Tells it that it is wanted.
    pub fn go(&self) {
        send(&self.ready, b"G", SendFlags::NOSIGNAL).expect("GO");
    }

    /// What it printed so far.
    pub fn drain_stdout(&self) -> String {
        drain(&self.stdout)
    }

    /// Asserts that it has said WAITING and nothing else, and lives.
    pub(super) fn assert_waiting(&self) {
        assert_eq!(self.receive(), b"W");
        let mut ready = [PollFd::new(&self.ready, PollFlags::IN)];
        let no_time = Timespec::default();
        assert_eq!(poll(&mut ready, Some(&no_time)), Ok(0), "it waits for GO");
    }

    /// Waits until it has said something, and leaves that to be received.
    pub fn wait_for_word(&self) {
        wait_readable(self.ready.as_fd(), "the instance");
    }

    /// The next message on its ready socket; empty when it has ended.
    fn receive(&self) -> Vec<u8> {
        wait_readable(self.ready.as_fd(), "the instance");
        let mut message = [0; 16];
        let (read, _) = recv(&self.ready, &mut message, RecvFlags::empty()).expect("ready socket");
        message[..read].to_vec()
    }

    /// The same, after WAITING.
    fn receive_further(&self) -> Vec<u8> {
        match self.receive() {
            waiting if waiting == b"W" => self.receive(),
            other => other,
        }
    }

    /// Waits for READY. An error: the instance ended instead, with this on its stderr.
    pub fn wait_ready(&mut self) -> Result<(), String> {
        match *self.receive_further() {
            [] => Err(drain(&self.stderr)),
            [b'R', a, b, c, d] => {
                self.pid = u32::from_le_bytes([a, b, c, d]);
                Ok(())
            }
            ref other => panic!("not READY: {other:?}"),
        }
    }

    /// Whether its end of the ready socket closes, which it does with its life.
    pub fn wait_gone(&self) {
        let further = self.receive_further();
        assert!(further.is_empty(), "on the ready socket: {further:?}");
    }

    /// Sends a signal.
    pub fn kill(&self, signal: Signal) {
        crate::processes::signal(self.pid, signal).expect("it is ready and runs");
    }

    /// Invokes it; the result must be one.
    pub fn call(&mut self, event: &Value) -> Value {
        match self.invoke(event).answer {
            Answer::Result(value) => value,
            other => panic!("no result: {other:?}"),
        }
    }

    /// Invokes it; the result must be an error.
    pub fn call_error(&mut self, event: &Value) -> Value {
        match self.invoke(event).answer {
            Answer::Error(error) => error,
            other => panic!("no error: {other:?}"),
        }
    }

    /// Invokes it.
    pub fn invoke(&mut self, event: &Value) -> Reply {
        self.request(Trigger::Invoke, None, event.to_string().as_bytes(), None)
    }

    /// An HTTP request.
    pub fn http(&mut self, event: &Value, body: &[u8]) -> Reply {
        self.request(
            Trigger::Http,
            None,
            event.to_string().as_bytes(),
            Some(body),
        )
    }

    /// An HTTP request, which must get a response. Returns its head and body.
    pub fn respond(&mut self, event: &Value, body: &[u8]) -> (Value, Vec<u8>) {
        match self.http(event, body).answer {
            Answer::Http(head, body) => (head, body),
            other => panic!("no response: {other:?}"),
        }
    }

    /// Sends a request and waits for the whole response.
    pub fn request(
        &mut self,
        trigger: Trigger,
        traceparent: Option<&str>,
        event: &[u8],
        body: Option<&[u8]>,
    ) -> Reply {
        let id = self.send(trigger, traceparent, event, body);
        let (answer, pieces) = self.answer(id);
        Reply {
            answer,
            pieces,
            stdout: drain(&self.stdout),
            stderr: drain(&self.stderr),
        }
    }

    /// Invokes it and does not wait for the answer.
    pub fn send_only(&mut self, event: &[u8]) {
        self.send(Trigger::Invoke, None, event, None);
    }

    fn send(
        &mut self,
        trigger: Trigger,
        traceparent: Option<&str>,
        event: &[u8],
        body: Option<&[u8]>,
    ) -> [u8; 16] {
        self.requests = self.requests.wrapping_add(1);
        let id = [self.requests; 16];
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("a clock");
        let deadline = (now + Duration::from_secs(30)).as_micros() as u64;
        let head = RequestHead::new(deadline, trigger).encode(traceparent);
        self.channel
            .send_message(Kind::RequestHead, &id, &head)
            .expect("head");
        self.channel
            .send_message(Kind::RequestEvent, &id, event)
            .expect("event");
        if let Some(body) = body {
            self.channel
                .send_message(Kind::RequestBody, &id, body)
                .expect("body");
        }
        id
    }

    fn answer(&mut self, id: [u8; 16]) -> (Answer, usize) {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
        let (mut head, mut payload, mut pieces) = (None, Vec::new(), 0);
        loop {
            let before = payload.len();
            let (kind, more) = self.frame(id, &mut payload);
            match kind {
                Kind::ResponseResult if !more => return (Answer::Result(parse(&payload)), 0),
                // The pieces that came before do not belong to it.
                Kind::ResponseError => {
                    let mut error = payload.split_off(before);
                    let mut more = more;
                    while more {
                        more = self.frame(id, &mut error).1;
                    }
                    return (Answer::Error(parse(&error)), pieces);
                }
                Kind::ResponseHead if !more => head = Some(parse(&std::mem::take(&mut payload))),
                Kind::ResponseBody => {
                    pieces += usize::from(payload.len() > before);
                    if !more {
                        return (
                            Answer::Http(head.expect("a head comes first"), payload),
                            pieces,
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Waits for one frame and appends its payload.
    fn frame(&mut self, id: [u8; 16], into: &mut Vec<u8>) -> (Kind, bool) {
        loop {
            let rx = &mut self.channel.endpoint().rx;
            let mut found = None;
            if let Some(mut frame) = rx.try_recv().expect("channel") {
                frame.copy_to(into).expect("checksum");
                assert_eq!(*frame.id(), id);
                found = Some((frame.kind(), frame.flags().has_more()));
            }
            if let Some(found) = found {
                self.channel.ring_if_needed().expect("bell");
                return found;
            }
            if rx.prepare_wait() {
                wait_readable(self.bell.as_fd(), "the instance");
                let _ = rustix::io::read(&self.bell, &mut [0; 512]);
                self.channel.endpoint().rx.cancel_wait();
            }
        }
    }
}
