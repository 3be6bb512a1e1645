#include "session/modules.h"
#include "session/session.h"

enum { MOST = 32 };

static struct {
    const pw_module *const *list;
    int count;
    uint32_t collecting; /* bit i: collector list[i] has started */
    /* `here` of the active modules: called whenever a thread gets the GVL */
    void (*here[MOST])(void);
    _Atomic int here_count;
} state;

__thread int pw_own_work __attribute__((tls_model("initial-exec")));

void
pw_modules_use(const pw_module *const *list, int count)
{
    state.list = list;
    state.count = count < MOST ? count : MOST;
}

static bool
takes_part(int i)
{
    return state.list[i]->name ? state.collecting >> i & 1 : pw_current.generation != 0;
}

#define EACH(function, ...) \
    do { \
        for (int i = 0; i < state.count; i++) { \
            if (state.list[i]->function && takes_part(i)) state.list[i]->function(__VA_ARGS__); \
        } \
    } while (0)

/* Includes modules that are not active. */
#define EACH_OF_ALL(function, ...) \
    do { \
        for (int i = 0; i < state.count; i++) { \
            if (state.list[i]->function) state.list[i]->function(__VA_ARGS__); \
        } \
    } while (0)

void pw_modules_init(VALUE native) { EACH_OF_ALL(init, native); }
void pw_modules_prepare(void) { EACH_OF_ALL(prepare); }
void pw_modules_begin(void) { EACH(begin); }
void pw_modules_stop(void) { EACH(stop); }
void pw_modules_end(void) { EACH(end); }
void pw_modules_in_child(void) { EACH(in_child); }
void pw_modules_write(bool last) { EACH(write, last); }
void pw_modules_write_rows(bool last) { EACH(write_rows, last); }
void pw_modules_write_end(bool last) { EACH(write_end, last); }
void pw_modules_check(void) { EACH(check); }
void pw_modules_work(void) { EACH(work); }
void pw_modules_marking(void) { EACH(marking); }
void pw_modules_mark(void) { EACH(mark); }
void pw_modules_leave_gc(void) { EACH_OF_ALL(leave_gc); }
void pw_modules_before_ractor(void) { EACH(before_ractor); }

static void
remember_here(int i)
{
    if (!state.list[i]->here) return;
    int n = atomic_load(&state.here_count);
    state.here[n] = state.list[i]->here;
    atomic_store(&state.here_count, n + 1);
}

const char *
pw_modules_start(VALUE wanted)
{
    /* All settings are looked up before any collector starts: later new Strings would count as the program's. */
    VALUE settings[MOST];
    for (int i = 0; i < state.count; i++) {
        settings[i] = state.list[i]->name ? rb_hash_lookup(wanted, rb_str_new_cstr(state.list[i]->name)) : Qnil;
    }
    for (int i = 0; i < state.count; i++) {
        if (!RB_TYPE_P(settings[i], T_HASH)) continue;
        const char *refusal = state.list[i]->start(settings[i]);
        if (refusal) return refusal;
        state.collecting |= 1u << i;
        remember_here(i);
    }
    return NULL;
}

void
pw_modules_forget(bool frees)
{
    for (int i = 0; i < state.count; i++) {
        const pw_module *m = state.list[i];
        if (m->forget && (!m->name || takes_part(i))) m->forget(frees);
    }
    state.collecting = 0;
    atomic_store(&state.here_count, 0);
}

void
pw_modules_here(void)
{
    for (int i = 0, n = atomic_load_explicit(&state.here_count, memory_order_acquire); i < n; i++) state.here[i]();
}

bool
pw_modules_see_endings(void)
{
    for (int i = 0; i < state.count; i++) {
        if (state.list[i]->sees_endings && takes_part(i)) return true;
    }
    return false;
}

bool
pw_modules_fill_ring(VALUE wanted)
{
    for (int i = 0; i < state.count; i++) {
        const pw_module *m = state.list[i];
        if (m->fills_ring && RB_TYPE_P(rb_hash_lookup(wanted, rb_str_new_cstr(m->name)), T_HASH)) return true;
    }
    return false;
}

void
pw_own_begin(void)
{
    if (pw_own_work++ == 0) EACH(own_begin);
}

void
pw_own_end(void)
{
    if (--pw_own_work <= 0) EACH(own_end);
}
