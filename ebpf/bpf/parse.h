/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads a frame's headers. `packet::parse` in src/packet.rs is its twin: every change here is one there, and a differential
 * test compares them.
 *
 * A packet is truncated if the frame ends too early, and split if only the buffer does that the program may read.
 */
#ifndef HEARTH_PARSE_H
#define HEARTH_PARSE_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

#ifndef TCX_NEXT
#define TCX_NEXT -1 /* since Linux 6.6 */
#endif

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

struct vlan_header {
	__be16 tci;
	__be16 next;
};

struct ipv4_header {
	__u8 version_length;
	__u8 tos;
	__be16 total;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 check;
	__be32 saddr;
	__be32 daddr;
};
SIZE_IS(struct ipv4_header, 20);

struct ipv6_header {
	__be32 version;
	__be16 payload;
	__u8 next;
	__u8 hops;
	__be32 saddr[4];
	__be32 daddr[4];
};
SIZE_IS(struct ipv6_header, 40);

struct tcp_header {
	__be16 sport;
	__be16 dport;
	__be32 seq;
	__be32 ack;
	__u8 length;
	__u8 flags;
	__be16 window;
	__u16 check;
	__be16 urgent;
};
SIZE_IS(struct tcp_header, 20);

struct udp_header {
	__be16 sport;
	__be16 dport;
	__be16 length;
	__u16 check;
};
SIZE_IS(struct udp_header, 8);

struct frame {
	void *data;
	void *end;
	__u32 total;	     /* bytes of the frame: those of the first buffer until `rest` is asked for */
	struct xdp_md *rest; /* who knows of other buffers; NULL where `total` is exact */
};

/* Bytes in all buffers. Most frames have one only, and the question costs a fifth of what reading the headers does. */
static __always_inline void ask_for_rest(struct frame *frame)
{
	if (frame->rest)
		frame->total = bpf_xdp_get_buff_len(frame->rest);
}

/* Whether an IP packet of this many bytes is longer than the frame. */
static __always_inline int exceeds(struct frame *frame, __u32 network, __u32 total)
{
	if (total > frame->total - network)
		ask_for_rest(frame);
	return total > frame->total - network;
}

/* `length`: bytes from the TCP or UDP header to the end of the IP packet. */
static __always_inline __u8 parse_transport(struct frame *frame, void *at, __u32 length, struct packet *packet)
{
	packet->transport = at - frame->data;
	if (packet->protocol == IPPROTO_TCP) {
		struct tcp_header *tcp = at;
		__u32 header;

		if (length < sizeof(struct udp_header))
			return TRUNCATED;
		if (length < sizeof(*tcp)) {
			struct udp_header *head = at;

			if (!packet->first_fragment)
				return TRUNCATED;
			/* A fragment that hides the flags in the next one serves only to get round filters (RFC 3128). */
			if ((void *)(head + 1) > frame->end)
				return SPLIT;
			packet->sport = bpf_ntohs(head->sport);
			packet->dport = bpf_ntohs(head->dport);
			packet->malformed = 1;
			return PORTS;
		}
		if ((void *)(tcp + 1) > frame->end)
			return SPLIT;
		packet->sport = bpf_ntohs(tcp->sport);
		packet->dport = bpf_ntohs(tcp->dport);
		packet->tcp_flags = tcp->flags;
		header = (tcp->length >> 4) * 4;
		/* Nothing sends no flags at all, nor SYN with FIN or RST; scanners do. */
		packet->malformed = header < sizeof(*tcp) || header > length ||
				    !(tcp->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) ||
				    ((tcp->flags & TCP_SYN) && (tcp->flags & (TCP_FIN | TCP_RST)));
		return PORTS;
	}
	if (packet->protocol == IPPROTO_UDP) {
		struct udp_header *udp = at;
		__u32 stated;

		if (length < sizeof(*udp))
			return TRUNCATED;
		if ((void *)(udp + 1) > frame->end)
			return SPLIT;
		packet->sport = bpf_ntohs(udp->sport);
		packet->dport = bpf_ntohs(udp->dport);
		stated = bpf_ntohs(udp->length);
		packet->malformed = stated < sizeof(*udp) || (stated > length && !packet->first_fragment);
		return PORTS;
	}
	return NOT_TCP_UDP;
}

static __always_inline __u8 parse_ipv4(struct frame *frame, void *at, struct packet *packet)
{
	struct ipv4_header *ip = at;
	__u32 header, total;
	__u16 fragment;

	if ((void *)(ip + 1) > frame->end)
		return SPLIT;
	header = (ip->version_length & 0x0f) * 4;
	total = bpf_ntohs(ip->total);
	if (ip->version_length >> 4 != 4 || header < sizeof(*ip) || total < header)
		return BAD_HEADER;
	if (exceeds(frame, packet->network, total))
		return TRUNCATED;
	packet->family = 4;
	packet->protocol = ip->protocol;
	packet->saddr[2] = packet->daddr[2] = bpf_htonl(0xffff);
	packet->saddr[3] = ip->saddr;
	packet->daddr[3] = ip->daddr;
	fragment = bpf_ntohs(ip->fragment);
	if (fragment & 0x1fff)
		return FRAGMENT;
	packet->first_fragment = (fragment >> 13) & 1;
	return parse_transport(frame, at + header, total - header, packet);
}

static __always_inline __u8 parse_ipv6(struct frame *frame, void *at, struct packet *packet)
{
	struct ipv6_header *ip = at;
	__u32 total, used = sizeof(*ip);
	__u8 next;

	if ((void *)(ip + 1) > frame->end)
		return SPLIT;
	if ((*(__u8 *)at) >> 4 != 6)
		return BAD_HEADER;
	/* A jumbogram states 0; it cannot carry TCP or UDP that we would accept, and comes out as truncated. */
	total = sizeof(*ip) + bpf_ntohs(ip->payload);
	if (exceeds(frame, packet->network, total))
		return TRUNCATED;
	packet->family = 6;
	__builtin_memcpy(packet->saddr, ip->saddr, sizeof(packet->saddr));
	__builtin_memcpy(packet->daddr, ip->daddr, sizeof(packet->daddr));
	next = ip->next;
	at += sizeof(*ip);

#pragma unroll
	for (int i = 0; i <= EXTENSION_HEADERS; i++) {
		__u8 *extension = at;
		__u32 size;

		switch (next) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
		case IPPROTO_AH:
		case IPPROTO_MH:
		case IPPROTO_FRAGMENT:
			break;
		default:
			packet->protocol = next;
			return parse_transport(frame, at, total - used, packet);
		}
		if (i == EXTENSION_HEADERS)
			return TOO_DEEP;
		if (used + 8 > total)
			return TRUNCATED;
		if ((void *)(extension + 8) > frame->end)
			return SPLIT;
		if (next == IPPROTO_FRAGMENT) {
			__u32 offset = extension[2] << 8 | extension[3];

			size = 8;
			if (offset & 0xfff8)
				return FRAGMENT;
			/* An offset of 0 with nothing to follow is a whole packet (RFC 6946). */
			packet->first_fragment |= offset & 1;
		} else if (next == IPPROTO_AH) {
			size = (extension[1] + 2) * 4;
		} else {
			size = (extension[1] + 1) * 8;
		}
		next = extension[0];
		used += size;
		if (used > total)
			return TRUNCATED;
		at += size;
	}
	return TOO_DEEP;
}

static __always_inline __u8 parse_layers(struct frame *frame, struct packet *packet)
{
	struct ethhdr *ethernet = frame->data;
	void *at = ethernet + 1;
	__be16 protocol;

	if (at > frame->end)
		return SPLIT;
	protocol = ethernet->h_proto;
#pragma unroll
	for (int i = 0; i < VLAN_TAGS; i++) {
		struct vlan_header *tag = at;

		if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 1) > frame->end)
			return SPLIT;
		protocol = tag->next;
		at = tag + 1;
		packet->tags++;
	}
	packet->network = at - frame->data;
	if (protocol == bpf_htons(ETH_P_IP))
		return parse_ipv4(frame, at, packet);
	if (protocol == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(frame, at, packet);
	return NOT_IP;
}

static __always_inline void parse(struct frame *frame, struct packet *packet)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->outcome = parse_layers(frame, packet);
	if (packet->outcome == PORTS)
		return;
	ask_for_rest(frame);
	/* The readers of headers see only that one is not all there; with one buffer, it is nowhere. */
	if (packet->outcome == SPLIT && frame->end - frame->data >= frame->total)
		packet->outcome = TRUNCATED;
}

#endif
