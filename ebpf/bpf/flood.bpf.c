// SPDX-License-Identifier: Apache-2.0
/*
 * A generator for measurements: sends the frame it is run on out of an interface, each from another of 256 sources. Run with
 * BPF_F_TEST_XDP_LIVE_FRAMES, it makes millions of packets a second without a socket buffer. It keeps to a rate by itself: to
 * begin a run takes the kernel tens of milliseconds, so that many short ones would be a few bursts.
 *
 * The frame is Ethernet and plain IPv4. The source's lower half and the IP identification change by opposite amounts, so
 * that the header's checksum stays right.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 interface = 0;

/* Later than this, a frame is too late to be made up for: the receiver's ring would take none of a burst. */
#define LATE 50000

/* How long a frame waits for its time at most. One that still is not due is not sent: the next one waits on. */
#define WAIT 125
/* Looks at the clock meanwhile, at most. */
#define LOOKS 32

/* Times are CLOCK_MONOTONIC in ns. */
struct pace {
	__u64 interval;	   /* between two frames; 0: as many as there can be */
	__u64 next;	   /* when one is due */
	__u64 end;	   /* none is sent from here on */
	__u64 sent;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pace);
} paces SEC(".maps");

SEC("xdp")
int flood(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u16 *ip = data + sizeof(struct ethhdr);
	__u64 begun, now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct pace *pace = bpf_map_lookup_elem(&paces, &zero);
	__u16 source;

	if (!pace || now >= pace->end || (void *)(ip + 10) > end)
		return XDP_DROP;
	begun = now;
	for (int i = 0; i < LOOKS && now < pace->next && now - begun < WAIT; i++)
		now = bpf_ktime_get_ns();
	if (now < pace->next)
		return XDP_DROP;
	pace->next += pace->interval;
	if (pace->next + LATE < now)
		pace->next = now;
	pace->sent++;
	source = bpf_get_prandom_u32() & 0xff;
	/* Words of the header: 2 is the identification, 7 the lower half of the source. */
	ip[2] = bpf_htons(~source);
	ip[7] = bpf_htons(source);
	return bpf_redirect(interface, 0);
}

char LICENSE[] SEC("license") = "Apache-2.0";
