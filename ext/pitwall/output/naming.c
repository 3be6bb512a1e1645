#include "output/naming.h"
#include "output/chunks.h"
#include "output/frame_names.h"
#include "output/output.h"
#include "output/records.h"
#include "session/modules.h"
#include "tools/quietly.h"
#include "vm/known_frames.h"
#include "vm/reader_lock.h"
#include <string.h>

/* The program waits while a job runs. So a job ends after JOB_NS, and the next job names the rest. A single name can
 * take longer: under GC.stress each object that naming allocates costs a collection. So the pause before the next job
 * is at least REST times the CPU time of the last job, but at most LONGEST_REST_NS. */
enum { BATCH = 64, JOB_NS = 500000, REST = 20, LONGEST_REST_NS = 1000000000 };

static struct {
    pw_job job;
    _Atomic bool wanted;         /* the drain needs a job, but may not trigger one itself */
    _Atomic int64_t rests_until; /* the drain asks for no job before this time */
    VALUE pending, kept;         /* objects that mark frames: unnamed frames, named frames */
    struct {                     /* FRAM rows not yet written. holds session lock */
        uint32_t count;
        pw_buffer ids, kinds, names, paths, lines;
    } rows;
} state;

/* ---- marking ---- */

static void
mark_pending(void *unused)
{
    if (!pw_current.generation) return;
    /* Waits until a running outside reading has put its stack into the ring. A reading that begins later sees the
     * collection and does nothing. (gc.c does the same, except for collections that Ruby does not report to gc.c:
     * those of other Ractors.) */
    if (pw_current.ticker && pw_current.ticker->samples) pw_reader_pass();
    pw_modules_marking();
    pthread_mutex_lock(&pw_current.lock);
    /* A captured word may be anything. So it is marked like a word of the machine stack: only if it is an object. */
    pw_intern *t = &pw_out.tables;
    for (uint32_t i = t->unresolved_from; i < t->frame_count; i++) {
        rb_gc_mark_maybe(t->frames[i].frame);
        rb_gc_mark_maybe(t->frames[i].owner);
    }
    uint64_t offset = 0;
    for (pw_record_header *r; (r = pw_ring_scan(&pw_out.ring, &offset));) {
        const pw_sample *s = (const pw_sample *)r;
        if (!pw_record_has_frames(r->kind)) continue;
        for (uint32_t i = 0; i < s->fresh + s->owned; i++) rb_gc_mark_maybe(s->frames[i]); /* owners follow frames */
    }
    for (pw_thread *thread = pw_current.threads; thread; thread = thread->next) rb_gc_mark(thread->thread);
    pw_modules_mark();
    pthread_mutex_unlock(&pw_current.lock);
}

static void
mark_kept(void *unused)
{
    if (!pw_current.generation) return;
    pthread_mutex_lock(&pw_current.lock);
    pw_intern *t = &pw_out.tables;
    for (uint32_t i = 0; i < t->unresolved_from; i++) {
        if (t->frames[i].frame && !RB_SPECIAL_CONST_P(t->frames[i].frame)) rb_gc_mark(t->frames[i].frame);
        if (!RB_SPECIAL_CONST_P(t->frames[i].owner)) rb_gc_mark(t->frames[i].owner);
    }
    pthread_mutex_unlock(&pw_current.lock);
}

static const rb_data_type_t pending_type = {"Pitwall/pending frames", {mark_pending, NULL, NULL}, .flags = 0};
/* Write-barrier protected, so that minor collections do not mark it again. */
static const rb_data_type_t kept_type = {"Pitwall/named frames", {mark_kept, NULL, NULL},
                                         .flags = RUBY_TYPED_WB_PROTECTED};

void
pw_naming_add(uint32_t id, uint8_t kind, uint32_t name, uint32_t path, uint32_t line)
{
    pw_buffer_int(&state.rows.ids, id);
    pw_buffer_int(&state.rows.kinds, kind);
    pw_buffer_int(&state.rows.names, name);
    pw_buffer_int(&state.rows.paths, path);
    pw_buffer_int(&state.rows.lines, line);
    state.rows.count++;
}

/* Names one batch of frames, as far as the time `until` allows. False: no frame is left. The lock is not held while
 * Ruby runs: naming allocates, an allocation may start a collection, and marking takes the lock. */
static bool
name_batch(int64_t until)
{
    VALUE frames[BATCH], owners[BATCH]; /* on the machine stack: kept alive and in place */
    uint32_t ids[BATCH], n = 0, resets;
    pw_intern *t = &pw_out.tables;

    pthread_mutex_lock(&pw_current.lock);
    resets = (uint32_t)pw_counter(PW_RESETS);
    uint32_t from = t->unresolved_from;
    for (uint32_t i = from; i < t->frame_count && n < BATCH; i++, n++) {
        frames[n] = t->frames[i].frame;
        owners[n] = t->frames[i].owner;
        ids[n] = t->frames[i].id;
    }
    pthread_mutex_unlock(&pw_current.lock);

    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && pw_now_ns() >= until) return true;
        if (pw_frame_is_native(frames[i])) { /* named by the drain */
            pthread_mutex_lock(&pw_current.lock);
            if (resets == (uint32_t)pw_counter(PW_RESETS)) t->unresolved_from = from + i + 1;
            pthread_mutex_unlock(&pw_current.lock);
            continue;
        }
        pw_frame_description d = {.frame = frames[i], .owner = owners[i]};
        if (!pw_attempt(pw_frame_describe, (VALUE)&d, NULL)) {
            d.kind = PW_KIND_OURS;
            d.name = Qnil;
            d.owner = 0;
        }
        const char *name = RB_TYPE_P(d.name, T_STRING) ? RSTRING_PTR(d.name) : "(unnamed frame)";
        size_t name_size = RB_TYPE_P(d.name, T_STRING) ? (size_t)RSTRING_LEN(d.name) : strlen(name);
        bool has_path = RB_TYPE_P(d.path, T_STRING);

        pthread_mutex_lock(&pw_current.lock);
        bool same_tables = resets == (uint32_t)pw_counter(PW_RESETS);
        if (d.ownerless && !d.owner && same_tables && !t->frames[from + i].waited) {
            t->frames[from + i].owner = 0;
            t->frames[from + i].waiting = true;
            t->unresolved_from = from + i + 1;
            pthread_mutex_unlock(&pw_current.lock);
            RB_OBJ_WRITTEN(state.kept, Qundef, d.frame);
            continue;
        }
        pw_naming_add(ids[i], d.kind, pw_intern_string(t, name, name_size),
                      has_path ? pw_intern_string(t, RSTRING_PTR(d.path), (size_t)RSTRING_LEN(d.path)) : 0,
                      d.first_line);
        if (same_tables) {
            if (d.frame == 0) t->frames[from + i].frame = 0;
            t->frames[from + i].owner = d.owner;
            t->frames[from + i].resolved = true;
            t->unresolved_from = from + i + 1;
            if (d.frame && !RB_SPECIAL_CONST_P(d.frame)) pw_known_add(d.frame);
        }
        pthread_mutex_unlock(&pw_current.lock);
        if (same_tables && d.frame && !RB_SPECIAL_CONST_P(d.frame)) RB_OBJ_WRITTEN(state.kept, Qundef, d.frame);
        if (same_tables && d.owner) RB_OBJ_WRITTEN(state.kept, Qundef, d.owner);
        RB_GC_GUARD(d.name);
        RB_GC_GUARD(d.path);
    }
    return n == BATCH;
}

/* ---- threads ---- */

static VALUE
thread_name(VALUE thread)
{
    VALUE name = rb_funcall(thread, rb_intern("name"), 0);
    if (RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) > 0) return name;
    if (thread == rb_thread_main()) return rb_str_new_cstr("main");
    /* #<Thread:0x0000 /path/x.rb:12 run> */
    VALUE text = rb_funcall(thread, rb_intern("to_s"), 0);
    const char *from = strchr(StringValueCStr(text), ' '), *to = from ? strrchr(from + 1, ' ') : NULL;
    if (!from || !to) return rb_str_new_cstr("thread");
    VALUE place = rb_str_new(from + 1, to - from - 1);
    return rb_str_new_cstr(pw_last_path_part(StringValueCStr(place)));
}

void
pw_name_thread(VALUE thread)
{
    VALUE name;
    pw_attempt(thread_name, thread, &name);
    pthread_mutex_lock(&pw_current.lock);
    pw_thread *t = pw_current.threads;
    /* the thread may have ended while Ruby looked up its name */
    while (t && (t->thread != thread || t->sample.finished)) t = t->next;
    if (t) {
        uint32_t name_id = RB_TYPE_P(name, T_STRING) ? pw_intern_string(&pw_out.tables, RSTRING_PTR(name),
                                                                        (size_t)RSTRING_LEN(name)) : 0;
        if (name_id != t->drain.name_id) {
            t->drain.name_id = name_id;
            t->drain.announced = false;
        }
        t->drain.named = true;
    }
    pthread_mutex_unlock(&pw_current.lock);
    RB_GC_GUARD(name);
}

static void
name_threads(bool again)
{
    VALUE threads[BATCH]; /* on the machine stack: kept alive */
    int n = 0;
    pthread_mutex_lock(&pw_current.lock);
    for (pw_thread *t = pw_current.threads; t && n < BATCH; t = t->next) {
        if (t->sample.finished || (t->drain.named && !again)) continue;
        threads[n++] = t->thread;
    }
    pthread_mutex_unlock(&pw_current.lock);
    for (int i = 0; i < n; i++) pw_name_thread(threads[i]);
    RB_GC_GUARD(threads[0]);
}

static void
run_job(void *unused)
{
    if (!pw_session_generation()) return;
    /* CPU time, because wall time would count time in which the process was stopped */
    int64_t began = pw_now_ns(), cpu_began = pw_own_cpu_ns();
    pw_own_begin();
    name_threads(false);
    while (name_batch(began + JOB_NS) && pw_now_ns() - began < JOB_NS) {}
    pw_own_end();
    int64_t ended = pw_now_ns();
    int64_t rest = (pw_own_cpu_ns() - cpu_began) * REST;
    atomic_store(&state.rests_until, ended + (rest < LONGEST_REST_NS ? rest : LONGEST_REST_NS));
    pw_count(PW_NAMING_NS, ended - began);
}

void
pw_naming_trigger(void)
{
    if (pw_now_ns() < atomic_load(&state.rests_until)) return;
    if (pw_may_trigger()) pw_job_trigger(&state.job);
    else atomic_store(&state.wanted, true);
}

bool pw_naming_wanted(void) { return atomic_load_explicit(&state.wanted, memory_order_relaxed); }

void
pw_naming_trigger_if_wanted(void)
{
    if (pw_naming_wanted() && pw_may_trigger() && atomic_exchange(&state.wanted, false)) pw_job_trigger(&state.job);
}

void
pw_naming_finish(void)
{
    int64_t began = pw_now_ns();
    name_threads(true);
    atomic_store(&state.rests_until, 0);
    while (name_batch(INT64_MAX)) {} /* first, because these frames may have the owners of the waiting frames */
    pthread_mutex_lock(&pw_current.lock);
    pw_intern_end_waiting(&pw_out.tables);
    pthread_mutex_unlock(&pw_current.lock);
    while (name_batch(INT64_MAX)) {}
    pw_count(PW_NAMING_NS, pw_now_ns() - began);
}

void
pw_naming_write(void)
{
    if (!state.rows.count) return;
    pw_buffer payload = {0},
        *columns[] = {&state.rows.ids, &state.rows.kinds, &state.rows.names, &state.rows.paths, &state.rows.lines};
    pw_buffer_int(&payload, state.rows.count);
    for (int i = 0; i < 5; i++) {
        pw_buffer_column(&payload, columns[i]);
        pw_buffer_clear(columns[i]);
    }
    state.rows.count = 0;
    pw_chunks_put("FRAM", &payload);
}

void
pw_naming_free(bool frees)
{
    pw_buffer *columns[] = {&state.rows.ids, &state.rows.kinds, &state.rows.names, &state.rows.paths,
                            &state.rows.lines};
    for (int i = 0; i < 5 && frees; i++) pw_buffer_free(columns[i]);
    memset(&state.rows, 0, sizeof state.rows);
}

void
pw_naming_init(VALUE native)
{
    (void)native;
    if (!pw_job_init(&state.job, run_job)) rb_raise(rb_eRuntimeError, "Ruby has no room for another postponed job");
    state.pending = TypedData_Wrap_Struct(rb_cObject, &pending_type, (void *)1);
    rb_gc_register_mark_object(state.pending);
    state.kept = TypedData_Wrap_Struct(rb_cObject, &kept_type, (void *)1);
    rb_gc_register_mark_object(state.kept);
    pw_frame_names_init();
}
