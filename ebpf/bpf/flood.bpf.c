// SPDX-License-Identifier: Apache-2.0
/*
 * A generator for measurements: sends the frame it is run on out of an interface, each from another of 256 sources. Run with
 * BPF_F_TEST_XDP_LIVE_FRAMES, it makes millions of packets a second without a socket buffer.
 *
 * The frame is Ethernet and plain IPv4. The source's lower half and the IP identification change by opposite amounts, so
 * that the header's checksum stays right.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 interface = 0;

SEC("xdp")
int flood(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u16 *ip = data + sizeof(struct ethhdr);
	__u16 source = bpf_get_prandom_u32() & 0xff;

	if ((void *)(ip + 10) > end)
		return XDP_DROP;
	/* Words of the header: 2 is the identification, 7 the lower half of the source. */
	ip[2] = bpf_htons(~source);
	ip[7] = bpf_htons(source);
	return bpf_redirect(interface, 0);
}

char LICENSE[] SEC("license") = "Apache-2.0";
