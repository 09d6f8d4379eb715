// SPDX-License-Identifier: Apache-2.0
/* Does nothing: what a test run costs by itself, beside which the others are measured. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp.frags")
int nothing(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Apache-2.0";
