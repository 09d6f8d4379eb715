/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The records that the programs and user space exchange, mirrored in src/records.rs. Sizes are fixed, padding is explicit,
 * and both sides assert the sizes. Numbers are in the host's byte order unless a comment says otherwise.
 */
#ifndef HEARTH_SHARED_H
#define HEARTH_SHARED_H

#include <linux/types.h>

#define SIZE_IS(type, size) _Static_assert(sizeof(type) == (size), #type)

/* How far a packet could be read. The order is that of `Outcome` in src/packet.rs and of the counters in `node`. */
enum outcome {
	/* TCP or UDP with ports: `ports` says which. */
	PORTS = 0,
	/* Neither IPv4 nor IPv6 (ARP, LLDP, …), or a third VLAN tag. */
	NOT_IP = 1,
	/* IP, but neither TCP nor UDP. */
	NOT_TCP_UDP = 2,
	/* A later fragment, which carries no ports. */
	FRAGMENT = 3,
	/* Ends before its headers do, or before the length that a header states. */
	TRUNCATED = 4,
	/* A header contradicts itself: IP version, header length, total length. */
	BAD_HEADER = 5,
	/* More IPv6 extension headers than EXTENSION_HEADERS. */
	TOO_DEEP = 6,
	/* The headers continue in a buffer that the program cannot read directly. */
	SPLIT = 7,
	OUTCOMES = 8,
};

/* Bounds of the parser. Linux itself accepts more extension headers; real traffic has at most two. */
#define VLAN_TAGS 2
#define EXTENSION_HEADERS 6

/* What the parser found. `sport`, `dport` are in the host's byte order, addresses as on the wire, IPv4 as ::ffff:a.b.c.d. */
struct packet {
	__u32 saddr[4];
	__u32 daddr[4];
	__u16 network;	   /* offset of the IP header */
	__u16 transport;   /* offset of the TCP or UDP header */
	__u16 sport;
	__u16 dport;
	__u8 outcome;
	__u8 protocol;	   /* IPPROTO_TCP or IPPROTO_UDP */
	__u8 family;	   /* 4 or 6 */
	__u8 tags;	   /* VLAN tags */
	__u8 first_fragment;
	__u8 tcp_flags;
	__u8 malformed;	   /* the TCP or UDP header contradicts itself */
	__u8 unused;
};
SIZE_IS(struct packet, 48);

/* `ports`, at PORT_INDEX: who has a port. Eight aligned bytes, so that an update is one store. */
struct port {
	__u32 function;	   /* index into `functions`; 0: nobody */
	__u32 flags;
};
SIZE_IS(struct port, 8);

#define PORTS_OF_A_PROTOCOL 65536
#define PORT_INDEX(protocol, port) ((__u32)(port) + ((protocol) == 17 ? PORTS_OF_A_PROTOCOL : 0))
/* UDP: datagrams go to the AF_XDP socket of their receive queue, if there is one. */
#define PORT_REDIRECT 1
/* TCP: connections go to the listening socket in `listeners`. */
#define PORT_STEER 2

/*
 * `functions`: the limits on what starts work, which is a TCP SYN or a datagram. A token every `interval` nanoseconds
 * (0: no limit); a burst of 1 + slack / interval. An update is not atomic: one packet may see the old half.
 */
struct function {
	__u64 source_interval;
	__u64 source_slack;
	__u64 total_interval;
	__u64 total_slack;
	__u32 flags;
	__u32 unused;
};
SIZE_IS(struct function, 40);
/* Count by source even where `source_interval` is 0. */
#define FUNCTION_TRACKS_SOURCES 1

/* Why a packet for a function was dropped: index into `drops`. */
enum drop {
	DROP_MALFORMED = 0,
	DROP_DENIED = 1,
	DROP_SOURCE_LIMIT = 2,
	DROP_TOTAL_LIMIT = 3,
	DROPS = 4,
};

/* `traffic`, per CPU, at 2 * function + direction. Bytes are those of the frame. `packets` includes dropped ones. */
struct traffic {
	__u64 packets;
	__u64 bytes;
	__u64 starts;	   /* SYNs and datagrams that were let through */
	__u64 redirected;  /* to AF_XDP */
	__u64 drops[DROPS];
};
SIZE_IS(struct traffic, 64);
#define DIRECTION_IN 0
#define DIRECTION_OUT 1

/*
 * `node`, per CPU, one entry: every packet that the program saw, once. Those that are not ours are most, and their number is
 * that of PORTS less `ours`.
 */
struct node {
	__u64 bytes;
	__u64 ours;
	__u64 outcomes[OUTCOMES];
	__u64 no_socket;   /* for AF_XDP, but no socket on the queue, or larger than its frames: passed */
	__u64 untracked;   /* the source's set was just being changed: not limited by source */
};
SIZE_IS(struct node, 96);

/* What one source did to one function: its bucket, and counts. */
struct source {
	__u64 prefix[2];   /* as on the wire, IPv4 as ::ffff:a.b.c.d */
	__u32 function;	   /* 0: the way is free, or being given to another source */
	__u32 changing;	   /* of the first way: somebody changes who is in the set */
	__u64 next;	   /* when the bucket is full again, in ns of ticks (GCRA's theoretical arrival time) */
	__u64 admitted;
	__u64 refused;
	__u64 refused_at;  /* CLOCK_MONOTONIC in ns; 0: never */
	__u64 unused;
};
SIZE_IS(struct source, 64);

/* `sources`, at the hash of function and prefix: the few sources that share it (sources.h). */
#define WAYS 4
struct set {
	struct source ways[WAYS];
};
SIZE_IS(struct set, 256);

/* `listed4`, `listed6`: longest prefix first. */
struct prefix4 {
	__u32 length;
	__u32 address;
};
SIZE_IS(struct prefix4, 8);

struct prefix6 {
	__u32 length;
	__u32 address[4];
};
SIZE_IS(struct prefix6, 20);

struct listed {
	__u64 expires;	   /* CLOCK_MONOTONIC in ns; 0: never */
	__u32 verdict;
	__u32 length;	   /* of the prefix, so that a shorter one is found when this one has expired */
};
SIZE_IS(struct listed, 16);
/* Exempt from the limits. */
#define LISTED_ALLOW 1
/* Dropped. */
#define LISTED_DENY 2
/* An expired prefix hides at most this many others of which it is a part. */
#define EXPIRED_PREFIXES 4

/* `settings`, one entry. */
#define HASH_KEYS 5

struct settings {
	__u32 flags;
	__u32 largest_redirect; /* bytes of a frame that the AF_XDP sockets can take */
	__u32 last_set;		/* index of the last entry of `sources`: a power of two less one */
	__u32 tick;		/* ns between two ticks of the kernel's clock */
	__u64 mask4[2];		/* what of an IPv4 source is its prefix, both as ::ffff:a.b.c.d */
	__u64 mask6[2];		/* and of an IPv6 source, as on the wire */
	__u64 hash[HASH_KEYS];	/* secret: which sources share a set */
	__u32 steer[4];		/* to which address connections are steered, as on the wire */
};
SIZE_IS(struct settings, 104);
/* Only packets to what is in `addresses` are ours; without it, all. */
#define SETTINGS_CHECK_ADDRESS 1
/* Only connections to `steer` are steered; without it, all. */
#define SETTINGS_STEER_ADDRESS 2
/* Only connections of IPv4 are. */
#define SETTINGS_STEER_IPV4 4
/* There may be something in `listed4`. An empty list costs a packet the call that looks. */
#define SETTINGS_LISTED4 8
/* And in `listed6`. */
#define SETTINGS_LISTED6 16

/* `queues`: which entry of `sockets` is the AF_XDP socket of an interface's receive queue. */
struct queue {
	__u32 interface;
	__u32 number;
};
SIZE_IS(struct queue, 8);
#define SOCKETS 64

/* In front of a frame in AF_XDP's memory. */
struct stamp {
	__u64 time;	   /* CLOCK_MONOTONIC in ns, when the program saw the packet */
	__u32 function;
	__u32 magic;
};
SIZE_IS(struct stamp, 16);
#define STAMP_MAGIC 0x48656172

/* `listeners`: one socket a family. */
#define LISTENER_IPV4 0
#define LISTENER_IPV6 1
#define LISTENERS 2

/* `pairs`: which interface may forward to which past the kernel's stack, and what went that way. */
struct pair {
	__u32 from;
	__u32 to;
};
SIZE_IS(struct pair, 8);

struct forwarded {
	__u64 packets;
	__u64 bytes;
};
SIZE_IS(struct forwarded, 16);

/* `left`, per CPU, one entry: packets that the redirect programs left to the stack, by reason. */
enum left {
	/* Not plain IPv4 or IPv6: VLAN, options, fragments, malformed. */
	LEFT_SHAPE = 0,
	/* The hop limit has run out; the stack answers. */
	LEFT_HOPS = 1,
	/* No route, no neighbour yet, too large, forwarding is off. */
	LEFT_ROUTE = 2,
	/* The pair of interfaces is not in `pairs`. */
	LEFT_PAIR = 3,
	LEFTS = 4,
};

struct left_to_stack {
	__u64 packets[LEFTS];
};
SIZE_IS(struct left_to_stack, 32);

#endif
