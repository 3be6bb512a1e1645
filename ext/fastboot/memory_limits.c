#include "memory_limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int
fb_has_memory_limit(void)
{
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) != 0 || getrlimit(RLIMIT_DATA, &data) != 0) return 1;
    return space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

static uint64_t
number_in(const char *path)
{
    char text[32];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return UINT64_MAX;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (length <= 0 || text[0] < '0' || text[0] > '9') return UINT64_MAX; /* "max" */
    text[length] = 0;
    return strtoull(text, NULL, 10);
}

/* The least that a folder of control groups and those above it allow: memory.max and memory.high. */
static uint64_t
least_in(const char *mount, const char *group)
{
    char folder[PATH_MAX], path[PATH_MAX + 16];
    uint64_t least = UINT64_MAX;
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) return 0;
    for (size_t length = strlen(folder); length >= strlen(mount); length--) {
        if (folder[length] != 0 && folder[length] != '/') continue;
        folder[length] = 0;
        const char *const names[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            uint64_t allowed = number_in(path);
            if (allowed < least) least = allowed;
        }
    }
    return least;
}

uint64_t
fb_most_memory(void)
{
    char line[PATH_MAX];
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t least = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
    FILE *groups = fopen("/proc/self/cgroup", "re"); /* lines "0::/path" (version 2), "4:memory:/path" */
    while (groups && fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = 0;
        const char *kind = strchr(line, ':'), *group = kind ? strchr(kind + 1, ':') : NULL;
        if (!group) continue;
        int is_memory = strncmp(kind, ":memory:", 8) == 0;
        if (!is_memory && strncmp(line, "0::", 3) != 0) continue;
        uint64_t allowed = least_in(is_memory ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", group + 1);
        if (allowed < least) least = allowed;
    }
    if (groups) fclose(groups);
    return least / 2;
}
