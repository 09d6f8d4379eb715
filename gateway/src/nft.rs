//! nftables over netlink (`linux/netfilter/nf_tables.h`), as far as [`rules`](crate::rules) need it. No program is
//! started and no text generated: a change takes about ten microseconds, for which DNS queries wait.
//!
//! A [`Batch`] is one transaction: all of it takes effect at once, or nothing.

mod expressions;

use std::io;

use rustix::net::netlink;

pub(crate) use self::expressions::{Expressions, Load, Verdict};
use crate::netlink::Attribute::{self, Bytes, Nest, Text, U32, U64};
use crate::netlink::{APPEND, CREATE, Messages, Netlink, attribute, number};

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// `NFNL_SUBSYS_NFTABLES`, and messages of it.
const SUBSYSTEM: u16 = 10;
const NEWTABLE: u16 = 0;
const DELTABLE: u16 = 2;
const NEWCHAIN: u16 = 3;
const DELCHAIN: u16 = 5;
const NEWRULE: u16 = 6;
const DELRULE: u16 = 8;
const NEWSET: u16 = 9;
const DELSET: u16 = 11;
const NEWSETELEM: u16 = 12;
const DELSETELEM: u16 = 14;
const NEWOBJ: u16 = 18;
const GETOBJ: u16 = 19;
const DELOBJ: u16 = 20;

/// Rules for IPv4 and IPv6 together.
const INET: u8 = 1;
/// The table disappears with the socket that created it.
const OWNER: u32 = 2;
const OBJECT_COUNTER: u32 = 1;
/// Flags of sets.
const MAP: u32 = 0x8;
const TIMEOUT: u32 = 0x10;
/// The type of verdicts as a map's data.
const VERDICTS: u32 = 0xffff_ff00;
/// Elements in one message: an attribute has less than 64 KiB.
const ELEMENTS: usize = 400;

/// The place of a chain in the path of a packet, and its priority there.
#[derive(Clone, Copy)]
pub(crate) enum Hook {
    Prerouting = 0,
    Input = 1,
    Forward = 2,
    Postrouting = 4,
}

/// The elements of a set.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Plain,
    /// Expiring elements, at most this many.
    Expiring(u32),
    /// A map to verdicts.
    Verdicts,
}

/// An element of a set.
#[derive(Default)]
pub(crate) struct Element {
    pub(crate) key: Vec<u8>,
    /// What a map says about it.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) timeout_ms: Option<u64>,
}

impl Element {
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    fn put(&self, to: &mut Messages) {
        to.put(&[Nest(1, &[Bytes(1, &self.key)])]);
        if let Some(verdict) = &self.verdict {
            to.put(&[Nest(2, &[Nest(2, &verdict.attributes())])]);
        }
        if let Some(timeout) = self.timeout_ms {
            to.put(&[U64(4, timeout)]);
        }
    }
}

/// A transaction on one table.
pub(crate) struct Batch<'a> {
    table: &'a str,
    messages: Messages,
    sets: u32,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(table: &'a str) -> Self {
        let mut messages = Messages::default();
        messages.begin(BATCH_BEGIN, 0, &[0, 0, 0, SUBSYSTEM as u8]);
        Self {
            table,
            messages,
            sets: 0,
        }
    }

    fn message(&mut self, kind: u16, flags: u16, attributes: &[Attribute<'_>]) -> &mut Messages {
        self.messages
            .begin(SUBSYSTEM << 8 | kind, flags, &[INET, 0, 0, 0])
            .put(&[Text(1, self.table)])
            .put(attributes)
    }

    /// Creates the table. Nobody else can change an owned one, and it ends with the socket.
    pub(crate) fn add_table(&mut self, is_owned: bool) {
        let flags = if is_owned { OWNER } else { 0 };
        self.message(NEWTABLE, CREATE, &[U32(2, flags)]);
    }

    /// Removes the table, with all that is in it.
    pub(crate) fn delete_table(&mut self) {
        self.message(DELTABLE, 0, &[]);
    }

    /// Creates a chain for others to jump to.
    pub(crate) fn add_chain(&mut self, name: &str) {
        self.message(NEWCHAIN, CREATE, &[Text(3, name)]);
    }

    /// Creates a base chain. It accepts or drops what no rule decides.
    pub(crate) fn add_base_chain(
        &mut self,
        name: &str,
        kind: &str,
        (hook, priority): (Hook, i32),
        accepts: bool,
    ) {
        let at = [U32(1, hook as u32), U32(2, priority.cast_unsigned())];
        let accepts = U32(5, u32::from(accepts));
        let attributes = [Text(3, name), Nest(4, &at), accepts, Text(7, kind)];
        self.message(NEWCHAIN, CREATE, &attributes);
    }

    pub(crate) fn delete_chain(&mut self, name: &str) {
        self.message(DELCHAIN, 0, &[Text(3, name)]);
    }

    /// Empties a chain.
    pub(crate) fn flush_chain(&mut self, name: &str) {
        self.message(DELRULE, 0, &[Text(2, name)]);
    }

    /// Appends a rule.
    pub(crate) fn add_rule(&mut self, chain: &str, expressions: impl FnOnce(&mut Expressions<'_>)) {
        self.message(NEWRULE, CREATE | APPEND, &[Text(2, chain)])
            .nest(4, |list| expressions(&mut Expressions::new(list)));
    }

    /// Creates a set with keys of this size.
    pub(crate) fn add_set(&mut self, name: &str, key: usize, kind: Kind) {
        let flags = match kind {
            Kind::Plain => 0,
            Kind::Expiring(_) => TIMEOUT,
            Kind::Verdicts => MAP,
        };
        self.sets += 1;
        let (key, id) = (U32(5, key as u32), U32(10, self.sets));
        let set = [Text(2, name), U32(3, flags), U32(4, 0), key, id];
        let message = self.message(NEWSET, CREATE, &set);
        match kind {
            Kind::Verdicts => message.put(&[U32(6, VERDICTS), U32(7, 0)]),
            Kind::Expiring(size) => message.put(&[Nest(9, &[U32(1, size)])]),
            Kind::Plain => message,
        };
    }

    pub(crate) fn delete_set(&mut self, name: &str) {
        self.message(DELSET, 0, &[Text(2, name)]);
    }

    /// Empties a set.
    pub(crate) fn flush_set(&mut self, name: &str) {
        self.message(DELSETELEM, 0, &[Text(2, name)]);
    }

    pub(crate) fn add_elements(&mut self, set: &str, elements: &[Element]) {
        self.elements(NEWSETELEM, CREATE, set, elements);
    }

    pub(crate) fn delete_elements(&mut self, set: &str, elements: &[Element]) {
        self.elements(DELSETELEM, 0, set, elements);
    }

    fn elements(&mut self, kind: u16, flags: u16, set: &str, elements: &[Element]) {
        for elements in elements.chunks(ELEMENTS) {
            self.message(kind, flags, &[Text(2, set)]).nest(3, |list| {
                for element in elements {
                    list.nest(1, |item| element.put(item));
                }
            });
        }
    }

    /// Creates a counter.
    pub(crate) fn add_counter(&mut self, name: &str) {
        let zero = [U64(1, 0), U64(2, 0)];
        let attributes = [Text(2, name), U32(3, OBJECT_COUNTER), Nest(4, &zero)];
        self.message(NEWOBJ, CREATE, &attributes);
    }

    pub(crate) fn delete_counter(&mut self, name: &str) {
        self.message(DELOBJ, 0, &[Text(2, name), U32(3, OBJECT_COUNTER)]);
    }
}

/// The nftables of one network namespace.
pub(crate) struct Nftables(Netlink);

impl Nftables {
    /// Those of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        Netlink::open(Some(netlink::NETFILTER)).map(Self)
    }

    /// Commits a transaction.
    pub(crate) fn commit(&self, mut batch: Batch<'_>) -> io::Result<()> {
        let end = [0, 0, 0, SUBSYSTEM as u8];
        batch.messages.begin(BATCH_END, 0, &end);
        self.0.send(&batch.messages)
    }

    /// Bytes and packets of a counter.
    pub(crate) fn counter(&self, table: &str, name: &str) -> io::Result<(u64, u64)> {
        let mut messages = Messages::default();
        messages
            .begin(SUBSYSTEM << 8 | GETOBJ, 0, &[INET, 0, 0, 0])
            .put(&[Text(1, table), Text(2, name), U32(3, OBJECT_COUNTER)]);
        let mut found = None;
        self.0.ask(&messages, |_, body| {
            let data = body.get(4..).and_then(|body| attribute(body, 4));
            found = data.and_then(|data| number(data, 1).zip(number(data, 2)));
        })?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
