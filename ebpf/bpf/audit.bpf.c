// SPDX-License-Identifier: Apache-2.0
/*
 * Counts what the processes on a request's path do, for measurements: context switches, system calls, bytes that cross between
 * user space and the kernel, passes through TCP, interrupts, and calls of functions in user space.
 *
 * Raw tracepoints and uprobes only: they are there where the kernel is locked down, which kprobes are not.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Whose a count is: nobody's on the path, or one of those that user space has named. src/audit/counts.rs mirrors it. */
#define PARTS 3

enum kind {
	SWITCHES,
	SYSTEM_CALLS,
	/* Payloads that system calls have taken from user space, and put there. */
	PAYLOADS_IN,
	PAYLOADS_OUT,
	/* System calls in which TCP has sent, and received. */
	TCP_SENT,
	TCP_RECEIVED,
	/* Packets that the IP stack takes in. On loopback this happens while the sender sends. */
	PACKETS,
	/* Network softirqs, interrupts between processors, interrupts of devices. */
	SOFTIRQS,
	BETWEEN_CPUS,
	DEVICES,
	/* Payloads that user space copies, as far as a function of its own does it. */
	PAYLOADS_COPIED,
	/* Calls of the functions that user space has named. */
	HEADS_PARSED,
	HEADS_WRITTEN,
	JSON_PARSED,
	JSON_WRITTEN,
	JSON_AT_ALL,
	KINDS
};

/* What a system call moves, and what TCP has done in it. */
#define TAKES 1
#define GIVES 2
#define SENT 4
#define RECEIVED 8

#define NET_TX 2
#define NET_RX 3

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PARTS * KINDS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* Processes on the path: by process id, which part they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} parts SEC(".maps");

/* How many bytes make a payload: at least the first, and fewer than the second. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} payload SEC(".maps");

/* System calls that move bytes, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} moves SEC(".maps");

/* That of the one that a thread is in. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
} within SEC(".maps");

static __always_inline __u32 part(void)
{
	__u32 process = bpf_get_current_pid_tgid() >> 32;
	__u32 *part = bpf_map_lookup_elem(&parts, &process);

	return part ? *part : 0;
}

static __always_inline int add(__u32 part, __u32 kind, __u64 by)
{
	__u32 key = part * KINDS + kind;
	__u64 *count;

	if (part >= PARTS || kind >= KINDS)
		return 0;
	count = bpf_map_lookup_elem(&counts, &key);
	/* An interrupt may count on the same processor in between. */
	if (count)
		__sync_fetch_and_add(count, by);
	return 0;
}

static __always_inline int is_payload(__u64 bytes)
{
	__u32 first = 0, second = 1;
	__u64 *least = bpf_map_lookup_elem(&payload, &first);
	__u64 *most = bpf_map_lookup_elem(&payload, &second);

	return least && most && bytes >= *least && bytes < *most;
}

/* It comes before the switch: the current process is the one that gives up the processor. */
SEC("raw_tp/sched_switch")
int sched_switch(void *ctx __attribute__((unused)))
{
	return add(part(), SWITCHES, 1);
}

SEC("raw_tp/sys_enter")
int sys_enter(__u64 *ctx)
{
	__u32 number = ctx[1], thread = bpf_get_current_pid_tgid();
	__u32 *move, of = part();

	if (!of)
		return 0;
	add(of, SYSTEM_CALLS, 1);
	move = bpf_map_lookup_elem(&moves, &number);
	if (move)
		bpf_map_update_elem(&within, &thread, move, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit")
int sys_exit(__u64 *ctx)
{
	long result = ctx[1];
	__u32 thread = bpf_get_current_pid_tgid();
	__u32 *move = bpf_map_lookup_elem(&within, &thread), of = part();

	if (!move)
		return 0;
	if (result > 0 && is_payload(result))
		add(of, *move & TAKES ? PAYLOADS_IN : PAYLOADS_OUT, 1);
	if (*move & SENT)
		add(of, TCP_SENT, 1);
	if (*move & RECEIVED)
		add(of, TCP_RECEIVED, 1);
	bpf_map_delete_elem(&within, &thread);
	return 0;
}

static __always_inline int passed(__u32 what)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u32 *move = bpf_map_lookup_elem(&within, &thread);

	/* In softirqs, TCP works for others. */
	if (move)
		*move |= what;
	return 0;
}

/* Once for each segment that it fills. */
SEC("raw_tp/tcp_sendmsg_locked")
int tcp_sendmsg_locked(void *ctx __attribute__((unused)))
{
	return passed(SENT);
}

/* Each time it has taken something out of a socket for a process. */
SEC("raw_tp/tcp_rcv_space_adjust")
int tcp_rcv_space_adjust(void *ctx __attribute__((unused)))
{
	return passed(RECEIVED);
}

SEC("raw_tp/netif_receive_skb")
int netif_receive_skb(void *ctx __attribute__((unused)))
{
	return add(part(), PACKETS, 1);
}

SEC("raw_tp/softirq_entry")
int softirq_entry(__u64 *ctx)
{
	__u32 vector = ctx[0];

	if (vector != NET_TX && vector != NET_RX)
		return 0;
	return add(part(), SOFTIRQS, 1);
}

SEC("raw_tp/reschedule_entry")
int reschedule_entry(void *ctx __attribute__((unused)))
{
	return add(part(), BETWEEN_CPUS, 1);
}

SEC("raw_tp/call_function_entry")
int call_function_entry(void *ctx __attribute__((unused)))
{
	return add(part(), BETWEEN_CPUS, 1);
}

SEC("raw_tp/call_function_single_entry")
int call_function_single_entry(void *ctx __attribute__((unused)))
{
	return add(part(), BETWEEN_CPUS, 1);
}

SEC("raw_tp/irq_handler_entry")
int irq_handler_entry(void *ctx __attribute__((unused)))
{
	return add(part(), DEVICES, 1);
}

/* memcpy and memmove: destination, source, length. */
SEC("uprobe")
int copied(struct pt_regs *ctx)
{
	return is_payload(PT_REGS_PARM3(ctx)) ? add(part(), PAYLOADS_COPIED, 1) : 0;
}

/* A function that user space has named; the cookie says of which kind. */
SEC("uprobe")
int called(struct pt_regs *ctx)
{
	return add(part(), bpf_get_attach_cookie(ctx), 1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
