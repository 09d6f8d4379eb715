/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * New connections. One that is plainly allowed begins here; all others are the rules', which know everything that this knows,
 * and refuse and report.
 */
#ifndef HEARTH_GATEWAY_BEGIN_H
#define HEARTH_GATEWAY_BEGIN_H

#include "gateway_flow.h"

/* How many ports are tried for a connection. */
#define PORT_ATTEMPTS 8
#define HIGHEST_PORT 65535

static __always_inline int is_resolved(struct resolved *key, __u64 now)
{
	__u64 *until = bpf_map_lookup_elem(&resolved, key);

	return until && *until > now;
}

static __always_inline int has_port(const struct segment *s, __u32 slot)
{
	struct prefix key = { .length = PREFIX_BITS, .family = bpf_htons(s->family), .slot = bpf_htons(slot) };
	__u16 port = bpf_ntohs(s->dport);
	struct allowed *allowed;

	__builtin_memcpy(key.address, s->destination, sizeof(key.address));
	allowed = bpf_map_lookup_elem(&prefixes, &key);
	if (!allowed)
		return 0;
#pragma unroll
	for (int i = 0; i < RANGES; i++) {
		if (i < allowed->count && port >= allowed->ports[i][0] && port <= allowed->ports[i][1])
			return 1;
	}
	return 0;
}

/* The rules' policy chain of the sandbox (gateway/src/rules/policy.rs), for TCP. */
static __always_inline int is_allowed(const struct segment *s, __u32 slot, __u32 flags, __u32 class, __u64 now)
{
	if ((flags & SANDBOX_INTERNET) && class == CLASS_PUBLIC)
		return 1;
	if (flags & SANDBOX_NAMES) {
		struct resolved key = { .slot = slot, .port = s->dport };

		__builtin_memcpy(key.address, s->destination, sizeof(key.address));
		if (is_resolved(&key, now))
			return 1;
		key.port = 0;
		if (is_resolved(&key, now))
			return 1;
	}
	return (flags & SANDBOX_PREFIXES) && has_port(s, slot);
}

/*
 * A port that the host's stack does not choose by itself, in the host's byte order; 0 if there is none. The next one for this
 * destination: a server that has ended a connection refuses another one from the same port for a minute.
 */
static __always_inline __u32 next_port(const struct network *network, struct route *route)
{
	__u32 first = network->stack[0], last = network->stack[1];
	__u32 below = first > LOWEST_PORT ? first - LOWEST_PORT : 0;
	__u32 from = last >= LOWEST_PORT ? last + 1 : LOWEST_PORT;
	__u32 all = below + (HIGHEST_PORT + 1 - from);
	__u32 chosen;

	if (!all)
		return 0;
	chosen = __sync_fetch_and_add(&route->next, 1) % all;
	return chosen < below ? LOWEST_PORT + chosen : from + (chosen - below);
}

/* Whether a socket of the host's has this end of a connection: one that is connected so, or listens at the port. */
static __always_inline int is_taken_by_host(struct __sk_buff *skb, const struct network *network, const struct back_key *key,
					    const __u32 *local, int family)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *socket;
	__u32 size;

	if (family == 4) {
		tuple.ipv4.saddr = key->address[3];
		tuple.ipv4.daddr = local[3];
		tuple.ipv4.sport = key->sport;
		tuple.ipv4.dport = key->dport;
		size = sizeof(tuple.ipv4);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, key->address, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, local, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = key->sport;
		tuple.ipv6.dport = key->dport;
		size = sizeof(tuple.ipv6);
	}
	socket = bpf_skc_lookup_tcp(skb, &tuple, size, network->host, 0);
	if (!socket)
		return 0;
	bpf_sk_release(socket);
	return 1;
}

/* Takes a port of the host's for the connection. 0 if none was found. */
static __always_inline __u16 take_port(struct __sk_buff *skb, const struct network *network, const struct segment *s,
				       struct route *route, __u32 slot, __u32 group)
{
	struct back_key key = { .sport = s->dport };
	struct back back_entry = { .port = s->sport, .slot = slot, .group = group, .seen = network->epoch };

	__builtin_memcpy(key.address, s->destination, sizeof(key.address));
	__builtin_memcpy(back_entry.source, route->source, sizeof(back_entry.source));
	for (int i = 0; i < PORT_ATTEMPTS; i++) {
		__u32 port = next_port(network, route);

		if (!port)
			return 0;
		key.dport = bpf_htons(port);
		if (bpf_map_update_elem(&back, &key, &back_entry, BPF_NOEXIST))
			continue;
		if (!is_taken_by_host(skb, network, &key, back_entry.source, s->family))
			return key.dport;
		bpf_map_delete_elem(&back, &key);
	}
	return 0;
}

/* Begins a connection here: WAY_FAST if the flow is there now, else why it is the rules'. */
static __always_inline enum way begin(struct __sk_buff *skb, const struct network *network, const struct sandbox *sandbox,
				      const struct segment *s, const struct flow_key *key, __u64 now)
{
	struct flow flow = { .group = sandbox->group, .opened = network->epoch, .seen = network->epoch };
	struct route *route = bpf_map_lookup_elem(&routes, s->destination);
	struct sums *counters;
	__u32 slot = key->slot;
	__u16 port;

	if (!(sandbox->flags & SANDBOX_ACTIVE))
		return WAY_POLICY;
	if (!route || route->until < now)
		return WAY_ROUTE;
	if (!is_allowed(s, slot, sandbox->flags, route->class, now))
		return WAY_POLICY;
	if (!take_connection(sandbox->group, now))
		return WAY_LIMIT;
	port = take_port(skb, network, s, route, slot, sandbox->group);
	if (!port) {
		give_connection_back(sandbox->group);
		return WAY_PORTS;
	}
	flow.port = port;
	__builtin_memcpy(flow.source, route->source, sizeof(flow.source));
	if (bpf_map_update_elem(&flows, key, &flow, BPF_NOEXIST)) {
		struct back_key there = { .sport = s->dport, .dport = port };

		__builtin_memcpy(there.address, s->destination, sizeof(there.address));
		bpf_map_delete_elem(&back, &there);
		give_connection_back(sandbox->group);
		return WAY_FULL;
	}
	counters = bpf_map_lookup_elem(&sums, &slot);
	if (counters)
		counters->connections++;
	return WAY_FAST;
}

/* A SYN on a connection that is over: the sandbox uses its port again, and the connection keeps its port on the host. */
static __always_inline enum way begin_again(const struct network *network, const struct sandbox *sandbox,
					    const struct segment *s, const struct flow_key *key, struct flow *flow, __u64 now)
{
	struct route *route = bpf_map_lookup_elem(&routes, s->destination);
	__u32 slot = key->slot;
	struct sums *counters;

	if (!(sandbox->flags & SANDBOX_ACTIVE) || !route ||
	    !is_allowed(s, slot, sandbox->flags, route->class, now))
		return WAY_POLICY;
	if (!take_connection(sandbox->group, now))
		return WAY_LIMIT;
	flow->opened = network->epoch;
	flow->acknowledged = 0;
	*(volatile __u32 *)&flow->state = 0;
	counters = bpf_map_lookup_elem(&sums, &slot);
	if (counters)
		counters->connections++;
	return WAY_FAST;
}

#endif
