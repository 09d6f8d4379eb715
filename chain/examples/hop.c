/* The floor of a hop: two processes hand a number to and fro over shared memory, with futexes or spinning; or 16 bytes over
 * sockets that the kernel redirects to each other (SK_MSG), by programs that do nothing else.
 *
 *   hop sleep|spin|redirect SAMPLES BATCH    prints the nanoseconds of each sample of BATCH round trips on a line */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct line { _Atomic uint32_t word; char rest[124]; };

static int sleeping;

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void send_to(struct line *line, uint32_t value) {
    atomic_store_explicit(&line->word, value, memory_order_release);
    if (sleeping) syscall(SYS_futex, &line->word, FUTEX_WAKE, 1, 0, 0, 0);
}

static void wait_for(struct line *line, uint32_t value) {
    uint32_t seen;
    while ((seen = atomic_load_explicit(&line->word, memory_order_acquire)) != value) {
        if (sleeping) syscall(SYS_futex, &line->word, FUTEX_WAIT, seen, 0, 0, 0);
        else pause_cpu();
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The parent has the first CPU, the child the last. */
static void keep_to(int is_last) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) exit(1);
    int chosen = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (is_last || chosen < 0)) chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(1);
}

static int bpf(int command, union bpf_attr *attributes) {
    int result = syscall(SYS_bpf, command, attributes, sizeof *attributes);
    if (result < 0) { perror("bpf"); exit(1); }
    return result;
}

/* A map of one socket. */
static int socket_map(void) {
    union bpf_attr make = {.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
    return bpf(BPF_MAP_CREATE, &make);
}

/* Redirects what the socket in `from` sends to the one in `to`. */
static void redirect(int from, int to) {
    struct bpf_insn program[] = {
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 2, .src_reg = BPF_PSEUDO_MAP_FD, .imm = to}, {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = BPF_F_INGRESS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_msg_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SK_MSG, .insn_cnt = sizeof program / sizeof *program};
    load.insns = (uintptr_t)program;
    load.license = (uintptr_t)"MIT";
    union bpf_attr attach = {.attach_type = BPF_SK_MSG_VERDICT};
    attach.target_fd = from;
    attach.attach_bpf_fd = bpf(BPF_PROG_LOAD, &load);
    bpf(BPF_PROG_ATTACH, &attach);
}

/* A connected socket, the only one of its map; its other end stays open and unused. */
static int connected(int map) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0);
    uint32_t key = 0, value = near;
    union bpf_attr put = {.map_fd = map};
    put.key = (uintptr_t)&key;
    put.value = (uintptr_t)&value;
    if (bind(listener, (void *)&address, length) || listen(listener, 1)) exit(1);
    if (getsockname(listener, (void *)&address, &length) || connect(near, (void *)&address, length)) exit(1);
    if (accept(listener, 0, 0) < 0) exit(1);
    bpf(BPF_MAP_UPDATE_ELEM, &put);
    return near;
}

static void round_trip(int socket, int is_first) {
    char record[16] = {0};
    if (is_first && send(socket, record, 16, 0) != 16) exit(1);
    if (recv(socket, record, 16, MSG_WAITALL) != 16) exit(1);
    if (!is_first && send(socket, record, 16, 0) != 16) exit(1);
}

static int redirected(uint32_t samples, uint32_t batch) {
    int maps[2] = {socket_map(), socket_map()};
    redirect(maps[0], maps[1]);
    redirect(maps[1], maps[0]);
    int sockets[2] = {connected(maps[0]), connected(maps[1])};
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        keep_to(1);
        for (uint32_t turn = 0; turn < samples * batch; turn++) round_trip(sockets[1], 0);
        _exit(0);
    }
    keep_to(0);
    for (uint32_t sample = 0; sample < samples; sample++) {
        long long begun = now();
        for (uint32_t step = 0; step < batch; step++) round_trip(sockets[0], 1);
        printf("%lld\n", now() - begun);
    }
    waitpid(child, 0, 0);
    return 0;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    if (strcmp(arguments[1], "redirect") == 0) return redirected(atoi(arguments[2]), atoi(arguments[3]));
    sleeping = strcmp(arguments[1], "sleep") == 0;
    uint32_t samples = atoi(arguments[2]), batch = atoi(arguments[3]), total = samples * batch;
    struct line *lines = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        keep_to(1);
        for (uint32_t turn = 1; turn <= total; turn++) {
            wait_for(&lines[0], turn);
            send_to(&lines[1], turn);
        }
        _exit(0);
    }
    uint32_t turn = 0;
    keep_to(0);
    for (uint32_t sample = 0; sample < samples; sample++) {
        long long begun = now();
        for (uint32_t step = 0; step < batch; step++) {
            send_to(&lines[0], ++turn);
            wait_for(&lines[1], turn);
        }
        printf("%lld\n", now() - begun);
    }
    waitpid(child, 0, 0);
    return 0;
}
