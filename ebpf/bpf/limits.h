/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Token buckets, as GCRA: a bucket is the one number "when it would be full again", so that taking a token is one CAS. The
 * time is the number of ticks, which a program reads without a call: `slack` is a tick at least (src/limits.rs).
 */
#ifndef HEARTH_LIMITS_H
#define HEARTH_LIMITS_H

#include "parse.h"

/* Another CPU changed the bucket that often between reading and writing it: admit, since the limit is no longer exact. */
#define ATTEMPTS 4

static __always_inline int take(__u64 *next, __u64 now, __u64 interval, __u64 slack)
{
#pragma unroll
	for (int i = 0; i < ATTEMPTS; i++) {
		__u64 seen = *(volatile __u64 *)next;
		__u64 start = seen > now ? seen : now;

		if (start - now > slack)
			return 0;
		if (__sync_val_compare_and_swap(next, seen, start + interval) == seen)
			return 1;
	}
	return 1;
}

#endif
