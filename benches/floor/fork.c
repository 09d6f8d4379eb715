/* The floor of a start by fork: a plain fork() of the process that loads this library, to the child's first word.
 *
 * It runs when it is loaded (dlopen), as many times as FORKS says, and prints the nanoseconds of each on a line.
 * Every mapping is made one that forks copy, as Hearth does to a Node.js template, whose heap would else stay behind. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void copy_all_mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    if (!maps) return;
    while (fscanf(maps, "%lx-%lx%*[^\n]", &from, &to) == 2)
        madvise((void *)from, to - from, MADV_DOFORK); /* refused for the kernel's own */
    fclose(maps);
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((constructor)) static void measure(void) {
    const char *forks = getenv("FORKS");
    int count = forks ? atoi(forks) : 0;
    int ends[2];
    char word;
    copy_all_mappings();
    if (pipe(ends) != 0) return;
    for (int i = 0; i < count; i++) {
        long long begun = now();
        pid_t child = fork();
        if (child == 0) {
            if (write(ends[1], "R", 1) != 1) _exit(1);
            _exit(0);
        }
        if (child < 0 || read(ends[0], &word, 1) != 1) return;
        printf("%lld\n", now() - begun);
        waitpid(child, 0, 0);
    }
    fflush(stdout);
}
