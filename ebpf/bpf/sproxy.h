/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The records of sproxy.bpf.c, mirrored in src/sproxy/records.rs. Sizes are fixed, padding is explicit, and both sides assert the
 * sizes. Numbers are in the host's byte order.
 */
#ifndef HEARTH_SPROXY_H
#define HEARTH_SPROXY_H

#include <linux/types.h>

#define SIZE_IS(type, size) _Static_assert(sizeof(type) == (size), #type)

/* Instance 0, and member 0, of each chain. */
#define GATEWAY 0

/* `speakers`, in a socket's storage: who sends through it. */
struct speaker {
	__u32 chain;
	__u16 instance;	   /* whose pair it is an end of */
	__u8 member;	   /* that it is an instance of */
	__u8 far;	   /* the gateway's end */
};
SIZE_IS(struct speaker, 8);

/* `sockets`: the socket of an instance, or the gateway's end of its pair. */
struct end {
	__u32 chain;
	__u16 instance;
	__u16 far;
};
SIZE_IS(struct end, 8);

/* Why a message was not redirected: index into `refused` of a seat, and `hop` of the record that the gateway gets. */
enum refusal {
	/* Not one descriptor. Nothing of it arrives anywhere, and the socket is dead. */
	REFUSED_SIZE = 0,
	/* A kind that members do not send. */
	REFUSED_KIND = 1,
	/* The chain has no such instance. */
	REFUSED_TARGET = 2,
	/* No edge between the two members for this kind. */
	REFUSED_EDGE = 3,
	/* The sender does not have the block in hand. */
	REFUSED_BLOCK = 4,
	/* The target's socket is gone. */
	REFUSED_GONE = 5,
	REFUSALS = 6,
};

/* `seats`, by chain and instance: what it did. */
struct seat {
	__u32 member;
	__u32 unused;
	__u64 received;	   /* requests and calls that were sent to it */
	__u64 handled;	   /* of them, passed on: what is left is in hand */
	__u64 busy;	   /* from the one to the other, in ns, of all that were handled */
	__u64 sent;	   /* descriptors */
	__u64 refused[REFUSALS];
};
SIZE_IS(struct seat, 88);

struct seat_key {
	__u32 chain;
	__u32 instance;
};
SIZE_IS(struct seat_key, 8);

/* `edges`, by chain and members: what may be sent. Nothing else may. */
struct edge {
	__u32 kinds;	   /* a bit for each */
	__u32 unused;
	__u64 sent;
	__u64 refused;
};
SIZE_IS(struct edge, 24);

struct edge_key {
	__u32 chain;
	__u16 from;
	__u16 to;
};
SIZE_IS(struct edge_key, 8);

/* `blocks`, by chain and number, from when the gateway sends it first: who has it in hand. */
struct block {
	__u32 holder;	   /* an instance */
	__u16 work;	   /* it came as a request or a call */
	__u16 generation;  /* as in the descriptor that the gateway sent first */
	__u64 since;	   /* CLOCK_MONOTONIC in ns */
};
SIZE_IS(struct block, 16);

struct block_key {
	__u32 chain;
	__u32 number;
};
SIZE_IS(struct block_key, 8);

/* A descriptor: two words (chain/src/descriptor.rs). */
#define DESCRIPTOR_BYTES 16
#define GENERATION_AT 32
#define GENERATION_MASK (0xffffULL << GENERATION_AT)
#define TARGET_AT 48
#define TARGET_MASK (0xffffULL << TARGET_AT)
#define BLOCK_MASK ((1ULL << 16) - 1)
#define HOP_AT 51
#define HOP_MASK (0xffULL << HOP_AT)
#define KIND_AT 60
#define KIND_MASK (7ULL << KIND_AT)
#define MORE (1ULL << 63)

#define KIND_PASS 0
#define KIND_CALL 1
/* No descriptor's. From the gateway: news, for the library at the other end. To it: what was refused, with `MORE` where the block is the
 * gateway's now; then its generation is the one below which the gateway sent it, whatever the sender wrote. */
#define KIND_NEWS 7

#endif
