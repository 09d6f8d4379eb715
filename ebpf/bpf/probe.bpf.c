// SPDX-License-Identifier: Apache-2.0
/* For tests only: writes what the parser found into a map, so that it can be compared with its twin in Rust. */
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet);
} parsed SEC(".maps");

static const __u32 zero = 0;

SEC("xdp.frags")
int probe(struct xdp_md *ctx)
{
	struct frame frame = {
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.total = ctx->data_end - ctx->data,
		.rest = ctx,
	};
	struct packet *found = bpf_map_lookup_elem(&parsed, &zero);
	struct packet packet;

	if (!found)
		return XDP_ABORTED;
	parse(&frame, &packet);
	*found = packet;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Apache-2.0";
