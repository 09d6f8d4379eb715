// SPDX-License-Identifier: Apache-2.0
/*
 * Meets packets for functions: counts, denies and limits them (XDP), hands datagrams to AF_XDP, counts what functions send
 * (TC egress), and steers connections to one listening socket (SK_LOOKUP). server/docs/ingress.md describes the way of a
 * packet and every map.
 */
#include "ingress_maps.h"
#include "limits.h"
#include "sources.h"

#define AF_INET 2

static const __u32 zero = 0;

/* The verdict of the lists, 0 for none. An expired prefix gives way to the next shorter one. */
static __always_inline __u32 verdict_on(const struct packet *packet, const struct settings *settings)
{
	struct prefix6 key6;
	struct prefix4 key4;
	struct listed *found;
	__u64 now = 0;

	if (!(settings->flags & (packet->family == 4 ? SETTINGS_LISTED4 : SETTINGS_LISTED6)))
		return 0;
	key4.length = 32;
	key4.address = packet->saddr[3];
	key6.length = 128;
	__builtin_memcpy(key6.address, packet->saddr, sizeof(key6.address));
#pragma unroll
	for (int i = 0; i < EXPIRED_PREFIXES; i++) {
		if (packet->family == 4)
			found = bpf_map_lookup_elem(&listed4, &key4);
		else
			found = bpf_map_lookup_elem(&listed6, &key6);
		if (!found)
			return 0;
		if (!found->expires)
			return found->verdict;
		if (!now)
			now = bpf_ktime_get_ns();
		if (now < found->expires)
			return found->verdict;
		if (!found->length)
			return 0;
		key4.length = key6.length = found->length - 1;
	}
	return 0;
}

/* The reason for dropping what starts work, or DROPS. */
static __always_inline __u32 limit(const struct packet *packet, __u32 index, const struct function *function,
				   const struct settings *settings, struct node *counters)
{
	__u64 now, *total;

	if (!function->source_interval && !function->total_interval && !(function->flags & FUNCTION_TRACKS_SOURCES))
		return DROPS;
	now = bpf_jiffies64() * settings->tick;
	if (function->source_interval || (function->flags & FUNCTION_TRACKS_SOURCES)) {
		struct source *source = source_of(packet, index, settings);

		if (!source) {
			counters->untracked++;
		} else if (!function->source_interval) {
			/* Without a limit it counts for how long a source is silent. */
			source->next = now;
			__sync_fetch_and_add(&source->admitted, 1);
		} else if (take(&source->next, now, function->source_interval, function->source_slack)) {
			__sync_fetch_and_add(&source->admitted, 1);
		} else {
			__sync_fetch_and_add(&source->refused, 1);
			source->refused_at = bpf_ktime_get_coarse_ns();
			return DROP_SOURCE_LIMIT;
		}
	}
	if (function->total_interval) {
		total = bpf_map_lookup_elem(&totals, &index);
		if (total && !take(total, now, function->total_interval, function->total_slack))
			return DROP_TOTAL_LIMIT;
	}
	return DROPS;
}

/* Hands a datagram to the AF_XDP socket of its queue, with a time stamp in front. XDP_PASS if there is none. */
static __always_inline int redirect(struct xdp_md *ctx, __u32 function, __u32 total, const struct settings *settings)
{
	struct queue queue = { .interface = ctx->ingress_ifindex, .number = ctx->rx_queue_index };
	struct stamp *stamp;
	__u32 *socket;

	if (total > settings->largest_redirect)
		return XDP_PASS;
	socket = bpf_map_lookup_elem(&queues, &queue);
	if (!socket || !bpf_map_lookup_elem(&sockets, socket))
		return XDP_PASS;
	/* Not every driver has room in front of the frame. User space sees by the magic number whether there is a stamp. */
	if (!bpf_xdp_adjust_meta(ctx, -(int)sizeof(*stamp))) {
		stamp = (void *)(long)ctx->data_meta;
		if ((void *)(stamp + 1) > (void *)(long)ctx->data)
			return XDP_PASS;
		stamp->time = bpf_ktime_get_ns();
		stamp->function = function;
		stamp->magic = STAMP_MAGIC;
	}
	return bpf_redirect_map(&sockets, *socket, XDP_PASS);
}

SEC("xdp.frags")
int ingress(struct xdp_md *ctx)
{
	struct frame frame = {
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.total = ctx->data_end - ctx->data,
		.rest = ctx,
	};
	struct function *function;
	struct settings *config;
	struct traffic *seen;
	struct packet packet;
	struct node *counters;
	struct port *port;
	__u32 index, at, verdict, reason;
	int starts;

	counters = bpf_map_lookup_elem(&node, &zero);
	config = bpf_map_lookup_elem(&settings, &zero);
	if (!counters || !config)
		return XDP_PASS;
	parse(&frame, &packet);
	counters->bytes += frame.total;
	counters->outcomes[packet.outcome & (OUTCOMES - 1)]++;
	if (packet.outcome != PORTS)
		return XDP_PASS;

	index = PORT_INDEX(packet.protocol, packet.dport);
	port = bpf_map_lookup_elem(&ports, &index);
	if (!port || !port->function)
		goto not_ours;
	at = port->function;
	if ((config->flags & SETTINGS_CHECK_ADDRESS) && !bpf_map_lookup_elem(&addresses, packet.daddr))
		goto not_ours;
	function = bpf_map_lookup_elem(&functions, &at);
	index = 2 * at + DIRECTION_IN;
	seen = bpf_map_lookup_elem(&traffic, &index);
	if (!function || !seen)
		goto not_ours;
	counters->ours++;
	seen->packets++;
	seen->bytes += frame.total;

	if (packet.malformed) {
		reason = DROP_MALFORMED;
		goto drop;
	}
	verdict = verdict_on(&packet, config);
	if (verdict == LISTED_DENY) {
		reason = DROP_DENIED;
		goto drop;
	}
	starts = packet.protocol == IPPROTO_UDP || (packet.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	if (starts && verdict != LISTED_ALLOW) {
		reason = limit(&packet, at, function, config, counters);
		if (reason < DROPS)
			goto drop;
	}
	seen->starts += starts;
	/* Only the stack puts fragments together. */
	if (packet.protocol == IPPROTO_UDP && (port->flags & PORT_REDIRECT) && !packet.first_fragment) {
		int action = redirect(ctx, at, frame.total, config);

		if (action == XDP_REDIRECT)
			seen->redirected++;
		else
			counters->no_socket++;
		return action;
	}
	return XDP_PASS;

drop:
	seen->drops[reason & (DROPS - 1)]++;
	return XDP_DROP;

not_ours:
	return XDP_PASS;
}

/* What leaves from a function's port. It never changes the fate of a packet. */
SEC("classifier")
int egress(struct __sk_buff *skb)
{
	struct frame frame = {
		.data = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.total = skb->len,
	};
	struct settings *config;
	struct traffic *seen;
	struct packet packet;
	struct port *port;
	__u32 index;

	config = bpf_map_lookup_elem(&settings, &zero);
	if (!config)
		return TCX_NEXT;
	parse(&frame, &packet);
	if (packet.outcome != PORTS)
		return TCX_NEXT;
	index = PORT_INDEX(packet.protocol, packet.sport);
	port = bpf_map_lookup_elem(&ports, &index);
	if (!port || !port->function)
		return TCX_NEXT;
	if ((config->flags & SETTINGS_CHECK_ADDRESS) && !bpf_map_lookup_elem(&addresses, packet.saddr))
		return TCX_NEXT;
	index = 2 * port->function + DIRECTION_OUT;
	seen = bpf_map_lookup_elem(&traffic, &index);
	if (!seen)
		return TCX_NEXT;
	seen->packets++;
	seen->bytes += frame.total;
	return TCX_NEXT;
}

/* Whether connections to the address that this one is to are steered. */
static __always_inline int is_steered(const struct bpf_sk_lookup *ctx, const struct settings *config)
{
	int is_ipv4 = ctx->family == AF_INET;

	if ((config->flags & SETTINGS_STEER_IPV4) && !is_ipv4)
		return 0;
	if (!(config->flags & SETTINGS_STEER_ADDRESS))
		return 1;
	if (is_ipv4)
		return config->steer[2] == bpf_htonl(0xffff) && config->steer[3] == ctx->local_ip4;
	return config->steer[0] == ctx->local_ip6[0] && config->steer[1] == ctx->local_ip6[1] &&
	       config->steer[2] == ctx->local_ip6[2] && config->steer[3] == ctx->local_ip6[3];
}

/* Gives a connection to a function's port to the listening socket of its family. */
SEC("sk_lookup")
int steer(struct bpf_sk_lookup *ctx)
{
	__u32 index = PORT_INDEX(IPPROTO_TCP, ctx->local_port & 0xffff);
	struct bpf_sock *listener;
	struct settings *config;
	struct port *port;

	if (ctx->protocol != IPPROTO_TCP)
		return SK_PASS;
	port = bpf_map_lookup_elem(&ports, &index);
	if (!port || !port->function || !(port->flags & PORT_STEER))
		return SK_PASS;
	config = bpf_map_lookup_elem(&settings, &zero);
	if (!config || !is_steered(ctx, config))
		return SK_PASS;
	index = ctx->family == AF_INET ? LISTENER_IPV4 : LISTENER_IPV6;
	listener = bpf_map_lookup_elem(&listeners, &index);
	if (!listener)
		return SK_PASS;
	/* A program that was attached before may have chosen already: its choice stands. */
	bpf_sk_assign(ctx, listener, 0);
	bpf_sk_release(listener);
	return SK_PASS;
}

char LICENSE[] SEC("license") = "Apache-2.0";
