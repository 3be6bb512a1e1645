/* A stack of Ruby's VM, made by hand as vm_layout.h describes it. Values grow upwards, control frames grow downwards.
 *
 * Each object ends right before an unmapped page, so a read beyond the end ends the test. No Ruby is linked: functions
 * at the end of this file stand in for Ruby's. */
#ifndef PITWALL_FAKE_VM_H
#define PITWALL_FAKE_VM_H

#include "known_frames.h"
#include "peek.h"
#include "stack_walk.h"
#include "vm_layout.h"
#include "walk_tests.h"
#include "unit.h"
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* no test uses all of it */

enum { PAGE = 4096, STACK_WORDS = 8 * PAGE / sizeof(VALUE), MOST_FRAMES = 200, CODES = 12, C_FUNCTIONS = 4 };
enum { METHOD = 0x1111, BLOCK = 0x2222, TOP = 0x4444, C_FUNCTION = 0x5555, C_BLOCK = 0x6666, DUMMY = 0x7999 };
enum { TAG = 1 };

/* Memory that ends right before an unmapped page. Another unmapped page lies before the first page of it. */
static VALUE *
guarded(size_t bytes)
{
    size_t inner = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *memory = mmap(NULL, inner + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    EQUAL(0, mprotect(memory + PAGE, inner, PROT_READ | PROT_WRITE));
    return (VALUE *)(memory + PAGE + inner - bytes);
}

/* An unmapped address. */
static VALUE
nowhere(void)
{
    static VALUE *memory;
    if (!memory) memory = guarded(16);
    return (VALUE)(memory + 2);
}

/* `words`: how many the walk may read; at least three, which the reader from outside reads at once. */
static VALUE *
internal_object_of(int type, size_t words)
{
    VALUE *object = guarded(words * sizeof(VALUE));
    object[0] = (VALUE)RUBY_T_IMEMO | (VALUE)type << RUBY_FL_USHIFT;
    return object;
}

static VALUE *internal_object(int type) { return internal_object_of(type, 3); }

typedef struct {
    VALUE iseq, entry; /* the code, and the method entry that it runs for */
    VALUE *body, *encoded;
    uint32_t size;
    int first_line;
} code;

static code codes[CODES];
static VALUE c_functions[C_FUNCTIONS], cref;

static VALUE
method_entry_of(int type, VALUE iseq)
{
    VALUE *entry = internal_object_of(PW_IMEMO_MENT, PW_ME_OWNER + 1), *definition = guarded(2 * sizeof(VALUE));
    definition[0] = (VALUE)type;
    definition[PW_DEF_CODE] = iseq;
    entry[PW_ME_DEF] = (VALUE)definition;
    return (VALUE)entry;
}

static void
make_code(code *c, uint32_t size, int first_line)
{
    VALUE *iseq = internal_object(PW_IMEMO_ISEQ);
    c->body = guarded(PW_BODY_WORDS * sizeof(VALUE));
    c->encoded = guarded(size * sizeof(VALUE));
    c->size = size;
    c->first_line = first_line;
    c->iseq = (VALUE)iseq;
    c->entry = method_entry_of(PW_METHOD_ISEQ, c->iseq);
    iseq[PW_ISEQ_BODY] = (VALUE)c->body;
    c->body[PW_BODY_ENCODED] = (VALUE)c->encoded;
    ((uint32_t *)c->body)[PW_BODY_SIZE] = size;
}

/* ---- the stack ---- */

typedef struct {
    VALUE frame, owner; /* what a walk has to list; 0: nothing */
    const code *code;
    VALUE *ep, *sp;     /* sp: of the values below it */
    VALUE *method_ep;   /* of the method around it */
} pushed;

typedef struct {
    VALUE *base, *end, *ec, *sp;
    pushed frames[MOST_FRAMES];
    uint32_t depth;
} fiber;

static fiber main_fiber, *running = &main_fiber;
static uint8_t *thread;

static VALUE *cfp_of(const fiber *f) { return (VALUE *)f->ec[PW_EC_CFP]; }
static VALUE *leaf(void) { return cfp_of(running); }

/* The control frame number `i` from the root. */
static VALUE *
control_frame(const fiber *f, uint32_t i)
{
    return f->end - (size_t)(PW_ROOT_FRAMES + 1 + i) * PW_CFP_WORDS;
}

static VALUE *
push_frame(VALUE pc, VALUE iseq, VALUE me_cref, VALUE specval, VALUE flags)
{
    fiber *f = running;
    VALUE *ep = f->sp + unit_random(3) + 2, *cfp = cfp_of(f) - PW_CFP_WORDS;
    CHECK(ep + 8 < cfp);
    ep[PW_EP_ME_CREF] = me_cref;
    ep[PW_EP_SPECVAL] = specval;
    ep[PW_EP_FLAGS] = flags;
    f->sp = ep + 1;
    cfp[PW_CFP_PC] = pc;
    cfp[PW_CFP_SP] = (VALUE)f->sp;
    cfp[PW_CFP_ISEQ] = iseq;
    cfp[PW_CFP_EP] = (VALUE)ep;
    f->ec[PW_EC_CFP] = (VALUE)cfp;
    return ep;
}

static void
note_pushed(VALUE frame, VALUE owner, const code *c, VALUE *sp, VALUE *ep, VALUE *method_ep)
{
    CHECK(running->depth < MOST_FRAMES);
    running->frames[running->depth++] = (pushed){frame, owner, c, ep, sp, method_ep};
}

static VALUE pc_at(const code *c, uint32_t position) { return (VALUE)(c->encoded + position); }

static void
push_method(const code *c)
{
    VALUE flags = (VALUE)METHOD << 16 | PW_ENV_LOCAL | TAG;
    VALUE *sp = running->sp, *ep = push_frame(pc_at(c, 1), c->iseq, c->entry, 0, flags);
    note_pushed(c->iseq, c->entry, c, sp, ep, ep);
}

/* A block of the method that is around the frame on top. */
static void
push_block(const code *c)
{
    const pushed *below = &running->frames[running->depth - 1];
    VALUE parent = (VALUE)below->method_ep | 1, flags = (VALUE)BLOCK << 16 | TAG;
    VALUE *sp = running->sp, *ep = push_frame(pc_at(c, 1), c->iseq, cref, parent, flags);
    note_pushed(c->iseq, below->owner, c, sp, ep, below->method_ep); /* the owner is the method's */
}

/* A file's own code: no method. */
static void
push_top(const code *c)
{
    VALUE *sp = running->sp, *ep = push_frame(pc_at(c, 1), c->iseq, cref, 0, (VALUE)TOP << 16 | PW_ENV_LOCAL | TAG);
    note_pushed(c->iseq, 0, c, sp, ep, ep);
}

static void
push_c_function(VALUE entry)
{
    VALUE flags = (VALUE)C_FUNCTION << 16 | PW_FRAME_C | PW_ENV_LOCAL | TAG;
    VALUE *sp = running->sp, *ep = push_frame(0, 0, entry, 0, flags);
    note_pushed(entry, 0, NULL, sp, ep, ep);
}

/* A block that is a C function. Called by a C function, it is listed under that function; by Ruby code, it is not
 * listed. */
static void
push_c_block(void)
{
    const pushed *below = &running->frames[running->depth - 1];
    VALUE parent = (VALUE)below->method_ep | 1, flags = (VALUE)C_BLOCK << 16 | PW_FRAME_C | TAG;
    VALUE *sp = running->sp, *ep = push_frame(0, 0, 0, parent, flags);
    note_pushed(below->code ? 0 : below->frame, 0, NULL, sp, ep, below->method_ep);
}

static void
pop(void)
{
    CHECK(running->depth > 0);
    running->sp = running->frames[--running->depth].sp;
    running->ec[PW_EC_CFP] += PW_CFP_BYTES;
}

static void
pop_to(uint32_t depth)
{
    while (running->depth > depth) pop();
}

/* Pushes a frame of a random kind. A block's code always belongs to the same method: code 6 to code 0, up to 11 to 5.
 * */
static void
push_any(void)
{
    const pushed *below = running->depth ? &running->frames[running->depth - 1] : NULL;
    const code *c = &codes[unit_random(4)], *top = &codes[4 + unit_random(2)];
    switch (unit_random(7)) {
      case 0: push_c_function(c_functions[unit_random(C_FUNCTIONS)]); break;
      case 1: push_top(top); break;
      case 2:
        if (below) push_c_block();
        else push_top(top);
        break;
      case 3:
      case 4:
        for (uint32_t i = 0; below && below->code && i < 6; i++) {
            if (below->code != &codes[i]) continue;
            push_block(&codes[6 + i]);
            return;
        }
        push_method(c);
        break;
      default: push_method(c);
    }
}

/* Moves the pc of the frame on top. */
static void
step(void)
{
    const code *c = running->depth ? running->frames[running->depth - 1].code : NULL;
    if (c) leaf()[PW_CFP_PC] = pc_at(c, 1 + unit_random(c->size));
}

static int
line_of_frame(const fiber *f, uint32_t i)
{
    const code *c = f->frames[i].code;
    VALUE pc = control_frame(f, i)[PW_CFP_PC];
    if (!c) return 0;
    bool within = pc >= (VALUE)c->encoded && pc <= (VALUE)(c->encoded + c->size);
    size_t position = within ? (pc - (VALUE)c->encoded) / sizeof(VALUE) : 0;
    return c->first_line + (int)(position ? position - 1 : 0);
}

static void
make_fiber(fiber *f)
{
    *f = (fiber){.base = guarded(STACK_WORDS * sizeof(VALUE)), .ec = guarded(PW_EC_WORDS * sizeof(VALUE))};
    f->end = f->base + STACK_WORDS;
    f->sp = f->base;
    f->ec[PW_EC_STACK] = (VALUE)f->base;
    f->ec[PW_EC_STACK_WORDS] = STACK_WORDS;
    f->ec[PW_EC_CFP] = (VALUE)f->end;
    fiber *before = running;
    running = f;
    VALUE flags = (VALUE)DUMMY << 16 | PW_FRAME_C | PW_ENV_LOCAL | TAG;
    for (int i = 0; i < PW_ROOT_FRAMES; i++) push_frame(0, 0, 0, 0, flags);
    running = before;
}

/* Makes `f` the fiber that the thread runs. */
static void
switch_fiber(fiber *f)
{
    running = f;
    *(VALUE **)(thread + PW_THREAD_EC) = f ? f->ec : NULL;
}

/* ---- walks ---- */

static pw_walk
new_walk(uint32_t room)
{
    pw_walk w = {.thread = thread, .every_owner = true};
    pw_walk_place(&w, guarded(pw_walk_bytes(room)), room);
    return w;
}

/* Checks that the walk saw the frames of `f` from number `cut` to `depth` - 1, counted from the root. */
static void
expect_part(const pw_walk *w, const fiber *f, uint32_t cut, uint32_t depth)
{
    uint32_t listed = 0;
    EQUAL(depth - cut, w->depth);
    for (uint32_t i = cut; i < depth; i++) {
        const pw_frame_seen *seen = &w->seen[i - cut];
        unit_note("frame %u of %u", i, depth);
        EQUAL(f->frames[i].frame, seen->frame);
        EQUAL(line_of_frame(f, i), seen->line);
        EQUAL(f->frames[i].owner, seen->owner);
        EQUAL(listed += f->frames[i].frame != 0, seen->listed);
        EQUAL(listed, pw_walk_listed(w, i - cut + 1));
    }
}

static void expect_stack(const pw_walk *w) { expect_part(w, running, 0, running->depth); }

/* ---- Ruby ---- */

static uint32_t lines_asked;
static int lesson_tests;              /* how many tests passed, as the lesson's code answers */
static const char *lessons_given[10]; /* names of the tests in the lessons */
static int lesson_count;

/* The reader from outside passes a copy of the iseq, so the code is found by its body. */
unsigned int
rb_iseq_line_no(const void *iseq, size_t position)
{
    const VALUE *body = (const VALUE *)((const VALUE *)iseq)[PW_ISEQ_BODY];
    lines_asked++;
    for (int i = 0; i < CODES; i++) {
        if (codes[i].body == body) return (unsigned int)(codes[i].first_line + (int)position);
    }
    unit_fail(__FILE__, __LINE__, "rb_iseq_line_no: no code has the body 0x%" PRIx64, (uint64_t)(uintptr_t)body);
}

#undef rb_funcall
#undef rb_intern
#undef rb_str_new_cstr
#undef rb_define_singleton_method
#undef rb_str_new
#undef rb_str_new_static
enum { LESSON = 8, SITES_LESSON = 16 };
void rb_define_singleton_method(VALUE object, const char *name, VALUE (*function)(ANYARGS), int arguments) {}
VALUE rb_module_new(void) { return 24; }
ID rb_intern(const char *name) { return 1; }
ID rb_intern2(const char *name, long length) { return 1; }
VALUE rb_str_new_cstr(const char *text) { return SITES_LESSON; }
VALUE rb_str_new(const char *text, long length) { return SITES_LESSON; }
VALUE rb_str_new_static(const char *text, long length) { return SITES_LESSON; }
VALUE rb_errinfo(void) { return Qnil; }
VALUE rb_protect(VALUE (*function)(VALUE), VALUE argument, int *error) { return *error = 0, function(argument); }

VALUE
rb_sprintf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (lesson_count < 10) lessons_given[lesson_count++] = va_arg(arguments, const char *);
    va_end(arguments);
    return LESSON;
}

VALUE
rb_funcallv(VALUE receiver, ID name, int count, const VALUE *arguments)
{
    return arguments[0] == LESSON ? INT2FIX(lesson_tests) : Qtrue;
}

VALUE
rb_funcall(VALUE receiver, ID name, int count, ...)
{
    va_list arguments;
    va_start(arguments, count);
    VALUE first = va_arg(arguments, VALUE);
    va_end(arguments);
    return rb_funcallv(receiver, name, count, &first);
}

/* Ruby's headers define errno by it from Ruby 3.3 on. */
int *rb_errno_ptr(void);
int *rb_errno_ptr(void) { return __errno_location(); }

/* Functions of Pitwall's other parts. */
const char *pw_other_gc(void) { return NULL; }
void pw_reader_lock(void) {}
void pw_reader_unlock(void) {}

/* Has the walk proven by a Ruby whose self-tests pass. The number of tests in a lesson is private, so all numbers are
 * tried. */
static void
begin(void)
{
    static bool made;
    if (!made) {
        thread = (uint8_t *)guarded(PW_THREAD_EC + sizeof(VALUE));
        for (int i = 0; i < CODES; i++) make_code(&codes[i], (uint32_t)(3 + 2 * i), 1000 * (i + 1));
        for (int i = 0; i < C_FUNCTIONS; i++) c_functions[i] = method_entry_of(PW_METHOD_CFUNC, 0);
        cref = (VALUE)internal_object(PW_IMEMO_CREF);
        for (lesson_tests = 1; lesson_tests < 1000; lesson_tests++) {
            pw_walk_tests_init(0);
            if (!pw_walk_refusal()) break;
        }
        EQUAL_TEXT("walk_self_test", lessons_given[0]);
        EQUAL(0, pw_peek_init());
        made = true;
    }
    CHECK(pw_walk_in_use());
    make_fiber(&main_fiber);
    switch_fiber(&main_fiber);
    pw_known_clear();
    lines_asked = 0;
}

#endif
