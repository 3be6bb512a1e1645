#include "extension_frames.h"

#if defined(HAVE_BACKTRACE) && defined(HAVE_DLADDR) && defined(HAVE_GETAUXVAL)

#include <ruby.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MOST_FRAMES 4096

static const void *
object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

int
fb_in_extension(const char *own)
{
    void **frames = malloc(MOST_FRAMES * sizeof *frames);
    if (!frames) return 0;
    int count = backtrace(frames, MOST_FRAMES);
    /* The program, libruby, libc, libpthread (which may be libc) and this extension. */
    const void *usual[] = {object_of((void *)getauxval(AT_ENTRY)), object_of((void *)rb_gc_disable),
                           object_of((void *)qsort), object_of((void *)pthread_create),
                           object_of((void *)fb_in_extension)};
    int found = 0;
    for (int i = 0; i < count && !found; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info)) continue; /* compiled code */
        found = 1;
        for (size_t j = 0; j < sizeof usual / sizeof *usual; j++) {
            if (info.dli_fbase == usual[j]) found = 0;
        }
        if (found && strncmp(info.dli_fname, own, strlen(own)) == 0) found = 0;
    }
    free(frames);
    return found;
}

#else

int
fb_in_extension(const char *own)
{
    return 0;
}

#endif
