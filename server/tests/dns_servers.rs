//! The DNS servers that the resolver asks, as they may be: silent, wrong, long-winded, or gone half-way.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use hearth::network::resolver::{Answer, Kind, Upstream};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record};

const NAME: &str = "api.example.com";

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// The answer to a question, with the address that ends so.
fn reply(question: &[u8], last: u8) -> Message {
    let asked = Message::from_vec(question).expect("a question");
    let mut answer = Message::new(asked.metadata.id, MessageType::Response, OpCode::Query);
    answer.add_query(asked.queries[0].clone());
    let name = asked.queries[0].name.clone();
    answer.add_answer(Record::from_rdata(
        name,
        60,
        RData::A(A::new(192, 0, 2, last)),
    ));
    answer
}

fn bytes(message: &Message) -> Vec<u8> {
    message.to_vec().expect("a message")
}

/// A server that sends what this says for each question by UDP, and does this with connections.
fn server(
    udp: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
    tcp: impl Fn(std::net::TcpStream) -> io::Result<()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let socket = UdpSocket::bind(address).expect("the same port");
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for answer in udp(&buffer[..length]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = tcp(stream);
        }
    });
    address
}

fn good(last: u8) -> SocketAddr {
    server(
        move |question| vec![bytes(&reply(question, last))],
        |_| Ok(()),
    )
}

fn silent() -> SocketAddr {
    server(|_| Vec::new(), |_| Ok(()))
}

async fn ask(servers: Vec<SocketAddr>) -> Option<Answer> {
    Upstream::new(servers).ask(NAME, Kind::A).await.ok()
}

fn found(last: u8) -> Option<Answer> {
    Some(Answer::Addresses(
        vec![address(last)],
        Duration::from_secs(60),
    ))
}

#[tokio::test]
async fn the_next_server_is_asked() {
    let failing = server(
        |question| {
            let mut answer = reply(question, 9);
            answer.metadata.response_code = ResponseCode::ServFail;
            vec![bytes(&answer)]
        },
        |_| Ok(()),
    );
    assert_eq!(ask(vec![silent(), failing, good(1)]).await, found(1));
    assert_eq!(ask(vec![failing]).await, Some(Answer::Failed));
    assert_eq!(ask(Vec::new()).await, None);
}

#[tokio::test]
async fn silence_ends() {
    let begun = Instant::now();
    assert_eq!(ask(vec![silent(), silent(), silent()]).await, None);
    // The function's library would have given up as well.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn answers_to_other_questions_are_not_taken() {
    let liar = server(
        |question| {
            let mut other_id = reply(question, 7);
            other_id.metadata.id ^= 1;
            let mut other_name = reply(question, 8);
            other_name.queries[0].name = Name::from_ascii("evil.example.").expect("a name");
            let mut nonsense = question.to_vec();
            nonsense.truncate(9);
            vec![
                bytes(&other_id),
                bytes(&other_name),
                nonsense,
                bytes(&reply(question, 1)),
            ]
        },
        |_| Ok(()),
    );
    assert_eq!(ask(vec![liar]).await, found(1));
}

/// Says by UDP that the answer is too long.
fn truncated(question: &[u8]) -> Vec<Vec<u8>> {
    let mut answer = reply(question, 9);
    answer.answers.clear();
    answer.metadata.truncation = true;
    vec![bytes(&answer)]
}

fn read_question(stream: &mut std::net::TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut question)?;
    Ok(question)
}

#[tokio::test]
async fn a_long_answer_comes_by_tcp() {
    let long = server(truncated, |mut stream| {
        let question = read_question(&mut stream)?;
        let answer = bytes(&reply(&question, 1));
        let length = u16::try_from(answer.len()).expect("short enough");
        // In pieces.
        stream.write_all(&length.to_be_bytes()[..1])?;
        stream.write_all(&length.to_be_bytes()[1..])?;
        stream.write_all(&answer[..20])?;
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(&answer[20..])
    });
    assert_eq!(ask(vec![long]).await, found(1));
}

#[tokio::test]
async fn a_server_that_stops_half_way_holds_up_nobody() {
    let stalling = server(truncated, |mut stream| {
        let question = read_question(&mut stream)?;
        let answer = bytes(&reply(&question, 9));
        stream.write_all(&(answer.len() as u16).to_be_bytes())?;
        stream.write_all(&answer[..20])?;
        // Longer than anybody waits.
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60));
            drop(stream);
        });
        Ok(())
    });
    let closing = server(truncated, |mut stream| {
        read_question(&mut stream)?;
        stream.write_all(&[0])
    });
    assert_eq!(ask(vec![stalling, good(1)]).await, found(1));
    assert_eq!(ask(vec![closing, good(2)]).await, found(2));
}
