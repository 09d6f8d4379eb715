/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The maps of the gateway's programs. User space chooses the sizes of the hashes. */
#ifndef HEARTH_GATEWAY_MAPS_H
#define HEARTH_GATEWAY_MAPS_H

#include "limits.h"
#include "gateway.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct network);
} network SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct sandbox);
} sandboxes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct usage);
} usage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct prefix);
	__type(value, struct allowed);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct resolved);
	__type(value, __u64);
} resolved SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32[4]);
	__type(value, struct route);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct back_key);
	__type(value, struct back);
} back SEC(".maps");

/* Interfaces of the host at which `from_world` is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} uplinks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct sums);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ways);
} ways SEC(".maps");

static const __u32 first_entry = 0;

static __always_inline void count_way(enum way way)
{
	struct ways *counters = bpf_map_lookup_elem(&ways, &first_entry);

	if (counters)
		counters->packets[way]++;
}

static __always_inline void count_packet(__u32 slot, __u32 direction, __u32 bytes)
{
	struct sums *counters = bpf_map_lookup_elem(&sums, &slot);

	if (counters) {
		counters->packets[direction & 1]++;
		counters->bytes[direction & 1] += bytes;
	}
}

static __always_inline struct network *the_network(void)
{
	return bpf_map_lookup_elem(&network, &first_entry);
}

/* The network, if the fast way is open. */
static __always_inline struct network *open_network(void)
{
	struct network *known = the_network();

	return known && (known->flags & NETWORK_OPEN) ? known : NULL;
}

#endif
