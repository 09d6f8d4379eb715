/* The floor of a hop: two processes hand a number to and fro over shared memory, with futexes or spinning.
 *
 *   hop sleep|spin SAMPLES BATCH    prints the nanoseconds of each sample of BATCH round trips on a line */
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

int main(int count, char **arguments) {
    if (count != 4) return 2;
    sleeping = strcmp(arguments[1], "sleep") == 0;
    uint32_t samples = atoi(arguments[2]), batch = atoi(arguments[3]), total = samples * batch;
    struct line *lines = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint32_t turn = 1; turn <= total; turn++) {
            wait_for(&lines[0], turn);
            send_to(&lines[1], turn);
        }
        _exit(0);
    }
    uint32_t turn = 0;
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
