/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is known of connections: when they end, and what they use of their group's limits. */
#ifndef HEARTH_GATEWAY_FLOW_H
#define HEARTH_GATEWAY_FLOW_H

#include "gateway_packet.h"

#define SECOND 1000000000ULL
/* How far beyond what was acknowledged a reset or an end may be: an attacker who does not see the connection has to guess. */
#define WINDOW (1 << 24)

static __always_inline struct usage *usage_of(__u32 group)
{
	return bpf_map_lookup_elem(&usage, &group);
}

/* A connection has ended: it makes room for another at once, and is forgotten some time after. */
static __always_inline void close_flow(struct flow *flow, __u32 epoch)
{
	struct usage *used;

	if (__sync_fetch_and_or(&flow->state, FLOW_CLOSED) & FLOW_CLOSED)
		return;
	flow->closed = epoch;
	used = usage_of(flow->group);
	if (used)
		__sync_fetch_and_add(&used->open, -1);
}

/* The sandbox goes on after a reset from the world: it was forged, or meant another connection. */
static __always_inline void reopen(struct flow *flow)
{
	struct usage *used = usage_of(flow->group);

	if ((__sync_fetch_and_and(&flow->state, ~FLOW_CLOSED) & FLOW_CLOSED) && used)
		__sync_fetch_and_add(&used->open, 1);
}

static __always_inline void note_fin(struct flow *flow, __u32 own, __u32 others, __u32 epoch)
{
	if (__sync_fetch_and_or(&flow->state, own) & others)
		close_flow(flow, epoch);
}

/* A packet of the sandbox. */
static __always_inline void note_out(struct flow *flow, const struct segment *s, __u32 epoch)
{
	flow->seen = epoch;
	if (s->protocol != IPPROTO_TCP)
		return;
	if (s->flags & TCP_ACK) {
		flow->acknowledged = s->acknowledged;
		if (!(flow->state & FLOW_ESTABLISHED))
			__sync_fetch_and_or(&flow->state, FLOW_ESTABLISHED);
	}
	if (s->flags & TCP_RST) {
		__sync_fetch_and_or(&flow->state, FLOW_RESET);
		close_flow(flow, epoch);
		return;
	}
	if ((flow->state & (FLOW_CLOSED | FLOW_DOUBTED)) == (FLOW_CLOSED | FLOW_DOUBTED))
		reopen(flow);
	if (s->flags & TCP_FIN)
		note_fin(flow, FLOW_FIN_OUT, FLOW_FIN_IN, epoch);
}

/* A packet of the world that ends something. A reset of a connection that has not begun answers its SYN. */
static __always_inline void note_in(struct flow *flow, const struct segment *s, __u32 epoch)
{
	if ((flow->state & FLOW_ESTABLISHED) && s->sequence - flow->acknowledged >= WINDOW)
		return;
	if (s->flags & TCP_RST) {
		__sync_fetch_and_or(&flow->state, FLOW_DOUBTED);
		close_flow(flow, epoch);
	} else if (s->flags & TCP_FIN) {
		__u32 waits = flow->state & FLOW_FIN_OUT ? 0 : FLOW_WAITS;

		note_fin(flow, FLOW_FIN_IN | waits, FLOW_FIN_OUT, epoch);
	}
}

/* Whether so many bytes are within the group's limit. */
static __always_inline int within_rate(__u32 index, __u32 direction, __u32 bytes)
{
	struct group *group = bpf_map_lookup_elem(&groups, &index);
	struct usage *used;

	if (!group || !group->bytes_per_second)
		return 1;
	used = usage_of(index);
	if (!used)
		return 1;
	return take(&used->next_bytes[direction & 1], bpf_ktime_get_ns(), bytes * SECOND / group->bytes_per_second,
		    group->bytes_slack);
}

/* Whether the group may not begin another connection. */
static __always_inline int is_exhausted(__u32 index, __u64 now)
{
	struct group *group = bpf_map_lookup_elem(&groups, &index);
	struct usage *used = usage_of(index);

	if (!group || !used)
		return 0;
	if (group->connections && used->open >= (__s32)group->connections)
		return 1;
	return group->new_interval && used->next_new > now && used->next_new - now > group->new_slack;
}

/* Takes what one connection needs. */
static __always_inline int take_connection(__u32 index, __u64 now)
{
	struct group *group = bpf_map_lookup_elem(&groups, &index);
	struct usage *used = usage_of(index);

	if (!group || !used)
		return 0;
	if (group->new_interval && !take(&used->next_new, now, group->new_interval, group->new_slack))
		return 0;
	if (__sync_fetch_and_add(&used->open, 1) < (__s32)group->connections || !group->connections)
		return 1;
	__sync_fetch_and_add(&used->open, -1);
	return 0;
}

static __always_inline void give_connection_back(__u32 index)
{
	struct usage *used = usage_of(index);

	if (used)
		__sync_fetch_and_add(&used->open, -1);
}

static __always_inline void flow_key_of(struct flow_key *key, const struct segment *s, __u32 slot)
{
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memcpy(key->address, s->destination, sizeof(key->address));
	key->sport = s->sport;
	key->dport = s->dport;
	key->slot = slot;
	key->protocol = s->protocol;
}

/* The same of a packet in the other direction. */
static __always_inline void flow_key_back(struct flow_key *key, const struct segment *s, __u32 slot, __u16 port)
{
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memcpy(key->address, s->source, sizeof(key->address));
	key->sport = port;
	key->dport = s->sport;
	key->slot = slot;
	key->protocol = s->protocol;
}

/* Gives back the port that a connection had on the host. What it carried since it was last told of is not told of. */
static __always_inline void leave_port(const struct segment *s, struct flow *flow)
{
	struct back_key there = { .sport = s->dport, .dport = flow->port };

	__builtin_memcpy(there.address, s->destination, sizeof(there.address));
	flow->port = 0;
	bpf_map_delete_elem(&back, &there);
}

#endif
