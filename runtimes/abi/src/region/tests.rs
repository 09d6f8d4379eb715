//! What is a channel and what is refused.

use std::os::fd::AsFd;

use rustix::io::pwrite;

use super::*;
use crate::layout::{MAX_RING_BYTES, MIN_RING_BYTES};

/// A sealed file with `header`, of `bytes` bytes.
fn file(header: &RegionHeader, bytes: u64) -> OwnedFd {
    let fd = sealable_memfd().expect("a memfd");
    ftruncate(&fd, bytes).expect("a size");
    let words = [
        header.magic,
        u64::from(header.version) | u64::from(header.header_bytes) << 32,
    ];
    let sizes = u64::from(header.to_worker_bytes) | u64::from(header.to_host_bytes) << 32;
    let bytes: Vec<u8> = words
        .into_iter()
        .chain([sizes])
        .flat_map(u64::to_le_bytes)
        .collect();
    pwrite(&fd, &bytes, 0).expect("a header");
    fcntl_add_seals(&fd, SEALS).expect("seals");
    fd
}

fn refusal(header: &RegionHeader, bytes: u64) -> AbiError {
    Region::attach(file(header, bytes).as_fd()).expect_err("not a channel")
}

#[test]
fn rings_have_their_limits() {
    for bytes in [
        0,
        1,
        MIN_RING_BYTES / 2,
        MIN_RING_BYTES + 4096 + 1,
        3 << 20,
        MAX_RING_BYTES * 2,
        u32::MAX,
    ] {
        assert!(matches!(Region::create(bytes), Err(AbiError::RingSize(found)) if found == bytes));
    }
    for bytes in [MIN_RING_BYTES, MAX_RING_BYTES] {
        let (_region, fd) = Region::create(bytes).expect("a region");
        Region::attach(fd.as_fd()).expect("the region");
    }
}

#[test]
fn the_file_can_never_be_resized() {
    let (_region, fd) = Region::create(MIN_RING_BYTES).expect("a region");
    for bytes in [0, 4096, 1 << 20] {
        assert_eq!(ftruncate(&fd, bytes), Err(Errno::PERM));
    }
    assert_eq!(fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
}

#[test]
fn what_is_not_a_channel_of_this_version_is_refused() {
    let good = RegionHeader::new(MIN_RING_BYTES);
    let bytes = good.region_bytes();
    Region::attach(file(&good, bytes).as_fd()).expect("a channel");
    assert!(matches!(
        refusal(&RegionHeader { magic: 1, ..good }, bytes),
        AbiError::Magic(1)
    ));
    let other = RegionHeader {
        version: PROTOCOL_VERSION + 1,
        ..good
    };
    assert!(matches!(refusal(&other, bytes), AbiError::Version { .. }));
    let other = RegionHeader {
        to_host_bytes: MIN_RING_BYTES + 1,
        ..good
    };
    assert!(matches!(refusal(&other, bytes), AbiError::RingSize(_)));
    let other = RegionHeader {
        to_host_bytes: 2 * MIN_RING_BYTES,
        ..good
    };
    assert!(matches!(
        refusal(&other, bytes),
        AbiError::FileSize {
            expected: 16_384,
            found: 12_288
        }
    ));
    for bytes in [0, 64, 4096, 1 << 40] {
        assert!(matches!(refusal(&good, bytes), AbiError::FileSize { .. }));
    }
}

#[test]
fn an_unsealed_or_used_region_is_refused() {
    let fd = sealable_memfd().expect("a memfd");
    assert!(matches!(
        Region::attach(fd.as_fd()),
        Err(AbiError::NotSealed)
    ));
    let not_a_memfd = std::fs::File::open("/dev/null").expect("a file");
    assert!(Region::attach(not_a_memfd.as_fd()).is_err());

    let (region, fd) = Region::create(MIN_RING_BYTES).expect("a region");
    let mut host = region.host();
    host.tx
        .try_send(
            crate::Kind::RequestEvent,
            crate::Flags::NONE,
            &[0; 16],
            b"early",
        )
        .expect("sent");
    let mut worker = Region::attach(fd.as_fd())
        .expect("sent to, not used")
        .worker();
    worker
        .rx
        .try_recv()
        .expect("an honest peer")
        .expect("a frame")
        .consume();
    assert!(matches!(
        Region::attach(fd.as_fd()),
        Err(AbiError::AlreadyUsed)
    ));
}
