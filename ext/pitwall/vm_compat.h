/* Everything that differs between Ruby versions, and nothing else. The only #if RUBY_... of the extension stand here.
 *
 * 3.1  no thread events; postponed jobs are registered by function
 * 3.2  thread events without the thread in their data
 * 3.3  thread in the event's data, thread-specific storage, preregistered postponed jobs
 */
#ifndef PITWALL_VM_COMPAT_H
#define PITWALL_VM_COMPAT_H

#include <ruby/ruby.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <ruby/version.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK
# define PW_THREAD_EVENTS 1
#else
# define PW_THREAD_EVENTS 0
#endif

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
# define PW_THREAD_IN_EVENT 1
#else
# define PW_THREAD_IN_EVENT 0
#endif

/* The minor version whose layouts vm_layout.h knows, 0 for any other: those are never read. */
#if defined(__linux__) && defined(__LP64__) && RUBY_API_VERSION_MAJOR == 3 && \
    (RUBY_API_VERSION_MINOR == 1 || RUBY_API_VERSION_MINOR == 3 || RUBY_API_VERSION_MINOR == 4)
# define PW_LAYOUT_RUBY (RUBY_API_VERSION_MAJOR * 10 + RUBY_API_VERSION_MINOR)
#else
# define PW_LAYOUT_RUBY 0
#endif

/* A postponed job runs a function with the GVL at the next safepoint; triggering it is async-signal-safe. Up to 3.2 its
 * table is only safe against handlers on the thread that has the GVL: from elsewhere the job could be seen half entered. */
typedef struct {
    void (*func)(void *);
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_handle_t handle;
#endif
} pw_job;

static inline bool
pw_job_init(pw_job *job, void (*func)(void *))
{
    job->func = func;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    job->handle = rb_postponed_job_preregister(0, func, NULL);
    return job->handle != POSTPONED_JOB_HANDLE_INVALID;
#else
    return true;
#endif
}

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static inline bool pw_may_trigger_anywhere(void) { return true; }
static inline bool pw_may_trigger(void) { return true; }
#else
static inline bool pw_may_trigger_anywhere(void) { return false; }
extern int ruby_thread_has_gvl_p(void);
static inline bool pw_may_trigger(void) { return ruby_thread_has_gvl_p(); } /* false on threads Ruby does not know */
#endif

static inline void
pw_job_trigger(pw_job *job)
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_trigger(job->handle);
#else
    rb_postponed_job_register_one(0, job->func, NULL);
#endif
}

/* Has the calling thread a Ruby stack? 3.1's rb_profile_frames does not ask: before a thread's first turn with the GVL there
 * is no execution context, and at its end the stack is forgotten before its size, with a signal in between if one comes.
 * A context begins with the address of the stack; later Rubies (3.3) ask themselves and tell of each thread's end before. */
#ifdef HAVE_RUBY_CURRENT_EC
extern __thread void *ruby_current_ec;
static inline bool pw_has_stack(void) { return ruby_current_ec && *(void *volatile *)ruby_current_ec; }
#else
static inline bool pw_has_stack(void) { return true; }
#endif

/* Bytes of the slot that holds an object: 40 until slots got several sizes. Memory that it points to is not counted. */
#ifdef HAVE_RB_GC_OBJ_SLOT_SIZE
extern size_t rb_gc_obj_slot_size(VALUE object);
static inline size_t pw_slot_bytes(VALUE object) { return rb_gc_obj_slot_size(object); }
#else
static inline size_t pw_slot_bytes(VALUE object) { return 5 * sizeof(VALUE); }
#endif

/* Of a singleton class, whose it is; else undef. Runs nothing of the program. */
#ifdef HAVE_RB_CLASS_ATTACHED_OBJECT
static inline VALUE
pw_attached_object(VALUE klass)
{
    return RB_FL_TEST(klass, FL_SINGLETON) && RB_TYPE_P(klass, T_CLASS) ? rb_class_attached_object(klass) : Qundef;
}
#else
static inline VALUE
pw_attached_object(VALUE klass)
{
    VALUE attached = RB_FL_TEST(klass, FL_SINGLETON) ? rb_attr_get(klass, rb_intern("__attached__")) : Qundef;
    return NIL_P(attached) ? Qundef : attached;
}
#endif

#endif
