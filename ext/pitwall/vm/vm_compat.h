/* Differences between Ruby versions, except layouts (vm_layout.h). The extension's only #if RUBY_... are in this
 * file.
 *
 * 3.1  no thread events (gvl_watch.c reports which thread waits, but not in outside mode);
 *      postponed jobs are registered by function
 * 3.2  thread events without the thread in their data
 * 3.3  thread in the event's data, thread-specific storage, preregistered postponed jobs
 * 4.0  ROBJECT_EMBED is replaced by ROBJECT_HEAP with the opposite meaning;
 *      instance variables of other types are objects of their own
 * 4.1  more sizes of the heap's slots */
#ifndef PITWALL_VM_COMPAT_H
#define PITWALL_VM_COMPAT_H

#include "vm/vm_known.h"
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK
# define PW_THREAD_EVENTS 1
#else
# define PW_THREAD_EVENTS 0
#endif

/* If Ruby has no thread events, gvl_watch.c reports them. */
#if !PW_THREAD_EVENTS && PW_LAYOUT_RUBY == 31 && defined(HAVE_RUBY_CURRENT_EC)
# define PW_GVL_WATCH 1
enum {
    RUBY_INTERNAL_THREAD_EVENT_READY = 1 << 1, RUBY_INTERNAL_THREAD_EVENT_RESUMED = 1 << 2,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED = 1 << 3, RUBY_INTERNAL_THREAD_EVENT_EXITED = 1 << 4
};
typedef struct { VALUE thread; } rb_internal_thread_event_data_t;
#else
# define PW_GVL_WATCH 0
#endif

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
# define PW_THREAD_IN_EVENT 1
#else
# define PW_THREAD_IN_EVENT 0
#endif

/* A postponed job runs a function with the GVL at the next safepoint. pw_job_trigger: async-signal-safe. Up to 3.2
 * only the thread with the GVL may trigger a job. Otherwise Ruby could read an entry that another thread has half
 * written. */
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
/* false on threads that Ruby does not know */
static inline bool pw_may_trigger(void) { return ruby_thread_has_gvl_p(); }
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

/* True when the calling thread has a Ruby stack. On 3.1 a new thread has no execution context yet, and an ending
 * thread has no stack any more; rb_profile_frames would crash then. A context begins with the address of the stack.
 * Newer Rubies check this themselves. */
#ifdef HAVE_RUBY_CURRENT_EC
extern __thread void *ruby_current_ec;
static inline bool pw_has_stack(void) { return ruby_current_ec && *(void *volatile *)ruby_current_ec; }
#else
static inline bool pw_has_stack(void) { return true; }
#endif

/* Slots of Ruby's heap begin at multiples of this many bytes. Slot sizes are multiples of 40 up to 4.0, and of 8
 * from 4.1 on. */
enum { PW_SLOT_UNIT = PW_RUBY <= 40 ? 40 : 8 };
/* Pages of the heap begin at multiples of 2 to the power of this constant. A page begins with a header that
 * rb_gc_location reads. */
enum { PW_HEAP_PAGE_BITS = PW_RUBY <= 31 ? 14 : 16 };

/* Bytes of the slot that holds an object: 40 until slots got several sizes. Memory outside the slot is not counted. */
#ifdef HAVE_RB_GC_OBJ_SLOT_SIZE
extern size_t rb_gc_obj_slot_size(VALUE object);
static inline size_t pw_slot_bytes(VALUE object) { return rb_gc_obj_slot_size(object); }
#else
static inline size_t pw_slot_bytes(VALUE object) { return 5 * sizeof(VALUE); }
#endif

/* Bytes of an object in its slot and in memory of its own; 0: this Ruby doesn't tell. */
#ifdef HAVE_RB_OBJ_MEMSIZE_OF
extern size_t rb_obj_memsize_of(VALUE object);
static inline size_t pw_object_bytes(VALUE object) { return rb_obj_memsize_of(object); }
#else
static inline size_t pw_object_bytes(VALUE object) { return 0; }
#endif

/* The type of Ruby's own sets, which are data from 4.0 on; else NULL. Its size is asked of the object alone. */
#ifdef HAVE_RB_SET_NEW
static inline const rb_data_type_t *pw_set_type(void) { return RTYPEDDATA_TYPE(rb_set_new()); }
#else
static inline const rb_data_type_t *pw_set_type(void) { return NULL; }
#endif

/* The data of a typed object, which may be in the object's slot (3.3). */
static inline const void *
pw_typed_data(VALUE object)
{
#ifdef TYPED_DATA_EMBEDDED
    return RTYPEDDATA_GET_DATA(object);
#else
    return RTYPEDDATA_DATA(object);
#endif
}

/* Calls `visit` for each page of the heap, with the page's first slot, its end and the size of a slot. False: this
 * Ruby can't. */
typedef int (*pw_page_visitor)(void *from, void *to, size_t stride, void *data);
#ifdef HAVE_RB_OBJSPACE_EACH_OBJECTS
extern void rb_objspace_each_objects(pw_page_visitor visit, void *data);
static inline bool pw_each_page(pw_page_visitor visit) { return rb_objspace_each_objects(visit, NULL), true; }
#else
static inline bool pw_each_page(pw_page_visitor visit) { return false; }
#endif

/* Visit the objects that an object refers to, and the objects that the roots refer to. */
#ifdef HAVE_RB_OBJSPACE_REACHABLE_OBJECTS_FROM
extern void rb_objspace_reachable_objects_from(VALUE object, void (*visit)(VALUE, void *), void *data);
extern void rb_objspace_reachable_objects_from_root(void (*visit)(const char *category, VALUE, void *), void *data);
#endif

/* Whether an object with these flags may have memory outside of its slot. If a flag is gone from Ruby, true is right
 * as well. */
static inline bool
pw_string_may_have_more(VALUE flags)
{
#ifdef HAVE_CONST_RSTRING_NOEMBED
    return (flags & RSTRING_NOEMBED) != 0;
#else
    return true;
#endif
}

static inline bool
pw_array_may_have_more(VALUE flags)
{
#ifdef HAVE_CONST_RARRAY_EMBED_FLAG
    return !(flags & RARRAY_EMBED_FLAG);
#else
    return true;
#endif
}

static inline bool
pw_plain_object_may_have_more(VALUE flags)
{
#if defined(HAVE_CONST_ROBJECT_EMBED)
    return !(flags & ROBJECT_EMBED);
#elif defined(HAVE_CONST_ROBJECT_HEAP) /* 4.0 has the flag with the opposite meaning */
    return (flags & ROBJECT_HEAP) != 0;
#else
    return true;
#endif
}

/* Instance variables of objects that are no T_OBJECT. Up to 3.4 they are in memory that belongs to the object. From
 * 4.0 on they are in an object of their own. */
static inline bool
pw_other_ivars_may_have_more(VALUE flags)
{
#if PW_RUBY < 40
    return (flags & RUBY_FL_EXIVAR) != 0;
#else
    return false;
#endif
}

/* Whether a string's bytes are another string's. True if this Ruby cannot tell. */
static inline bool
pw_string_is_shared(VALUE flags)
{
#if defined(HAVE_CONST_RSTRING_NOEMBED) && defined(HAVE_CONST_RUBY_ELTS_SHARED)
    return (flags & RSTRING_NOEMBED) && (flags & RUBY_ELTS_SHARED);
#else
    return true;
#endif
}

/* The line of an instruction. Weak, because a Ruby may hide the function. No header declares the function. */
extern unsigned int rb_iseq_line_no(const void *iseq, size_t position) __attribute__((weak));

/* Types of slots that hold no object of the program. A newer Ruby may lack such a type. No slot has the type
 * PW_NO_TYPE. */
enum { PW_NO_TYPE = RUBY_T_MASK + 1 };
#ifdef HAVE_CONST_RUBY_T_NODE
enum { PW_T_NODE = RUBY_T_NODE };
#else
enum { PW_T_NODE = PW_NO_TYPE };
#endif
#ifdef HAVE_CONST_RUBY_T_MOVED
enum { PW_T_MOVED = RUBY_T_MOVED };
#else
enum { PW_T_MOVED = PW_NO_TYPE };
#endif
#ifdef HAVE_CONST_RUBY_T_ZOMBIE
enum { PW_T_ZOMBIE = RUBY_T_ZOMBIE };
#else
enum { PW_T_ZOMBIE = PW_NO_TYPE };
#endif

/* The object that this singleton class belongs to. */
static inline VALUE
pw_attached(VALUE singleton)
{
#ifdef HAVE_RB_CLASS_ATTACHED_OBJECT
    return rb_class_attached_object(singleton);
#else
    return rb_attr_get(singleton, rb_intern("__attached__"));
#endif
}

/* The object that a singleton class belongs to; Qundef for other classes. Runs no code of the program. */
#ifndef HAVE_CONST_RUBY_FL_SINGLETON
static inline VALUE pw_attached_object(VALUE klass) { return Qundef; }
#elif defined(HAVE_RB_CLASS_ATTACHED_OBJECT)
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
