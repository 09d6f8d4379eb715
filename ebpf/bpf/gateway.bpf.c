// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The fast way of sandboxes' TCP connections: between a sandbox's interface and the host's, past connection tracking and the
 * rules of two network namespaces (server/docs/gateway.md).
 *
 *   sandbox ══ s<n>  from_sandbox ─────▶ hearth<n>  to_world ─────▶ the host's interface
 *              s<n> ◀──── up  to_sandbox ◀──── hearth<n> ◀───── from_world  the host's interface
 *
 * Whatever is unusual, or not plainly allowed, goes on to the rules, which decide. What the rules have accepted passes
 * `to_host`, so that connections of both ways count together.
 */
#include "gateway_begin.h"
#include "gateway_icmp.h"
#include "gateway_route.h"

#define BEGINS(flags) (((flags) & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN)

/* To the rules, which are told that the group may begin no more: they look at it where one begins. */
static __always_inline int leave(struct __sk_buff *skb, int is_limited)
{
	if (is_limited)
		skb->mark = MARK_LIMIT;
	return TCX_NEXT;
}

/* From a sandbox. In the gateway's namespace, at s<n>. */
SEC("classifier")
int from_sandbox(struct __sk_buff *skb)
{
	struct network *network = open_network();
	__u32 slot = (skb->ifindex - UPLINK) & SLOT_BITS;
	struct sandbox *sandbox;
	struct flow_key key;
	struct segment s;
	struct flow *flow;
	__u32 own[4];

	if (!network)
		return TCX_NEXT;
	sandbox = bpf_map_lookup_elem(&sandboxes, &slot);
	if (!sandbox || !(sandbox->flags & SANDBOX_KNOWN))
		return TCX_NEXT;
	if (!within_rate(sandbox->group, DIRECTION_TO_WORLD, skb->len - ETH_HLEN)) {
		count_way(WAY_RATE);
		return TC_ACT_SHOT;
	}
	if (!read_packet(skb, &s) || !is_own(network, slot, &s))
		return TCX_NEXT;
	flow_key_of(&key, &s, slot);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (s.protocol == IPPROTO_TCP && BEGINS(s.flags) && s.hops > 1 &&
	    (!flow || (flow->port && (flow->state & FLOW_CLOSED)))) {
		__u64 now = bpf_ktime_get_ns();
		enum way way = flow ? begin_again(network, sandbox, &s, &key, flow, now) :
				      begin(skb, network, sandbox, &s, &key, now);

		count_way(way);
		if (way != WAY_FAST)
			return leave(skb, way == WAY_LIMIT || is_exhausted(sandbox->group, now));
		if (!flow)
			flow = bpf_map_lookup_elem(&flows, &key);
	}
	if (!flow)
		return leave(skb, is_exhausted(sandbox->group, bpf_ktime_get_ns()));
	/* Nothing but a reset follows a reset. It is not counted any more, so it does not go on. */
	if (flow->port && (flow->state & FLOW_RESET) && !(s.flags & TCP_RST))
		return TCX_NEXT;
	note_out(flow, &s, network->epoch);
	__sync_fetch_and_add(&flow->packets, 1);
	__sync_fetch_and_add(&flow->bytes, s.bytes);
	/* The rules answer those whose hops run out, as they do for connections that they do not know. */
	if (!flow->port || s.hops <= 1)
		return TCX_NEXT;
	count_packet(slot, DIRECTION_TO_WORLD, s.bytes);
	__builtin_memcpy(own, flow->source, sizeof(own));
	if (rewrite(skb, &s, own, flow->port, s.destination, s.dport, 1))
		return TC_ACT_SHOT;
	skb->mark = MARK_FAST | slot;
	return bpf_redirect_peer(UPLINK, 0);
}

/* From the gateway. In the host's own namespace, at hearth<n>. */
SEC("classifier")
int to_world(struct __sk_buff *skb)
{
	struct network *network = the_network();
	__u32 mark = skb->mark, slot = mark & SLOT_BITS, interface;
	struct bpf_redir_neigh next = {};
	struct bpf_fib_lookup fib = {};
	struct segment s;
	int is_fast = (mark & ~SLOT_BITS) == MARK_FAST;

	if (!network)
		return is_fast ? TC_ACT_SHOT : TCX_NEXT;
	if (!read_packet(skb, &s))
		return is_fast ? TC_ACT_SHOT : TCX_NEXT;
	if (!is_fast) {
		slot = bpf_ntohl(s.source[3]) & SLOT_BITS;
		if ((network->flags & NETWORK_OPEN) && s.protocol == IPPROTO_TCP && BEGINS(s.flags) && is_own(network, slot, &s))
			learn(skb, network, &s, slot);
		return TCX_NEXT;
	}
	skb->mark = 0;
	if (BEGINS(s.flags))
		learn(skb, network, &s, slot);
	if (!find_route(skb, network, &s, slot, &fib, 0)) {
		bpf_map_delete_elem(&routes, s.destination);
		count_way(WAY_LOST);
		return TC_ACT_SHOT;
	}
	interface = fib.ifindex;
	/* The next hop may be of the other family. */
	next.nh_family = fib.family;
	if (fib.family == AF_INET)
		next.ipv4_nh = fib.ipv4_dst;
	else
		__builtin_memcpy(next.ipv6_nh, fib.ipv6_dst, sizeof(next.ipv6_nh));
	/* The stack's own table of neighbours, which it asks for those that it does not know. */
	return bpf_redirect_neigh(interface, &next, sizeof(next), 0);
}

/* The connection that a packet of the world belongs to. */
static __always_inline struct back *find_back(const struct segment *s)
{
	struct back_key key = { .sport = s->sport, .dport = s->dport };
	struct back *entry;

	__builtin_memcpy(key.address, s->source, sizeof(key.address));
	entry = bpf_map_lookup_elem(&back, &key);
	return entry && same_address(entry->source, s->destination) ? entry : NULL;
}

/* An error about a packet that went the fast way. */
static __always_inline int take_error(struct __sk_buff *skb, const struct network *network)
{
	struct back *entry;
	struct segment s;
	__u32 slot, own[4];

	if (bpf_skb_pull_data(skb, ETH_HLEN + 2 * IPV6_BYTES + 16) && bpf_skb_pull_data(skb, ETH_HLEN + 2 * IPV4_BYTES + 16))
		return TCX_NEXT;
	if (!read_error(skb, &s))
		return TCX_NEXT;
	entry = find_back(&s);
	if (!entry)
		return TCX_NEXT;
	slot = entry->slot;
	if (!within_rate(entry->group, DIRECTION_TO_SANDBOX, s.bytes)) {
		count_way(WAY_RATE);
		return TC_ACT_SHOT;
	}
	count_packet(slot, DIRECTION_TO_SANDBOX, s.bytes);
	address_of(network, slot, s.family, own);
	if (rewrite_error(skb, &s, own, entry->port))
		return TC_ACT_SHOT;
	skb->mark = MARK_FAST | (slot & SLOT_BITS);
	return bpf_redirect_peer(network->interface, 0);
}

/* From the world. In the host's own namespace, at each interface that it may come by. */
SEC("classifier")
int from_world(struct __sk_buff *skb)
{
	struct network *network = open_network();
	struct back *entry;
	struct segment s;
	__u32 slot, own[4];
	__u16 port;

	if (!network || skb->pkt_type != 0)
		return TCX_NEXT;
	if ((void *)(long)skb->data + ETH_HLEN + IPV6_BYTES + sizeof(struct tcp_header) > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, skb->len < 74 ? skb->len : 74);
	if (!read_packet(skb, &s))
		return s.protocol == IPPROTO_ICMP || s.protocol == IPPROTO_ICMP6 ? take_error(skb, network) : TCX_NEXT;
	port = bpf_ntohs(s.dport);
	if (s.protocol != IPPROTO_TCP || port < LOWEST_PORT || (port >= network->stack[0] && port <= network->stack[1]))
		return TCX_NEXT;
	entry = find_back(&s);
	if (!entry)
		return TCX_NEXT;
	slot = entry->slot;
	if (!within_rate(entry->group, DIRECTION_TO_SANDBOX, s.bytes)) {
		count_way(WAY_RATE);
		return TC_ACT_SHOT;
	}
	if (s.flags & (TCP_RST | TCP_FIN)) {
		struct flow_key there;
		struct flow *flow;

		flow_key_back(&there, &s, slot, entry->port);
		flow = bpf_map_lookup_elem(&flows, &there);
		if (flow)
			note_in(flow, &s, network->epoch);
	}
	entry->seen = network->epoch;
	__sync_fetch_and_add(&entry->packets, 1);
	__sync_fetch_and_add(&entry->bytes, s.bytes);
	count_packet(slot, DIRECTION_TO_SANDBOX, s.bytes);
	address_of(network, slot, s.family, own);
	if (rewrite(skb, &s, s.source, s.sport, own, entry->port, 0))
		return TC_ACT_SHOT;
	skb->mark = MARK_FAST | (slot & SLOT_BITS);
	return bpf_redirect_peer(network->interface, 0);
}

/* From the host. In the gateway's namespace, at `up`. */
SEC("classifier")
int to_sandbox(struct __sk_buff *skb)
{
	struct network *network;
	struct sandbox *sandbox;
	__u32 mark = skb->mark, slot;
	struct flow_key key;
	struct segment s;
	struct flow *flow;

	if ((mark & ~SLOT_BITS) == MARK_FAST) {
		skb->mark = 0;
		return bpf_redirect_peer(UPLINK + (mark & SLOT_BITS), 0);
	}
	network = open_network();
	if (!network || !read_slot(skb, &slot))
		return TCX_NEXT;
	sandbox = bpf_map_lookup_elem(&sandboxes, &slot);
	if (!sandbox || !(sandbox->flags & SANDBOX_KNOWN))
		return TCX_NEXT;
	if (!within_rate(sandbox->group, DIRECTION_TO_SANDBOX, skb->len - ETH_HLEN)) {
		count_way(WAY_RATE);
		return TC_ACT_SHOT;
	}
	if (!read_packet(skb, &s))
		return TCX_NEXT;
	if (s.protocol != IPPROTO_TCP || !(s.flags & (TCP_RST | TCP_FIN)))
		return TCX_NEXT;
	flow_key_back(&key, &s, slot, s.dport);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow)
		note_in(flow, &s, network->epoch);
	return TCX_NEXT;
}

/* What the rules have accepted. In the gateway's namespace, where packets leave by `up`. */
SEC("classifier")
int to_host(struct __sk_buff *skb)
{
	struct network *network;
	struct sandbox *sandbox;
	struct flow flow = {}, *known;
	struct usage *used;
	struct flow_key key;
	struct group *group;
	struct segment s;
	__u32 slot, index;

	if (skb->mark != MARK_BEGUN)
		return TCX_NEXT;
	network = open_network();
	if (!network || !read_packet(skb, &s))
		return TCX_NEXT;
	slot = bpf_ntohl(s.source[3]) & SLOT_BITS;
	sandbox = bpf_map_lookup_elem(&sandboxes, &slot);
	if (!sandbox || !(sandbox->flags & SANDBOX_KNOWN))
		return TCX_NEXT;
	index = sandbox->group;
	used = usage_of(index);
	group = bpf_map_lookup_elem(&groups, &index);
	if (!used || !group)
		return TCX_NEXT;
	flow_key_of(&key, &s, slot);
	flow.group = index;
	flow.opened = network->epoch;
	flow.seen = network->epoch;
	if (!bpf_map_update_elem(&flows, &key, &flow, BPF_NOEXIST)) {
		count_way(WAY_RULES);
		__sync_fetch_and_add(&used->open, 1);
		/* The rules have let it through, whatever is left. */
		if (group->new_interval)
			take(&used->next_new, bpf_ktime_get_ns(), group->new_interval, ~0ULL);
		return TCX_NEXT;
	}
	known = bpf_map_lookup_elem(&flows, &key);
	if (known && (known->state & FLOW_CLOSED)) {
		/* One that went the fast way before does not any more: the rules have chosen another port of the host's. */
		if (known->port)
			leave_port(&s, known);
		known->acknowledged = 0;
		*(volatile __u32 *)&known->state = 0;
		__sync_fetch_and_add(&used->open, 1);
	}
	return TCX_NEXT;
}

/* The route, the neighbour and the sockets are asked by helpers for programs that are GPL compatible. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
