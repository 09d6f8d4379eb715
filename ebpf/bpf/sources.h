/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sources' buckets: a table of sets of WAYS sources in an array, which costs a packet no call where the kernel's own
 * hash maps cost several. If a set is full, the source whose bucket is full again first makes room. So a flood of other
 * sources never drives out one that is at its limit, other than in an LRU map.
 */
#ifndef HEARTH_SOURCES_H
#define HEARTH_SOURCES_H

#include "ingress_maps.h"

/*
 * A bijection without structure (the last step of MurmurHash3). Of neighbours, which come in arithmetic progression, the sums below
 * are in arithmetic progression too: with one in a hundred keys, a /24 would share a few sets.
 */
static __always_inline __u32 scatter(__u32 word)
{
	word ^= word >> 16;
	word *= 0x85ebca6b;
	word ^= word >> 13;
	word *= 0xc2b2ae35;
	return word ^ word >> 16;
}

/*
 * Strongly universal (Thorup, "High Speed Hashing for Integers and Strings", 3.4): whatever two sources are, they share a set by
 * chance only, as long as the keys are secret. Who wants to lose a bucket cannot choose addresses for it.
 */
static __always_inline __u32 set_of(const __u64 *prefix, __u32 function, const struct settings *settings)
{
	__u64 hash = (settings->hash[0] + (__u32)prefix[0]) * (settings->hash[1] + (prefix[0] >> 32));

	hash += (settings->hash[2] + (__u32)prefix[1]) * (settings->hash[3] + (prefix[1] >> 32));
	hash += settings->hash[4] * function;
	return scatter(hash >> 32) & settings->last_set;
}

static __always_inline struct source *find(struct set *set, const __u64 *prefix, __u32 function)
{
#pragma unroll
	for (int i = 0; i < WAYS; i++) {
		struct source *way = &set->ways[i];

		if (way->prefix[1] == prefix[1] && way->function == function && way->prefix[0] == prefix[0])
			return way;
	}
	return 0;
}

/* Gives a source a way of its set. 0 if somebody else is just changing the set. */
static __always_inline struct source *admit(struct set *set, const __u64 *prefix, __u32 function)
{
	struct source *way;
	__u64 least = ~0ULL;
	__u32 at = 0;

	if (__sync_val_compare_and_swap(&set->ways[0].changing, 0, 1))
		return 0;
	/* Another CPU may have admitted it since. */
	way = find(set, prefix, function);
	if (!way) {
#pragma unroll
		for (int i = 0; i < WAYS; i++) {
			struct source *other = &set->ways[i];
			__u64 next = other->function ? other->next : 0;

			if (next < least) {
				least = next;
				at = i;
			}
		}
		way = &set->ways[at & (WAYS - 1)];
		/* Nobody may take what is half of one source and half of the other for either. */
		__sync_lock_test_and_set(&way->function, 0);
		way->prefix[0] = prefix[0];
		way->prefix[1] = prefix[1];
		way->next = 0;
		way->admitted = 0;
		way->refused = 0;
		way->refused_at = 0;
		__sync_lock_test_and_set(&way->function, function);
	}
	__sync_lock_test_and_set(&set->ways[0].changing, 0);
	return way;
}

/* What is known of a packet's source at a function, made if need be. 0 in a race that another CPU has won. */
static __always_inline struct source *source_of(const struct packet *packet, __u32 function,
						const struct settings *settings)
{
	const __u64 *mask = packet->family == 4 ? settings->mask4 : settings->mask6;
	struct source *source;
	__u64 prefix[2];
	struct set *set;
	__u32 index;

	prefix[0] = ((__u64)packet->saddr[1] << 32 | packet->saddr[0]) & mask[0];
	prefix[1] = ((__u64)packet->saddr[3] << 32 | packet->saddr[2]) & mask[1];
	index = set_of(prefix, function, settings);
	set = bpf_map_lookup_elem(&sources, &index);
	if (!set)
		return 0;
	source = find(set, prefix, function);
	return source ? source : admit(set, prefix, function);
}

#endif
