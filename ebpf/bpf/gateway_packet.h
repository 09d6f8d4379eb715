/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads TCP and UDP packets that are plain, IPv4 without options and IPv6 without extension headers, and rewrites addresses and
 * ports of those of TCP. All other packets are left to the rules.
 */
#ifndef HEARTH_GATEWAY_PACKET_H
#define HEARTH_GATEWAY_PACKET_H

#include <linux/pkt_cls.h>

#include "gateway_maps.h"

#define MAPPED bpf_htonl(0xffff)
#define FRAGMENT_BITS bpf_htons(0x3fff)
#define IPV4_BYTES sizeof(struct ipv4_header)
#define IPV6_BYTES sizeof(struct ipv6_header)
/* Of the checksum in a TCP header. */
#define TCP_CHECK 16

/* What was read of a packet. */
struct segment {
	__u32 source[4];
	__u32 destination[4];
	__u16 sport;
	__u16 dport;
	__u8 family;		/* 4, 6; 0: not plain */
	__u8 protocol;
	__u8 flags;		/* TCP's */
	__u8 hops;
	__u16 check;		/* of the IPv4 header */
	__u16 transport;	/* offset */
	__u32 bytes;		/* of the IP packet */
	__u32 sequence;		/* in the host's byte order, as the next one */
	__u32 acknowledged;
};

static __always_inline void map_address(__u32 *to, __u32 address)
{
	to[0] = 0;
	to[1] = 0;
	to[2] = MAPPED;
	to[3] = address;
}

static __always_inline int same_address(const __u32 *one, const __u32 *other)
{
	return one[0] == other[0] && one[1] == other[1] && one[2] == other[2] && one[3] == other[3];
}

static __always_inline int read_transport(void *at, void *end, struct segment *s)
{
	struct udp_header *udp = at;
	struct tcp_header *tcp = at;

	if (s->protocol == IPPROTO_TCP) {
		if ((void *)(tcp + 1) > end)
			return 0;
		s->sport = tcp->sport;
		s->dport = tcp->dport;
		s->flags = tcp->flags;
		s->sequence = bpf_ntohl(tcp->seq);
		s->acknowledged = bpf_ntohl(tcp->ack);
		return 1;
	}
	if (s->protocol != IPPROTO_UDP || (void *)(udp + 1) > end)
		return 0;
	s->sport = udp->sport;
	s->dport = udp->dport;
	return 1;
}

/* Whether the packet is plain. */
static __always_inline int read_packet(struct __sk_buff *skb, struct segment *s)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	struct ipv4_header *ip = (void *)(ethernet + 1);
	struct ipv6_header *ip6 = (void *)(ethernet + 1);

	__builtin_memset(s, 0, sizeof(*s));
	if (skb->vlan_present || (void *)(ip + 1) > end)
		return 0;
	s->bytes = skb->len - ETH_HLEN;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->version_length != 0x45 || (ip->fragment & FRAGMENT_BITS))
			return 0;
		map_address(s->source, ip->saddr);
		map_address(s->destination, ip->daddr);
		s->family = 4;
		s->protocol = ip->protocol;
		s->hops = ip->ttl;
		s->check = ip->check;
		s->transport = ETH_HLEN + IPV4_BYTES;
		return read_transport(ip + 1, end, s);
	}
	if (ethernet->h_proto != bpf_htons(ETH_P_IPV6) || (void *)(ip6 + 1) > end || *(__u8 *)ip6 >> 4 != 6)
		return 0;
	__builtin_memcpy(s->source, ip6->saddr, sizeof(s->source));
	__builtin_memcpy(s->destination, ip6->daddr, sizeof(s->destination));
	s->family = 6;
	s->protocol = ip6->next;
	s->hops = ip6->hops;
	s->transport = ETH_HLEN + IPV6_BYTES;
	return read_transport(ip6 + 1, end, s);
}

/* Of 32 bits each, as the sum of 16-bit words with end-around carries (RFC 1071). */
static __always_inline __u32 fold32(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

static __always_inline __u16 fold16(__u64 sum)
{
	sum = fold32(sum);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* What a change of the address adds to a sum. */
static __always_inline __u32 difference(const __u32 *from, const __u32 *to)
{
	__u64 sum = 0;

#pragma unroll
	for (int i = 0; i < 4; i++)
		sum += (__u64)(__u32)~from[i] + to[i];
	return fold32(sum);
}

/* The TCP checksum, whose calculation may have been left to the card: the kernel knows. */
static __always_inline int fix_transport(struct __sk_buff *skb, struct segment *s, __u32 addresses, __u16 from, __u16 to)
{
	__u32 at = s->transport + TCP_CHECK;

	return bpf_l4_csum_replace(skb, at, 0, addresses, BPF_F_PSEUDO_HDR) ||
	       bpf_l4_csum_replace(skb, at, from, to, sizeof(from));
}

/* From the hop limit of IPv4 to the ports, which follow each other. */
struct ipv4_rest {
	__u8 hops;
	__u8 protocol;
	__u16 check;
	__u32 source;
	__u32 destination;
	__u16 sport;
	__u16 dport;
};
SIZE_IS(struct ipv4_rest, 16);
#define IPV4_REST (ETH_HLEN + 8)
/* The hop limit of IPv6, which the addresses follow. */
#define IPV6_HOPS 7

/* Gives the packet these ends and one hop less where `hop` is 1. One of the addresses and one of the ports is new. */
static __always_inline int rewrite(struct __sk_buff *skb, struct segment *s, const __u32 *source, __u16 sport,
				   const __u32 *destination, __u16 dport, int hop)
{
	__u32 addresses = fold32((__u64)difference(s->source, source) + difference(s->destination, destination));
	__u16 from = s->sport != sport ? s->sport : s->dport, to = s->sport != sport ? sport : dport;

	if (s->family == 4) {
		struct ipv4_rest rest = {
			.hops = s->hops - hop,
			.protocol = s->protocol,
			.source = source[3],
			.destination = destination[3],
			.sport = sport,
			.dport = dport,
		};
		/* The hop limit is the high byte of its word. */
		rest.check = ~fold16((__u64)(__u16)~s->check + addresses + (hop ? (__u16)~bpf_htons(0x0100) : 0));
		if (bpf_skb_store_bytes(skb, IPV4_REST, &rest, sizeof(rest), 0))
			return -1;
	} else {
		__u16 ports[2] = { sport, dport };
		__u32 both[8];
		__u8 hops = s->hops - hop;

		__builtin_memcpy(both, source, 16);
		__builtin_memcpy(both + 4, destination, 16);
		/* No checksum of the header balances these changes: the card's sum over the packet has to be corrected. */
		if (bpf_skb_store_bytes(skb, ETH_HLEN + IPV6_HOPS, &hops, sizeof(hops), BPF_F_RECOMPUTE_CSUM) ||
		    bpf_skb_store_bytes(skb, ETH_HLEN + IPV6_HOPS + 1, both, sizeof(both), BPF_F_RECOMPUTE_CSUM) ||
		    bpf_skb_store_bytes(skb, s->transport, ports, sizeof(ports), 0))
			return -1;
	}
	return fix_transport(skb, s, addresses, from, to);
}

#endif
