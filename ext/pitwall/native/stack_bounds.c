#include "native/stack_bounds.h"

__thread pw_stack_bounds pw_own_stack;

#ifdef __linux__

# include <pthread.h>

void
pw_unwind_know_stack(void)
{
    pthread_attr_t attributes;
    void *from;
    size_t size;
    if (pw_own_stack.to || pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &from, &size) == 0) {
        pw_own_stack = (pw_stack_bounds){(uintptr_t)from, ((uintptr_t)from + size) & ~(uintptr_t)7, 0};
    }
    pthread_attr_destroy(&attributes);
}

#else
void pw_unwind_know_stack(void) {}
#endif
