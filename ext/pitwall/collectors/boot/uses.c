#include "collectors/boot/uses.h"
#include "collectors/boot/loads.h"
#include "output/drain.h"
#include "output/output.h"
#include "output/record_kinds.h"
#include "session/modules.h"
#include "session/session.h"
#include "tools/clock.h"
#include "tools/quietly.h"
#include "tools/settings.h"
#include <ruby/debug.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_A_CHUNK = 1 << 12 };
enum { PATH, USED, AT, COLUMNS };
/* What a file's code has: see Collect::Boot.defines. */
enum { NOTHING, BLOCKS, METHODS };

typedef struct {
    pw_record_header header;
    uint32_t size;
    uint64_t used, at;
    char path[];
} use_row;

/* Never freed: a TracePoint that runs in another thread may still refer to it. */
typedef struct file {
    long index; /* in `kept` */
    bool used;
    struct file *next; /* in `unwritten` */
    uint32_t size;
    char path[];
} file;

static struct {
    bool on;       /* uses were asked for, in this process or its parent */
    _Atomic bool active, stopped;
    pid_t pid;      /* of the process whose recording is active */
    VALUE compiled; /* the TracePoint that sees code before it runs; 0: none so far */
    VALUE kept;     /* an Array with the TracePoints of each file; nil: the file has been used */
    VALUE boot;     /* Collect::Boot */
    file *unwritten; /* files whose use has no row so far: a forked child used them before its recording began, or the
                      * ring was full. needs GVL */
    pw_buffer columns[COLUMNS];
    uint32_t rows;
} state;

bool pw_uses_recorded(void) { return state.on; }

/* ---- rows ---- */

/* `waits`: until the ring has room. */
static bool
put_row(const file *f, bool used, bool waits)
{
    uint32_t bytes = (uint32_t)sizeof(use_row) + f->size;
    use_row *row = waits ? pw_loads_reserve(bytes) : (use_row *)pw_ring_reserve(&pw_out.ring, bytes);
    if (!row) return false;
    row->header.kind = PW_REC_USE;
    row->size = f->size;
    row->used = used;
    int64_t now = pw_now_ns();
    row->at = now > pw_current.origin ? (uint64_t)(now - pw_current.origin) : 0;
    memcpy(row->path, f->path, f->size);
    pw_ring_commit(&row->header, bytes);
    return true;
}

/* holds session lock */
static bool
take(const pw_record_header *record)
{
    const use_row *row = (const use_row *)record;
    uint64_t values[COLUMNS] = {
        [PATH] = pw_intern_string(&pw_out.tables, row->path, row->size), [USED] = row->used, [AT] = row->at};
    pw_buffer_row(state.columns, values, COLUMNS);
    return ++state.rows >= ROWS_A_CHUNK;
}

void
pw_uses_write_rows(void)
{
    if (!state.rows) return;
    pw_writer_table(&pw_out.writer, "USED", 1, (uint64_t[]){state.rows}, COLUMNS, state.columns);
    state.rows = 0;
}

/* ---- a file's first use ---- */

/* Another Ractor may not change the list. The file's TracePoints then stay, and do nothing. */
static void
let_go(const file *f)
{
    if (!pw_in_main_ractor()) return;
    VALUE tracepoints = rb_ary_entry(state.kept, f->index);
    if (!RB_TYPE_P(tracepoints, T_ARRAY)) return;
    rb_ary_store(state.kept, f->index, Qnil);
    for (long i = 0; i < RARRAY_LEN(tracepoints); i++) rb_tracepoint_disable(RARRAY_AREF(tracepoints, i));
    RB_GC_GUARD(tracepoints);
}

static void
write_unwritten(void)
{
    while (state.unwritten && put_row(state.unwritten, true, true)) state.unwritten = state.unwritten->next;
}

/* Code may run in a forked child before the child's own recording begins. `state` is then a copy of the parent's. */
static bool
is_recorded(void)
{
    return atomic_load_explicit(&state.active, memory_order_relaxed) && getpid() == state.pid;
}

/* Code of another Ractor may run at the same time, so its row is not put off. */
static void
on_call(VALUE tracepoint, void *data)
{
    file *f = data;
    if (!atomic_load_explicit(&state.stopped, memory_order_relaxed) && !f->used) {
        if (pw_own_work) return;
        if (!is_recorded() || !put_row(f, true, false)) {
            if (!pw_in_main_ractor()) return;
            f->next = state.unwritten;
            state.unwritten = f;
        }
        f->used = true;
    }
    let_go(f);
}

/* ---- a file has been loaded ---- */

typedef struct { VALUE path, codes; } loaded;

static int defines(VALUE code) { return NUM2INT(rb_funcall(state.boot, rb_intern("defines"), 1, code)); }

static VALUE
watch(VALUE data)
{
    const loaded *l = (const loaded *)data;
    VALUE watched = rb_ary_new(), tracepoints = rb_ary_new();
    int most = NOTHING;
    for (long i = 0; i < RARRAY_LEN(l->codes); i++) {
        int found = defines(RARRAY_AREF(l->codes, i));
        if (found > most) most = found;
        if (found) rb_ary_push(watched, RARRAY_AREF(l->codes, i));
    }
    if (most < METHODS) return Qnil; /* only blocks: they may all have run while the file was loaded */
    uint32_t size = pw_loads_text_size(l->path);
    file *f = pw_noted(malloc(sizeof *f + size));
    if (!f) return Qnil;
    *f = (file){.index = RARRAY_LEN(state.kept), .size = size};
    memcpy(f->path, RSTRING_PTR(l->path), size);
    rb_ary_push(state.kept, tracepoints);
    VALUE options = rb_hash_new();
    for (long i = 0; i < RARRAY_LEN(watched); i++) {
        VALUE tracepoint = rb_tracepoint_new(Qnil, RUBY_EVENT_CALL | RUBY_EVENT_B_CALL, on_call, f);
        rb_hash_aset(options, ID2SYM(rb_intern("target")), RARRAY_AREF(watched, i));
        rb_funcallv_kw(tracepoint, rb_intern("enable"), 1, &options, RB_PASS_KEYWORDS);
        rb_ary_push(tracepoints, tracepoint);
    }
    put_row(f, false, true); /* last: a file that could not be watched is not called unused */
    return Qnil;
}

static void
protected(VALUE (*function)(VALUE), VALUE data)
{
    pw_own_begin();
    pw_attempt(function, data, NULL);
    pw_own_end();
}

static void
on_loaded(VALUE path, VALUE codes)
{
    if (!is_recorded() || !RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) == 0) return;
    loaded l = {path, codes};
    protected(watch, (VALUE)&l);
    RB_GC_GUARD(path);
    RB_GC_GUARD(codes);
}

/* ---- code is about to run ---- */

static VALUE
take_code(VALUE tracepoint)
{
    bool evaluated = RTEST(rb_funcall(tracepoint, rb_intern("eval_script"), 0));
    VALUE code = rb_funcall(tracepoint, rb_intern("instruction_sequence"), 0);
    VALUE codes = pw_loads_codes_of(rb_funcall(code, rb_intern("path"), 0), evaluated);
    if (!NIL_P(codes) && (!evaluated || defines(code))) rb_ary_push(codes, code);
    return Qnil;
}

static void
on_compiled(VALUE tracepoint, void *unused)
{
    if (is_recorded() && pw_loads_wanted()) protected(take_code, tracepoint);
}

/* ---- start and stop ---- */

void
pw_uses_init(void)
{
    pw_drain_take(PW_REC_USE, take);
    pw_loads_loaded = on_loaded;
    state.kept = Qnil;
    rb_gc_register_address(&state.kept);
    rb_gc_register_address(&state.compiled);
    rb_gc_register_address(&state.boot);
}

void
pw_uses_start(VALUE settings)
{
    state.on = pw_setting_is_on(settings, "used", false);
    if (!state.on) return;
    if (NIL_P(state.kept)) {
        state.kept = rb_ary_new();
        state.boot = rb_path2class("Pitwall::Collect::Boot");
        state.compiled = rb_tracepoint_new(Qnil, RUBY_EVENT_SCRIPT_COMPILED, on_compiled, NULL);
    }
    state.pid = getpid();
    rb_tracepoint_enable(state.compiled);
    atomic_store(&state.stopped, false);
    atomic_store(&state.active, true);
    write_unwritten();
}

/* The files' TracePoints are disabled one by one, by the next call of each. To disable thousands here would make the
 * end of the program late. */
void
pw_uses_stop(void)
{
    if (!atomic_exchange(&state.active, false)) return;
    write_unwritten();
    atomic_store(&state.stopped, true);
    rb_tracepoint_disable(state.compiled);
}

/* Files that the parent has loaded stay watched: the child may use them. */
void
pw_uses_in_child(void)
{
    if (atomic_exchange(&state.active, false)) rb_tracepoint_disable(state.compiled);
}

void
pw_uses_forget(bool frees)
{
    if (frees) pw_buffers_free(state.columns, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) state.columns[i] = (pw_buffer){0};
    state.rows = 0;
}
