//! What the audit counts of this process is what it does.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::id;
use std::thread;

use hearth_ebpf::audit::{Audit, Counts, Kind, Part};

const TIMES: u64 = 100;
const BYTES: usize = 4096;

fn counted(audit: &Audit, work: impl FnOnce()) -> Counts {
    let before = audit.counts().expect("counts");
    work();
    audit.counts().expect("counts").since(&before)
}

/// What cannot be counted by this kernel has no figure to be wrong.
fn can_count(audit: &Audit, kind: Kind) -> bool {
    audit.missing().iter().all(|(missing, _)| *missing != kind)
}

#[inline(never)]
fn a_function_to_be_found(number: u64) -> u64 {
    black_box(number) + 1
}

// One test: uprobes are counted for the whole process, whoever has attached them.
#[test]
fn the_audit_counts_what_a_process_does() {
    let mut audit = Audit::load().expect("it loads");
    let mut null = File::create("/dev/null").expect("a file");
    let mut zero = File::open("/dev/zero").expect("a file");
    let mut buffer = vec![0; BYTES];
    let mut write = || {
        for _ in 0..TIMES {
            null.write_all(&[1; BYTES]).expect("it takes all");
        }
    };
    let bytes = BYTES as u64;

    // Nobody is followed yet.
    let counts = counted(&audit, &mut write);
    assert_eq!(counts.of(Part::Members, Kind::PayloadsIn), 0);
    audit.follow(id(), Part::Members).expect("there is room");
    let counts = counted(&audit, &mut write);
    assert_eq!(counts.of(Part::Members, Kind::PayloadsIn), 0, "of no size");
    audit.payload(bytes..bytes + 1).expect("it takes a size");
    if can_count(&audit, Kind::PayloadsIn) {
        let counts = counted(&audit, &mut write);
        assert_eq!(counts.of(Part::Members, Kind::PayloadsIn), TIMES);
        assert_eq!(counts.of(Part::Members, Kind::PayloadsOut), 0);
        assert!(counts.of(Part::Members, Kind::SystemCalls) >= TIMES);
        assert_eq!(counts.of(Part::Server, Kind::SystemCalls), 0);
        let counts = counted(&audit, || {
            for _ in 0..TIMES {
                zero.read_exact(&mut buffer).expect("it gives all");
            }
        });
        assert_eq!(counts.of(Part::Members, Kind::PayloadsOut), TIMES);
        assert_eq!(counts.of(Part::Members, Kind::TcpSent), 0);
    }

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut to =
        TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
    let (mut from, _) = listener.accept().expect("a connection");
    let counts = counted(&audit, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    from.read_exact(&mut [0]).expect("a byte");
                    from.write_all(&[0]).expect("the other end reads");
                }
            });
            for _ in 0..TIMES {
                to.write_all(&[0]).expect("the other end reads");
                to.read_exact(&mut [0]).expect("a byte");
            }
        });
    });
    for kind in [Kind::TcpSent, Kind::TcpReceived] {
        if can_count(&audit, kind) {
            assert_eq!(counts.of(Part::Members, kind), 2 * TIMES, "{kind:?}");
        }
    }
    // Both wait for each other all the time.
    assert!(counts.of(Part::Members, Kind::Switches) >= TIMES);
    assert!(counts.of(Part::Members, Kind::Packets) >= 2 * TIMES);

    audit.probe_copies(id()).expect("the same C library");
    let payload = vec![1_u8; BYTES];
    let counts = counted(&audit, || {
        for _ in 0..TIMES {
            buffer.copy_from_slice(black_box(&payload));
            black_box(&mut buffer);
        }
    });
    assert_eq!(counts.of(Part::Members, Kind::PayloadsCopied), TIMES);

    let wanted: [(&[&str], Kind); 2] = [
        (&["5audit", "a_function_to_be_found"], Kind::JsonParsed),
        (&["a function that is not there"], Kind::JsonWritten),
    ];
    let found = audit.probe_calls(id(), &wanted).expect("its own program");
    assert_eq!(found, [1, 0]);
    let counts = counted(&audit, || {
        for number in 0..TIMES {
            black_box(a_function_to_be_found(number));
        }
    });
    assert_eq!(counts.of(Part::Members, Kind::JsonParsed), TIMES);
    assert_eq!(counts.of(Part::Members, Kind::JsonWritten), 0);
}
