#include "vm/gvl_watch.h"

/* Ruby 3.1 changes the GVL's owner under the GVL's lock, an ordinary mutex. The loader filled a table of addresses
 * for Ruby's library. The watch puts its own functions into this table, so Ruby's own calls of four functions of the
 * C library go through this file:
 *
 *   pthread_mutex_unlock    The owner is the caller: the thread has the GVL. No owner: the thread has released the GVL.
 *   pthread_mutex_lock      Called by a thread that has released the GVL: the thread wants the GVL back.
 *   pthread_cond_wait, pthread_cond_timedwait
 *                           The thread waits for the GVL, perhaps without a release before (Thread.pass).
 *
 * A call with another mutex of Ruby costs one comparison more. */
#if PW_GVL_WATCH

#include "tools/elf_object.h"
#include "vm/vm_layout.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* What the native thread was last seen to have. EARLIER: nothing seen since the watch was installed. ENDED: the
 * native thread's Ruby thread has ended, and Ruby keeps the native thread for another Ruby thread. */
enum { EARLIER, NOT_SEEN, HAS_GVL, RELEASED, WANTS_GVL, ENDED };
static __thread uint8_t seen __attribute__((tls_model("initial-exec")));
static pw_gvl_hook *_Atomic told;

/* The lock and the owner of the main Ractor's GVL. Known once the watch is installed. */
static const pthread_mutex_t *gvl_lock;
static const char *const *gvl_owner;

/* Whether the owner (a rb_thread_t, running) is the calling thread. Ruby sets the owner before Ruby makes the
 * owner's context the current context. Until then the native thread has no context, or the context of a thread that
 * has ended and may have been freed. */
static inline bool
is_caller(const char *owner)
{
    return *(const void *const *)(owner + PW_THREAD_EC) == ruby_current_ec;
}

static void
tell(rb_event_flag_t event)
{
    pw_gvl_hook *hook = atomic_load_explicit(&told, memory_order_acquire);
    if (hook) hook(event, NULL, NULL);
}

static void
released(void)
{
    if (seen == RELEASED || seen == WANTS_GVL) return;
    seen = RELEASED;
    tell(RUBY_INTERNAL_THREAD_EVENT_SUSPENDED);
}

static void
wants(void)
{
    if (seen != RELEASED) return;
    seen = WANTS_GVL;
    tell(RUBY_INTERNAL_THREAD_EVENT_READY);
}

static int
unlock(pthread_mutex_t *mutex)
{
    if (mutex != gvl_lock) return pthread_mutex_unlock(mutex);
    const char *owner = *gvl_owner; /* read under the lock, so nobody else may change the owner */
    /* the thread begins, or never had the GVL */
    if (!ruby_current_ec || (owner && !(is_caller(owner) && pw_has_stack()))) {
        if (seen != RELEASED && seen != WANTS_GVL) seen = NOT_SEEN;
        return pthread_mutex_unlock(mutex);
    }
    if (!owner && !pw_has_stack()) { /* the thread ends */
        seen = ENDED;
        int error = pthread_mutex_unlock(mutex);
        tell(RUBY_INTERNAL_THREAD_EVENT_EXITED);
        return error;
    }
    if (!owner) released();
    int error = pthread_mutex_unlock(mutex);
    if (owner && seen != HAS_GVL) {
        seen = HAS_GVL;
        tell(RUBY_INTERNAL_THREAD_EVENT_RESUMED);
    }
    return error;
}

static int
lock(pthread_mutex_t *mutex)
{
    if (seen == RELEASED && mutex == gvl_lock) wants();
    return pthread_mutex_lock(mutex);
}

/* A thread that begins waits in the state EARLIER or ENDED. That wait is not reported. */
static void
about_to_wait(const pthread_mutex_t *mutex)
{
    if (mutex != gvl_lock || seen == EARLIER || seen == ENDED || !pw_has_stack()) return;
    released();
    wants();
}

static int
cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    about_to_wait(mutex);
    return pthread_cond_wait(condition, mutex);
}

static int
cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    about_to_wait(mutex);
    return pthread_cond_timedwait(condition, mutex, until);
}

/* ---- installing ---- */

static const struct { const char *name; void *ours; } replaced[] = {
    {"pthread_mutex_unlock", (void *)unlock}, {"pthread_mutex_lock", (void *)lock},
    {"pthread_cond_wait", (void *)cond_wait}, {"pthread_cond_timedwait", (void *)cond_timedwait}};
enum { REPLACED = sizeof replaced / sizeof *replaced, ALL = (1 << REPLACED) - 1 };

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_ADDRESS = R_X86_64_GLOB_DAT };
#else
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_ADDRESS = R_AARCH64_GLOB_DAT };
#endif

/* @return bit n: replaced[n] was found */
static unsigned
replace(const pw_elf_object *o, bool write)
{
    unsigned found = 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; o->tables[t] && i < o->sizes[t] / sizeof(Elf64_Rela); i++) {
            const Elf64_Rela *slot = &o->tables[t][i];
            uint32_t type = ELF64_R_TYPE(slot->r_info);
            const Elf64_Sym *symbol = &o->symbols[ELF64_R_SYM(slot->r_info)];
            if ((type != SLOT_OF_CALL && type != SLOT_OF_ADDRESS) || symbol->st_shndx != SHN_UNDEF) continue;
            for (int n = 0; n < REPLACED; n++) {
                if (strcmp(o->names + symbol->st_name, replaced[n].name) != 0) continue;
                found |= 1u << n;
                if (write) atomic_store((void *_Atomic *)(o->base + slot->r_offset), replaced[n].ours);
            }
        }
    }
    return found;
}

/* Visits the object that contains the running Ruby's code. Sets `installed` if all four functions were found there
 * and are ours now. */
static int
visit(struct dl_phdr_info *info, size_t size, void *installed)
{
    pw_elf_object o;
    if (!pw_elf_covers(info, (const void *)rb_thread_call_without_gvl)) return 0;
    if (!pw_elf_read(info, &o) || replace(&o, false) != ALL) return 1;
    if (o.to > o.from && mprotect((void *)o.from, o.to - o.from, PROT_READ | PROT_WRITE) != 0) return 1;
    replace(&o, true);
    if (o.to > o.from) mprotect((void *)o.from, o.to - o.from, PROT_READ);
    *(bool *)installed = true;
    return 1;
}

static void *
nothing(void *seen_without)
{
    *(bool *)seen_without = seen == RELEASED;
    return NULL;
}

bool
pw_gvl_watch_install(void)
{
    static bool tried, works;
    if (tried) return works;
    tried = true;
    if (!pw_has_stack()) return false;
    const char *thread = *(const char *const *)((const char *)ruby_current_ec + PW_EC_THREAD_31);
    const char *ractor = *(const char *const *)(thread + PW_THREAD_RACTOR_31);
    gvl_owner = (const char *const *)(ractor + PW_RACTOR_OWNER_31);
    if (*gvl_owner != thread) return false; /* the layout is not the one in vm_layout.h */
    gvl_lock = (const pthread_mutex_t *)(ractor + PW_RACTOR_LOCK_31);
    seen = HAS_GVL;
    bool installed = false, without = false;
    dl_iterate_phdr(visit, &installed);
    if (!installed) return false;
    rb_thread_call_without_gvl(nothing, &without, NULL, NULL);
    return works = without && seen == HAS_GVL;
}

void pw_gvl_watch_tell(pw_gvl_hook *hook) { atomic_store_explicit(&told, hook, memory_order_release); }

#else

bool pw_gvl_watch_install(void) { return false; }

#endif
