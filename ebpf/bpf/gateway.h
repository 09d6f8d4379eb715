/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The records that the gateway's programs and user space exchange, mirrored in src/gateway/records.rs. Sizes are fixed, padding
 * is explicit, and both sides assert the sizes. Addresses and ports are as on the wire, IPv4 addresses as ::ffff:a.b.c.d; other
 * numbers are in the host's byte order.
 */
#ifndef HEARTH_GATEWAY_H
#define HEARTH_GATEWAY_H

#include "shared.h"

/* Sandboxes, each with a slot: the last bits of its addresses, and of the mark below. */
#define SLOTS 4096
#define SLOT_BITS (SLOTS - 1)
/* The gateway's interface to the host; a slot is added to it for the interface to a sandbox. */
#define UPLINK 1000

/* `network`, one entry. */
struct network {
	__u32 flags;
	__u32 epoch;		/* counts the gateway's ticks, by which flows expire */
	__u32 interface;	/* of the gateway in the host's own namespace */
	__u32 host;		/* id of the host's own namespace in the gateway's */
	__u32 first[4];		/* address of slot 0, of IPv6; its last word is that of IPv4 */
	__u16 stack[2];		/* ports, first and last, that the host's stack chooses by itself: never chosen here */
	__u32 unused;
};
SIZE_IS(struct network, 40);
/* The fast way is open. */
#define NETWORK_OPEN 1
/* The lowest port that a connection has on the host. */
#define LOWEST_PORT 16384

/* `sandboxes`, at the slot. */
struct sandbox {
	__u32 flags;
	__u32 group;		/* index into `groups` and `usage` */
};
SIZE_IS(struct sandbox, 8);
/* There is one. */
#define SANDBOX_KNOWN 1
/* Its policy is in the maps: new connections may be decided here. */
#define SANDBOX_ACTIVE 2
#define SANDBOX_INTERNET 4
/* There may be something in `resolved`, in `prefixes`. */
#define SANDBOX_NAMES 8
#define SANDBOX_PREFIXES 16

/* `groups`: the limits of those that share them; 0 is none. Tokens as in limits.h. */
struct group {
	__u64 new_interval;	/* ns between new connections */
	__u64 new_slack;
	__u64 bytes_per_second;
	__u64 bytes_slack;	/* ns */
	__u32 connections;
	__u32 unused;
};
SIZE_IS(struct group, 40);

/* `usage`, at the index of the group: what is used of its limits. User space changes `open` only, and atomically. */
struct usage {
	__u64 next_new;
	__u64 next_bytes[2];
	__s32 open;		/* connections that have not ended, those by way of the rules included */
	__u32 unused;
};
SIZE_IS(struct usage, 32);
#define DIRECTION_TO_WORLD 0
#define DIRECTION_TO_SANDBOX 1

/* `prefixes`: longest first. */
struct prefix {
	__u32 length;		/* of what follows, up to PREFIX_BITS */
	__u16 family;		/* 4 or 6; like the slot in network byte order, as they are part of the prefix */
	__u16 slot;		/* or ANY_SLOT */
	__u32 address[4];
};
SIZE_IS(struct prefix, 24);
#define ANY_SLOT 0xffff
#define PREFIX_BITS 160

/* What TCP ports a prefix allows, also by shorter ones; ANY_SLOT: whether it is never reached, or permitted by the node. */
#define RANGES 8

struct allowed {
	__u16 count;
	__u16 class;
	__u16 ports[RANGES][2];	/* first and last, in the host's byte order */
};
SIZE_IS(struct allowed, 36);
#define CLASS_PUBLIC 0
#define CLASS_PERMITTED 1
#define CLASS_FORBIDDEN 2

/* `resolved`: until when (CLOCK_MONOTONIC in ns) a name's address is allowed. Port 0: all. */
struct resolved {
	__u32 address[4];
	__u16 slot;
	__u16 port;
};
SIZE_IS(struct resolved, 20);

/* `routes`, by destination: what was seen of it in the host's own namespace, which only programs there can ask. */
struct route {
	__u32 source[4];	/* the host's address on the way there */
	__u64 until;
	__u32 class;
	__u32 next;		/* counts ports that were tried, so that each is used again as late as can be */
};
SIZE_IS(struct route, 32);

/* `flows`, by a sandbox's end of a connection. */
struct flow_key {
	__u32 address[4];	/* of the destination */
	__u16 sport;
	__u16 dport;
	__u16 slot;
	__u8 protocol;
	__u8 unused;
};
SIZE_IS(struct flow_key, 24);

struct flow {
	__u64 packets;		/* to the world; of a slow one those that were seen */
	__u64 bytes;
	__u32 source[4];	/* on the host */
	__u16 port;		/* on the host; 0: slow, the rules and connection tracking have it */
	__u16 unused;
	__u32 state;
	__u32 group;
	__u32 opened;		/* epochs */
	__u32 seen;
	__u32 closed;
	__u32 acknowledged;	/* what the sandbox expects next, in the host's byte order */
	__u32 unused2;
};
SIZE_IS(struct flow, 64);
#define FLOW_ESTABLISHED 1
#define FLOW_FIN_OUT 2
#define FLOW_FIN_IN 4
/* Not counted in `open` any more. */
#define FLOW_CLOSED 8
/* The world has ended it first, and keeps the pair of ports in mind for a minute. */
#define FLOW_WAITS 16
/* The sandbox has reset it. */
#define FLOW_RESET 32
/* A reset came from the world, which the sandbox may not have believed. */
#define FLOW_DOUBTED 64

/* `back`, by the world's end of a fast connection. */
struct back_key {
	__u32 address[4];
	__u16 sport;
	__u16 dport;		/* on the host */
};
SIZE_IS(struct back_key, 20);

struct back {
	__u64 packets;		/* to the sandbox */
	__u64 bytes;
	__u32 source[4];	/* on the host */
	__u16 port;		/* in the sandbox */
	__u16 slot;
	__u32 group;
	__u32 seen;
	__u32 unused;
};
SIZE_IS(struct back, 48);

/* `sums`, per CPU, at the slot: what went the fast way. */
struct sums {
	__u64 packets[2];	/* by direction */
	__u64 bytes[2];
	__u64 connections;
};
SIZE_IS(struct sums, 40);

/* `ways`, per CPU, one entry: what became of packets that begin a connection, and of packets on the fast way. */
enum way {
	WAY_FAST = 0,		/* a connection was begun here */
	WAY_POLICY = 1,		/* left to the rules: not plainly allowed */
	WAY_ROUTE = 2,		/* … or its destination was not seen lately */
	WAY_LIMIT = 3,		/* … or the group has no more of them */
	WAY_PORTS = 4,		/* … or no port is free */
	WAY_FULL = 5,		/* … or the maps have no room */
	WAY_LOST = 6,		/* dropped: the route is gone */
	WAY_RATE = 7,		/* dropped: over the limit of bytes */
	WAY_RULES = 8,		/* a connection that the rules have begun was noted */
	WAYS_OF_PACKETS = 9,
};

struct ways {
	__u64 packets[WAYS_OF_PACKETS];
};
SIZE_IS(struct ways, 72);

/*
 * Marks. Between the programs, with the slot in the last bits: no packet that another interface has sent bears it, because the
 * kernel clears marks between network namespaces. To the rules: the group has no more connections. Of the rules: this begins
 * one (gateway/src/rules.rs).
 */
#define MARK_FAST 0x48650000
#define MARK_LIMIT 0x48660000
#define MARK_BEGUN 5

#endif
