//! Memory of a block handler for the events that no chain has passed on.

use std::cell::Cell;

use crate::block::Block;

/// Room for an event, in bytes; one may be longer.
const ROOM: usize = 1 << 20;

/// See the module. One event has it after the other, and finds nothing of those before.
#[derive(Debug, Default)]
pub(crate) struct Room {
    memory: Vec<u8>,
    /// The most bytes that the payload has had since the room was cleared.
    most: Cell<usize>,
}

impl Room {
    /// Puts an event's text there.
    pub(crate) fn put(&mut self, text: &[u8]) -> Block<'_> {
        self.memory[..self.most.take()].fill(0);
        self.memory.resize(text.len().max(ROOM), 0);
        self.memory[..text.len()].copy_from_slice(text);
        Block::of(&mut self.memory, text.len(), &self.most)
    }

    /// What is there now.
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        &self.memory[..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_finds_nothing_of_those_before() {
        let mut room = Room::default();
        let long = vec![b'l'; ROOM + 1];
        for (text, then) in [
            (&b"short"[..], 9),
            (b"event", ROOM),
            (&long, 1),
            (b"", 0),
            (b"x", 1),
        ] {
            let mut block = room.put(text);
            assert_eq!(block.bytes(), text);
            let all = block.capacity();
            assert!(all >= ROOM);
            block.resize(all).expect("it is the capacity");
            let behind = &block.bytes()[text.len()..];
            assert!(behind.iter().all(|&byte| byte == 0), "{}", text.len());
            block.bytes_mut().fill(b'y');
            block.resize(then).expect("it is less");
            assert!(room.bytes(then).iter().all(|&byte| byte == b'y'));
        }
        // Written without being made longer than it is in the end.
        room.put(b"").write(b"result").expect("it fits");
        let mut block = room.put(b"");
        block.resize(6).expect("it fits");
        assert_eq!(block.bytes(), [0; 6]);
    }
}
