// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Forwards packets between the interfaces in `pairs` past the kernel's stack, by the kernel's own routes and neighbours
 * (SPRIGHT's EPROXY). Whatever is not plain goes the ordinary way: the stack fragments, answers and resolves neighbours.
 * The stack's netfilter rules do not see what is forwarded here, which is why only listed pairs are.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include "parse.h"

#define AF_INET 2
#define AF_INET6 10

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct pair);
	__type(value, struct forwarded);
} pairs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct left_to_stack);
} left SEC(".maps");

static const __u32 zero = 0;

static __always_inline void leave(enum left reason)
{
	struct left_to_stack *counters = bpf_map_lookup_elem(&left, &zero);

	if (counters)
		counters->packets[reason]++;
}

/* Asks the routing table with what the headers say. LEFTS if the question could be put, else why not. */
static __always_inline enum left question(void *data, void *end, struct bpf_fib_lookup *fib)
{
	struct ethhdr *ethernet = data;
	struct ipv4_header *ip = (void *)(ethernet + 1);
	struct ipv6_header *ip6 = (void *)(ethernet + 1);

	if ((void *)(ip + 1) > end)
		return LEFT_SHAPE;
	/* To another station, or to all. */
	if (ethernet->h_dest[0] & 1)
		return LEFT_SHAPE;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		/* Options and fragments are the stack's. */
		if (ip->version_length != 0x45 || (ip->fragment & bpf_htons(0x3fff)))
			return LEFT_SHAPE;
		if (ip->ttl <= 1)
			return LEFT_HOPS;
		fib->family = AF_INET;
		fib->tos = ip->tos;
		fib->l4_protocol = ip->protocol;
		fib->tot_len = bpf_ntohs(ip->total);
		fib->ipv4_src = ip->saddr;
		fib->ipv4_dst = ip->daddr;
		return LEFTS;
	}
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ip6 + 1) > end || (*(__u8 *)ip6) >> 4 != 6)
			return LEFT_SHAPE;
		if (ip6->hops <= 1)
			return LEFT_HOPS;
		fib->family = AF_INET6;
		fib->flowinfo = ip6->version & bpf_htonl(0x0fffffff);
		fib->l4_protocol = ip6->next;
		fib->tot_len = bpf_ntohs(ip6->payload) + sizeof(*ip6);
		__builtin_memcpy(fib->ipv6_src, ip6->saddr, sizeof(fib->ipv6_src));
		__builtin_memcpy(fib->ipv6_dst, ip6->daddr, sizeof(fib->ipv6_dst));
		return LEFTS;
	}
	return LEFT_SHAPE;
}

/* Counts the packet for its pair of interfaces; LEFT_PAIR if the pair is not listed. */
static __always_inline enum left count(__u32 from, __u32 to, __u32 bytes)
{
	struct pair pair = { .from = from, .to = to };
	struct forwarded *forwarded = bpf_map_lookup_elem(&pairs, &pair);

	if (!forwarded)
		return LEFT_PAIR;
	forwarded->packets++;
	forwarded->bytes += bytes;
	return LEFTS;
}

/* One hop less, IPv4: the checksum follows (RFC 1141). */
static __always_inline void hop_ipv4(struct ipv4_header *ip)
{
	__u32 check = ip->check;

	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
}

static __always_inline void address(struct ethhdr *ethernet, const struct bpf_fib_lookup *fib)
{
	__builtin_memcpy(ethernet->h_dest, fib->dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, fib->smac, ETH_ALEN);
}

SEC("xdp")
int redirect_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup fib = {};
	struct ethhdr *ethernet = data;
	enum left reason;

	reason = question(data, end, &fib);
	if (reason != LEFTS)
		goto leave;
	fib.ifindex = ctx->ingress_ifindex;
	reason = LEFT_ROUTE;
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		goto leave;
	reason = count(ctx->ingress_ifindex, fib.ifindex, end - data);
	if (reason != LEFTS)
		goto leave;
	if (fib.family == AF_INET) {
		if ((void *)(ethernet + 1) + sizeof(struct ipv4_header) > end)
			return XDP_PASS;
		hop_ipv4((void *)(ethernet + 1));
	} else {
		struct ipv6_header *ip6 = (void *)(ethernet + 1);

		if ((void *)(ip6 + 1) > end)
			return XDP_PASS;
		ip6->hops--;
	}
	address(ethernet, &fib);
	return bpf_redirect(fib.ifindex, 0);

leave:
	leave(reason);
	return XDP_PASS;
}

SEC("classifier")
int redirect_tc(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct bpf_fib_lookup fib = {};
	struct ethhdr *ethernet = data;
	enum left reason = LEFT_SHAPE;

	if (skb->vlan_present)
		goto leave;
	reason = question(data, end, &fib);
	if (reason != LEFTS)
		goto leave;
	fib.ifindex = skb->ingress_ifindex;
	/* With 0 the kernel compares the packet itself with the MTU, which is right for one that is segmented later. */
	fib.tot_len = 0;
	reason = LEFT_ROUTE;
	if (bpf_fib_lookup(skb, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		goto leave;
	reason = count(skb->ingress_ifindex, fib.ifindex, skb->len);
	if (reason != LEFTS)
		goto leave;
	if (fib.family == AF_INET) {
		if ((void *)(ethernet + 1) + sizeof(struct ipv4_header) > end)
			return TCX_NEXT;
		hop_ipv4((void *)(ethernet + 1));
	} else {
		struct ipv6_header *ip6 = (void *)(ethernet + 1);
		__u8 next_hops[2];

		if ((void *)(ip6 + 1) > end)
			return TCX_NEXT;
		next_hops[0] = ip6->next;
		next_hops[1] = ip6->hops - 1;
		/* IPv6 has no checksum that balances the change: the card's sum over the packet has to be corrected. */
		if (bpf_skb_store_bytes(skb, ETH_HLEN + 6, next_hops, sizeof(next_hops), BPF_F_RECOMPUTE_CSUM))
			return TCX_NEXT;
	}
	if (bpf_skb_store_bytes(skb, 0, fib.dmac, ETH_ALEN, 0) || bpf_skb_store_bytes(skb, ETH_ALEN, fib.smac, ETH_ALEN, 0))
		return TCX_NEXT;
	return bpf_redirect(fib.ifindex, 0);

leave:
	leave(reason);
	return TCX_NEXT;
}

/* bpf_fib_lookup is for programs that are GPL compatible. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
