//! The messages in CRIU's image files, with those of their fields that are read. prost drops the others, so that a message
//! which is changed is not encoded from here: see [`crate::protobuf`].

use prost::Message;

/// `inventory_entry` (`images/inventory.proto`).
#[derive(Clone, PartialEq, Message)]
pub struct Inventory {
    /// CRIU's own.
    #[prost(message, optional, tag = "3")]
    pub root_ids: Option<ObjectIds>,
}

/// `task_kobj_ids_entry` (`images/core.proto`): which namespaces a process shares.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectIds {
    #[prost(uint32, optional, tag = "10")]
    pub user_ns_id: Option<u32>,
}

/// `core_entry` (`images/core.proto`): a thread.
#[derive(Clone, PartialEq, Message)]
pub struct Core {
    #[prost(message, optional, tag = "5")]
    pub thread_core: Option<ThreadCore>,
}

/// `thread_core_entry`.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadCore {
    #[prost(message, optional, tag = "15")]
    pub rseq: Option<Rseq>,
}

/// `rseq_entry` (`images/rseq.proto`).
#[derive(Clone, PartialEq, Message)]
pub struct Rseq {
    /// Address; 0 for none.
    #[prost(uint64, tag = "1")]
    pub abi_pointer: u64,
}

/// `mm_entry` (`images/mm.proto`).
#[derive(Clone, PartialEq, Message)]
pub struct Mm {
    #[prost(message, repeated, tag = "14")]
    pub vmas: Vec<Vma>,
}

/// `vma_entry` (`images/vma.proto`): a mapping.
#[derive(Clone, PartialEq, Message)]
pub struct Vma {
    /// Addresses.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    #[prost(uint64, tag = "2")]
    pub end: u64,
    /// `PROT_…`.
    #[prost(uint32, tag = "5")]
    pub protection: u32,
    /// `MAP_…`.
    #[prost(uint32, optional, tag = "6")]
    pub flags: Option<u32>,
    /// CRIU's `VMA_AREA_…`.
    #[prost(uint32, tag = "7")]
    pub status: u32,
    /// One bit for each `MADV_…` by its number.
    #[prost(uint64, tag = "9")]
    pub advice: u64,
}

/// `pagemap_head` (`images/pagemap.proto`).
#[derive(Clone, PartialEq, Message)]
pub struct PagemapHead {
    /// Which file has the pages.
    #[prost(uint32, tag = "1")]
    pub pages_id: u32,
}

/// `pagemap_entry`: pages that follow each other.
#[derive(Clone, PartialEq, Message)]
pub struct PagemapEntry {
    /// Address of the first.
    #[prost(uint64, tag = "1")]
    pub address: u64,
    /// How many; newer versions write the number a second time, in full.
    #[prost(uint32, tag = "2")]
    pub compat_pages: u32,
    #[prost(uint64, optional, tag = "5")]
    pub pages: Option<u64>,
    /// Whether they are in an earlier image.
    #[prost(bool, tag = "3")]
    pub in_parent: bool,
    /// Where they are.
    #[prost(uint32, optional, tag = "4")]
    pub flags: Option<u32>,
}

/// `file_entry` (`images/fdinfo.proto`), if it is a socket or a pipe.
#[derive(Clone, PartialEq, Message)]
pub struct File {
    /// `unix_sk_entry` (`images/sk-unix.proto`).
    #[prost(message, optional, tag = "16")]
    pub socket: Option<Inode>,
    /// `pipe_entry` (`images/pipe.proto`).
    #[prost(message, optional, tag = "18")]
    pub pipe: Option<Inode>,
}

/// What both of them have.
#[derive(Clone, PartialEq, Message)]
pub struct Inode {
    #[prost(uint32, optional, tag = "2")]
    pub inode: Option<u32>,
}
