/*
 * pitwall-launch FD CPU CMD…: runs a command, waits for the command, and writes the resources that the command used to
 * descriptor FD as one line of `key=value` pairs.
 *
 * The launcher is a program of its own because a process inherits the peak memory of the process that forked it (the
 * kernel keeps the larger of both at exec). A command started by a Ruby of 40 MB would never show less than 40 MB. A
 * second reason is precision: only two system calls lie between the readings of the clock and the command.
 *
 * CPU: the core to run on, or -1 for any core. The command stays in the launcher's process group. So the process that
 * started the launcher can end both.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126, USAGE = 64 };

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long long
ns(struct timeval t)
{
    return (long long)t.tv_sec * 1000000000 + (long long)t.tv_usec * 1000;
}

static void
run_on(int cpu)
{
#ifdef __linux__
    cpu_set_t set;

    if (cpu < 0) return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set); /* if this is refused, the command runs on any core that it may use */
#else
    (void)cpu;
#endif
}

/* Makes this process die with its parent. Otherwise the measurement would continue after the process that asked for
 * it was killed. */
static void
die_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(USAGE);
#else
    (void)parent;
#endif
}

/* Opens a counter of the command. The counter starts at the command's exec and includes all processes that the
 * command forks. -1: the machine has no such counter, or refuses it. */
static int
open_counter(uint32_t type, uint64_t config, pid_t pid)
{
#ifdef __linux__
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = type;
    attr.config = config;
    attr.disabled = 1;
    attr.enable_on_exec = 1;
    attr.inherit = 1;
    attr.exclude_kernel = type == PERF_TYPE_HARDWARE;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
#else
    (void)type, (void)config, (void)pid;
    return -1;
#endif
}

static void
write_counter(FILE *out, const char *name, int fd)
{
    uint64_t value;

    if (fd >= 0 && read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) && value > 0) {
        fprintf(out, " %s=%llu", name, (unsigned long long)value);
    }
}

/* Runs in the child. Waits until the counters are open, then executes the command. If exec fails, writes the errno
 * to the pipe. */
static void
become(char **command, int go, int failed)
{
    char byte;
    ssize_t got;
    int error;

    do got = read(go, &byte, 1);
    while (got < 0 && errno == EINTR);
    execvp(command[0], command);
    error = errno;
    (void)!write(failed, &error, sizeof(error));
    _exit(error == ENOENT || error == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE);
}

int
main(int argc, char **argv)
{
    int go[2], failed[2], report, status, error = 0, instructions = -1, task_clock = -1;
    int64_t began, ended;
    struct rusage used;
    pid_t pid, self = getpid();
    FILE *out;

    if (argc < 4) return USAGE;
    report = atoi(argv[1]);
    fcntl(report, F_SETFD, FD_CLOEXEC);
    out = fdopen(report, "w");
    if (!out || pipe(go) || pipe(failed)) return USAGE;
    for (int i = 0; i < 2; i++) {
        fcntl(go[i], F_SETFD, FD_CLOEXEC);
        fcntl(failed[i], F_SETFD, FD_CLOEXEC);
    }

#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    run_on(atoi(argv[2]));
    pid = fork();
    if (pid < 0) return USAGE;
    if (pid == 0) {
        die_with(self);
        close(go[1]);
        close(failed[0]);
        become(argv + 3, go[0], failed[1]);
    }
    close(go[0]);
    close(failed[1]);
    /* SIGTERM is sent to the whole group. The command may need time to end, and the launcher waits for the command. */
    signal(SIGTERM, SIG_IGN);
#ifdef __linux__
    instructions = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, pid);
    task_clock = open_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, pid);
#endif
    began = now_ns();
    (void)!write(go[1], "", 1);
    while (wait4(pid, &status, 0, &used) < 0) {
        if (errno != EINTR) return USAGE;
    }
    ended = now_ns();

    if (read(failed[0], &error, sizeof(error)) != (ssize_t)sizeof(error)) error = 0;
    fprintf(out, "wall=%lld user=%lld system=%lld", (long long)(ended - began), ns(used.ru_utime), ns(used.ru_stime));
#ifdef __APPLE__
    fprintf(out, " max_rss=%lld", (long long)used.ru_maxrss);
#else
    fprintf(out, " max_rss=%lld", (long long)used.ru_maxrss * 1024);
#endif
    fprintf(out, " minor_faults=%ld major_faults=%ld voluntary_switches=%ld involuntary_switches=%ld",
            used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw);
    write_counter(out, "instructions", instructions);
    write_counter(out, "task_clock", task_clock);
    if (error) fprintf(out, " error=%d", error);
    if (WIFSIGNALED(status)) fprintf(out, " signal=%d\n", WTERMSIG(status));
    else fprintf(out, " exit=%d\n", WEXITSTATUS(status));
    fclose(out);
    return 0;
}
