// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Carries descriptors between the instances of a chain (SPRIGHT's SPROXY). Each instance has one end of a TCP connection, the
 * gateway the other; whatever is sent through either comes here before there is a packet.
 *
 * - The source is what user space has stored with the socket. It takes the target's place in the descriptor, so that the
 *   receiver knows it, and nothing that a sender writes can be taken for it.
 * - `edges` says who may send what to whom; what it does not name is refused. Keys begin with the chain of the sender's socket: those
 *   of another chain cannot be named.
 * - A block is in one hand. Only who has it may send it, and then does not have it any more. So no queue is ever longer than
 *   the chain has blocks, however fast a member sends, although the kernel bounds no queue of redirected messages.
 *
 * What is refused goes its ordinary way, marked, to the gateway's end: bounded by TCP, which makes the sender wait. It is not
 * dropped, because then the kernel would drop all that its socket sends later without asking here.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "sproxy.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a descriptor's words are little-endian");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct speaker);
} speakers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 16384);
	__type(key, struct end);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct seat_key);
	__type(value, struct seat);
} seats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct edge_key);
	__type(value, struct edge);
} edges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct block_key);
	__type(value, struct block);
} blocks SEC(".maps");

/* Takes a block out of a hand; whether it was in it. Of two threads that send the same block, one has it. */
static __always_inline int take(struct block *block, __u32 from, __u32 to)
{
	return block && __sync_val_compare_and_swap(&block->holder, from, to) == from;
}

/* Counts what a member was done with, and what another begins. Nobody else writes to the block's entry meanwhile. */
static __always_inline void hand_over(struct block *block, struct seat *from, struct seat *to, __u32 kind)
{
	__u64 now = bpf_ktime_get_ns();

	if (from && block->work) {
		__sync_fetch_and_add(&from->handled, 1);
		__sync_fetch_and_add(&from->busy, now - block->since);
	}
	block->work = to && (kind == KIND_PASS || kind == KIND_CALL);
	block->since = now;
	if (block->work)
		__sync_fetch_and_add(&to->received, 1);
}

/* From the gateway, to the instance whose pair it is. */
static __always_inline int from_gateway(struct sk_msg_md *msg, struct speaker *who, __u64 *words)
{
	struct seat_key target = {.chain = who->chain, .instance = who->instance};
	struct block_key number = {.chain = who->chain, .number = words[1] & BLOCK_MASK};
	struct edge_key pair = {.chain = who->chain, .from = GATEWAY, .to = who->member};
	struct end end = {.chain = who->chain, .instance = who->instance};
	__u32 kind = (words[1] & KIND_MASK) >> KIND_AT;
	struct block fresh = {};
	struct block *block;
	struct edge *edge;
	struct seat *to;

	/* For the library at the other end. Not by TCP: its bytes are read after all that was redirected, and a process that dies with
	 * some of them unread resets its connection. */
	if (kind == KIND_NEWS)
		return bpf_msg_redirect_hash(msg, &sockets, &end, BPF_F_INGRESS);
	to = bpf_map_lookup_elem(&seats, &target);
	block = bpf_map_lookup_elem(&blocks, &number);
	if (!block) {
		bpf_map_update_elem(&blocks, &number, &fresh, BPF_NOEXIST);
		block = bpf_map_lookup_elem(&blocks, &number);
	}
	/* User space makes sure that there is room. */
	if (!to || !block)
		return SK_DROP;
	/* It has taken the block back if somebody else had it. Its generation first: it says whose use of the block it is. */
	block->generation = words[0] >> GENERATION_AT;
	barrier();
	block->holder = who->instance;
	hand_over(block, 0, to, kind);
	edge = bpf_map_lookup_elem(&edges, &pair);
	if (edge)
		__sync_fetch_and_add(&edge->sent, 1);
	words[0] &= ~TARGET_MASK;
	return bpf_msg_redirect_hash(msg, &sockets, &end, BPF_F_INGRESS);
}

/* From an instance. */
static __always_inline int from_member(struct sk_msg_md *msg, struct speaker *who, struct seat *own, __u64 *words)
{
	__u32 kind = (words[1] & KIND_MASK) >> KIND_AT;
	__u32 from = who->instance, target = words[0] >> TARGET_AT;
	struct seat_key receiver = {.chain = who->chain, .instance = target};
	struct block_key number = {.chain = who->chain, .number = words[1] & BLOCK_MASK};
	struct edge_key pair = {.chain = who->chain, .from = who->member};
	struct end end = {.chain = who->chain, .instance = target};
	struct block *block = bpf_map_lookup_elem(&blocks, &number);
	__u64 reason = REFUSED_KIND, generation = 0;
	struct edge *edge = 0;
	struct seat *to = 0;
	int returned = 0;

	/* Before the block is taken: then it is that of the use in which it is. */
	if (block)
		generation = block->generation;
	barrier();
	if (kind == KIND_NEWS)
		goto refuse;
	reason = REFUSED_TARGET;
	if (target != GATEWAY) {
		to = bpf_map_lookup_elem(&seats, &receiver);
		if (!to)
			goto refuse;
		pair.to = to->member;
	}
	reason = REFUSED_EDGE;
	edge = bpf_map_lookup_elem(&edges, &pair);
	if (!edge || !(edge->kinds & (1U << kind)))
		goto refuse;
	reason = REFUSED_BLOCK;
	if (!take(block, from, target))
		goto refuse;
	if (target == GATEWAY) {
		end.instance = from;
		end.far = 1;
	}
	/* Where there is no such socket, this says SK_DROP, and nothing has happened. The gateway may have taken the block back already,
	 * with what else the target had. */
	if (bpf_msg_redirect_hash(msg, &sockets, &end, BPF_F_INGRESS) != SK_PASS) {
		returned = take(block, target, GATEWAY);
		reason = REFUSED_GONE;
		goto refuse;
	}
	hand_over(block, own, to, kind);
	__sync_fetch_and_add(&own->sent, 1);
	__sync_fetch_and_add(&edge->sent, 1);
	words[0] = (words[0] & ~TARGET_MASK) | (__u64)from << TARGET_AT;
	return SK_PASS;

refuse:
	/* The gateway gets the block, if the sender had it, and is told of which use of it: not by the sender's word. */
	if (returned || take(block, from, GATEWAY)) {
		hand_over(block, own, 0, kind);
		words[0] = (words[0] & ~GENERATION_MASK) | generation << GENERATION_AT;
		returned = 1;
	}
	/* Not indexed: a pointer with a variable offset is more than older verifiers let atomics have. */
	if (reason == REFUSED_KIND)
		__sync_fetch_and_add(&own->refused[REFUSED_KIND], 1);
	else if (reason == REFUSED_TARGET)
		__sync_fetch_and_add(&own->refused[REFUSED_TARGET], 1);
	else if (reason == REFUSED_EDGE)
		__sync_fetch_and_add(&own->refused[REFUSED_EDGE], 1);
	else if (reason == REFUSED_BLOCK)
		__sync_fetch_and_add(&own->refused[REFUSED_BLOCK], 1);
	else
		__sync_fetch_and_add(&own->refused[REFUSED_GONE], 1);
	if (edge)
		__sync_fetch_and_add(&edge->refused, 1);
	words[1] = (words[1] & ~(KIND_MASK | HOP_MASK | MORE)) | (__u64)KIND_NEWS << KIND_AT | reason << HOP_AT |
		   (returned ? MORE : 0);
	return SK_PASS;
}

SEC("sk_msg")
int sproxy(struct sk_msg_md *msg)
{
	struct seat_key sender = {};
	struct speaker *who;
	struct seat *own;
	void *data;

	if (!msg->sk)
		return SK_DROP;
	who = bpf_sk_storage_get(&speakers, msg->sk, 0, 0);
	if (!who)
		return SK_DROP;
	sender.chain = who->chain;
	sender.instance = who->instance;
	own = bpf_map_lookup_elem(&seats, &sender);
	/* Not seated yet, or not any more. */
	if (!own)
		return SK_DROP;
	if (msg->size != DESCRIPTOR_BYTES)
		goto wrong_size;
	data = msg->data;
	if (data + DESCRIPTOR_BYTES > msg->data_end) {
		/* In two pages, or in pages of the sender's own, which it could change after they were checked. */
		if (bpf_msg_pull_data(msg, 0, DESCRIPTOR_BYTES, 0))
			goto wrong_size;
		data = msg->data;
		if (data + DESCRIPTOR_BYTES > msg->data_end)
			goto wrong_size;
	}
	return who->far ? from_gateway(msg, who, data) : from_member(msg, who, own, data);

wrong_size:
	/* Records on a stream can be told apart by their size alone. */
	__sync_fetch_and_add(&own->refused[REFUSED_SIZE], 1);
	return SK_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
