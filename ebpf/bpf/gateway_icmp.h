/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ICMP errors about packets of a fast connection (too large, unreachable, …): the packet that they quote gets the sandbox's
 * address and port again, and the error goes to the sandbox.
 */
#ifndef HEARTH_GATEWAY_ICMP_H
#define HEARTH_GATEWAY_ICMP_H

#include "gateway_flow.h"

struct icmp_header {
	__u8 type;
	__u8 code;
	__u16 check;
	__u32 rest;
};
SIZE_IS(struct icmp_header, 8);

#define IPPROTO_ICMP6 58

/* Destination unreachable (with "too large" of IPv4), time exceeded, bad parameter; of IPv6 also "too large". */
static __always_inline int is_error(__u32 family, __u8 type)
{
	if (family == 4)
		return type == 3 || type == 11 || type == 12;
	return type >= 1 && type <= 4;
}

/* What the first bytes of the error quote, read so that the sender and the receiver of the quoted packet change places. */
static __always_inline int read_error(struct __sk_buff *skb, struct segment *s)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	struct ipv4_header *ip = (void *)(ethernet + 1), *quoted;
	struct ipv6_header *ip6 = (void *)(ethernet + 1), *quoted6;
	struct icmp_header *icmp;
	__be16 *ports;

	__builtin_memset(s, 0, sizeof(*s));
	if (skb->vlan_present || (void *)(ip + 1) > end)
		return 0;
	s->bytes = skb->len - ETH_HLEN;
	s->protocol = IPPROTO_TCP;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		icmp = (void *)(ip + 1);
		quoted = (void *)(icmp + 1);
		ports = (void *)(quoted + 1);
		if (ip->version_length != 0x45 || ip->protocol != IPPROTO_ICMP || (ip->fragment & FRAGMENT_BITS))
			return 0;
		if ((void *)(ports + 4) > end || !is_error(4, icmp->type) || quoted->version_length != 0x45 ||
		    quoted->protocol != IPPROTO_TCP || (quoted->fragment & bpf_htons(0x1fff)) || ip->daddr != quoted->saddr)
			return 0;
		map_address(s->source, quoted->daddr);
		map_address(s->destination, quoted->saddr);
		s->family = 4;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		icmp = (void *)(ip6 + 1);
		quoted6 = (void *)(icmp + 1);
		ports = (void *)(quoted6 + 1);
		if ((void *)(ports + 4) > end || ip6->next != IPPROTO_ICMP6 || !is_error(6, icmp->type) ||
		    quoted6->next != IPPROTO_TCP)
			return 0;
		__builtin_memcpy(s->source, quoted6->daddr, sizeof(s->source));
		__builtin_memcpy(s->destination, quoted6->saddr, sizeof(s->destination));
		if (!same_address(s->destination, (__u32 *)ip6->daddr))
			return 0;
		s->family = 6;
	} else {
		return 0;
	}
	s->dport = ports[0];
	s->sport = ports[1];
	return 1;
}

/* Rewrites the error for the sandbox at this address and port. */
static __always_inline int rewrite_error(struct __sk_buff *skb, const struct segment *s, const __u32 *address, __u16 port)
{
	__u32 addresses = difference(s->destination, address);
	__u32 ports = (__u32)(__u16)~s->dport + port;

	if (s->family == 4) {
		__u32 outer = ETH_HLEN, icmp = outer + IPV4_BYTES, inner = icmp + sizeof(struct icmp_header);

		/* The header that is quoted balances itself: only the port changes the sum of the message. */
		return bpf_l3_csum_replace(skb, outer + 10, s->destination[3], address[3], 4) ||
		       bpf_skb_store_bytes(skb, outer + 16, &address[3], 4, 0) ||
		       bpf_l3_csum_replace(skb, inner + 10, s->destination[3], address[3], 4) ||
		       bpf_skb_store_bytes(skb, inner + 12, &address[3], 4, 0) ||
		       bpf_skb_store_bytes(skb, inner + IPV4_BYTES, &port, 2, 0) ||
		       bpf_l4_csum_replace(skb, icmp + 2, s->dport, port, 2);
	}
	/* The sum of ICMPv6 covers both addresses, once each: that of the header and that of the packet quoted. */
	return bpf_skb_store_bytes(skb, ETH_HLEN + 24, address, 16, BPF_F_RECOMPUTE_CSUM) ||
	       bpf_skb_store_bytes(skb, ETH_HLEN + IPV6_BYTES + 8 + 8, address, 16, BPF_F_RECOMPUTE_CSUM) ||
	       bpf_skb_store_bytes(skb, ETH_HLEN + IPV6_BYTES + 8 + IPV6_BYTES, &port, 2, BPF_F_RECOMPUTE_CSUM) ||
	       bpf_l4_csum_replace(skb, ETH_HLEN + IPV6_BYTES + 2, 0,
				   fold32((__u64)addresses + addresses + ports), BPF_F_PSEUDO_HDR);
}

#endif
