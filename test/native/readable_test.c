/* Checks ext/pitwall/tools/readable.h without Ruby; readable_test.rb builds it in each way and runs it. */
#include "tools/readable.h"
#include <stdio.h>
#include <sys/mman.h>

static int failures;

#define CHECK(condition) \
    do { \
        errno = E2BIG; \
        if (!(condition) || errno != E2BIG) { \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
            failures++; \
        } \
    } while (0)

int
main(void)
{
    long page = sysconf(_SC_PAGESIZE);
    uint64_t here = 1;
    static const char constant[8] = "const";
    char *pages = mmap(NULL, (size_t)page * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, (size_t)page, PROT_NONE) != 0 || munmap(pages + 2 * page, (size_t)page) != 0) return 2;

    CHECK(pw_readable((uintptr_t)&here));
    CHECK(pw_readable((uintptr_t)constant));
    CHECK(pw_readable((uintptr_t)pages));
    CHECK(pw_readable((uintptr_t)(pages + page - 8)));
    CHECK(!pw_readable((uintptr_t)(pages + page)));
    CHECK(!pw_readable((uintptr_t)(pages + 2 * page)));
    CHECK(!pw_readable(0)); /* the kernel takes 0 for "no set", which is no fault */
    CHECK(!pw_readable(8));
    CHECK(!pw_readable(4088));
    CHECK(!pw_readable((uintptr_t)1 << 60));
    if (!failures) puts("readable: ok");
    return failures ? 1 : 0;
}
