/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The maps of the ingress. shared.h has their records; src/maps hands them out. */
#ifndef HEARTH_INGRESS_MAPS_H
#define HEARTH_INGRESS_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

/* Sizes of maps that the loader overrides are defaults here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PORTS_OF_A_PROTOCOL);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct function);
} functions SEC(".maps");

/* When the function's own bucket is full again: apart from `functions`, which user space overwrites. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2048);
	__type(key, __u32);
	__type(value, struct traffic);
} traffic SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct node);
} node SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct set);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix4);
	__type(value, struct listed);
} listed4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix6);
	__type(value, struct listed);
} listed6 SEC(".maps");

/* The host's own addresses, IPv4 as ::ffff:a.b.c.d. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(key_size, 16);
	__uint(value_size, 4);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

/* A socket takes frames of its own queue only, and queues of different interfaces have the same numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SOCKETS);
	__type(key, struct queue);
	__type(value, __u32);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, SOCKETS);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, LISTENERS);
	__type(key, __u32);
	__type(value, __u32);
} listeners SEC(".maps");

#endif
