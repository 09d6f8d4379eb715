/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The addresses of sandboxes, and the ways that the host has to others. */
#ifndef HEARTH_GATEWAY_ROUTE_H
#define HEARTH_GATEWAY_ROUTE_H

#include "gateway_flow.h"

#define AF_INET 2
#define AF_INET6 10
/* Packets of a sandbox's interface are not larger; a route for smaller ones is the stack's. */
#define SANDBOX_MTU 1500
/* For how long a destination counts as seen, and for how long nobody looks again. */
#define ROUTE_LASTS (10 * SECOND)
#define ROUTE_IS_NEW SECOND
/* Since Linux 6.3 and 6.7. */
#define FIB_SKIP_NEIGH (1U << 2)
#define FIB_SRC (1U << 4)

/* The addresses of a slot. */
static __always_inline void address_of(const struct network *network, __u32 slot, int family, __u32 *to)
{
	__u32 last = network->first[3] | bpf_htonl(slot);

	if (family == 4) {
		map_address(to, last);
		return;
	}
	to[0] = network->first[0];
	to[1] = network->first[1];
	to[2] = network->first[2];
	to[3] = last;
}

/* Whose packet from the host this is, whatever else it is. */
static __always_inline int read_slot(struct __sk_buff *skb, __u32 *slot)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	struct ipv4_header *ip = (void *)(ethernet + 1);
	struct ipv6_header *ip6 = (void *)(ethernet + 1);

	if ((void *)(ip + 1) > end)
		return 0;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		*slot = bpf_ntohl(ip->daddr) & SLOT_BITS;
	else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end)
		*slot = bpf_ntohl(ip6->daddr[3]) & SLOT_BITS;
	else
		return 0;
	return 1;
}

static __always_inline int is_own(const struct network *network, __u32 slot, const struct segment *s)
{
	__u32 own[4];

	address_of(network, slot, s->family, own);
	return same_address(own, s->source);
}

/* Which way the host sends a sandbox's packets to this destination. Whether that is one of the interfaces that have programs. */
static __always_inline int find_route(struct __sk_buff *skb, const struct network *network, const struct segment *s, __u32 slot,
				      struct bpf_fib_lookup *fib, __u32 flags)
{
	__u32 own[4], interface;

	address_of(network, slot, s->family, own);
	fib->l4_protocol = IPPROTO_TCP;
	fib->sport = s->sport;
	fib->dport = s->dport;
	fib->tot_len = SANDBOX_MTU;
	fib->ifindex = skb->ifindex;
	if (s->family == 4) {
		fib->family = AF_INET;
		fib->ipv4_src = own[3];
		fib->ipv4_dst = s->destination[3];
	} else {
		fib->family = AF_INET6;
		__builtin_memcpy(fib->ipv6_src, own, sizeof(own));
		__builtin_memcpy(fib->ipv6_dst, s->destination, sizeof(own));
	}
	if (bpf_fib_lookup(skb, fib, sizeof(*fib), FIB_SKIP_NEIGH | flags) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	interface = fib->ifindex;
	return bpf_map_lookup_elem(&uplinks, &interface) != NULL;
}

/* Whether the destination is never reached, or only where a policy lists it. */
static __always_inline __u32 class_of(__u16 family, const __u32 *address)
{
	struct prefix key = { .length = PREFIX_BITS, .family = bpf_htons(family), .slot = ANY_SLOT };
	struct allowed *found;

	__builtin_memcpy(key.address, address, sizeof(key.address));
	found = bpf_map_lookup_elem(&prefixes, &key);
	return found ? found->class : CLASS_PUBLIC;
}

/* Remembers the way to where a connection is beginning: the next one may begin here. */
static __always_inline void learn(struct __sk_buff *skb, const struct network *network, const struct segment *s, __u32 slot)
{
	struct bpf_fib_lookup fib = {};
	struct route *known = bpf_map_lookup_elem(&routes, s->destination);
	struct route route = { .until = bpf_ktime_get_ns() + ROUTE_LASTS };

	if (known && known->until + ROUTE_IS_NEW > route.until)
		return;
	/* An attacker who has not seen a connection there does not know the first one's port. */
	route.next = known ? known->next : bpf_get_prandom_u32();
	route.class = class_of(s->family, s->destination);
	if (route.class == CLASS_FORBIDDEN || !find_route(skb, network, s, slot, &fib, FIB_SRC)) {
		bpf_map_delete_elem(&routes, s->destination);
		return;
	}
	if (s->family == 4)
		map_address(route.source, fib.ipv4_src);
	else
		__builtin_memcpy(route.source, fib.ipv6_src, sizeof(route.source));
	bpf_map_update_elem(&routes, s->destination, &route, BPF_ANY);
}

#endif
