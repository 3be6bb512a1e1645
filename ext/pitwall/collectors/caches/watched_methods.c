#include "collectors/caches/watched_methods.h"
#include "collectors/caches/change_notes.h"
#include "collectors/caches/changes.h"
#include "collectors/caches/line_watch.h"
#include "tools/quietly.h"
#include "vm/replaced_methods.h"
#include <string.h>

/* Whose method it is. */
enum { OF_MODULE, OF_CLASS, OF_OBJECT, OF_STRUCT_ITSELF, OF_DATA_ITSELF, OF_MAIN, OF_KERNEL_ITSELF };

typedef struct {
    int owner;
    const char *name;
    int argc;                   /* as given to rb_define_method */
    const pw_call_notes *notes; /* NULL: a hook, which Ruby calls after a change */
    ID id;
} watched;

static watched methods[] = {
    {OF_MODULE, "method_added", 1, NULL},
    {OF_MODULE, "method_removed", 1, NULL},
    {OF_MODULE, "method_undefined", 1, NULL},
    {OF_OBJECT, "singleton_method_added", 1, NULL},
    {OF_OBJECT, "singleton_method_removed", 1, NULL},
    {OF_OBJECT, "singleton_method_undefined", 1, NULL},
    {OF_MODULE, "const_added", 1, NULL},
    {OF_CLASS, "inherited", 1, NULL},
    {OF_MODULE, "const_set", 2, &pw_notes_const_set},
    {OF_MODULE, "remove_const", 1, &pw_notes_const_remove},
    {OF_MODULE, "autoload", 2, &pw_notes_autoload},
    {OF_OBJECT, "autoload", 2, &pw_notes_autoload},
    {OF_KERNEL_ITSELF, "autoload", 2, &pw_notes_autoload},
    {OF_MODULE, "private_constant", -1, &pw_notes_const_visibility},
    {OF_MODULE, "public_constant", -1, &pw_notes_const_visibility},
    {OF_MODULE, "deprecate_constant", -1, &pw_notes_const_visibility},
    {OF_MODULE, "append_features", 1, &pw_notes_include},
    {OF_MODULE, "prepend_features", 1, &pw_notes_prepend},
    {OF_MODULE, "extend_object", 1, &pw_notes_extend},
    {OF_MODULE, "refine", 1, &pw_notes_refine},
    {OF_MODULE, "using", 1, &pw_notes_using},
    {OF_MAIN, "using", 1, &pw_notes_using},
    {OF_MODULE, "define_method", -1, &pw_notes_define},
    {OF_MODULE, "attr_accessor", -1, &pw_notes_define},
    {OF_MODULE, "attr_reader", -1, &pw_notes_define},
    {OF_MODULE, "attr_writer", -1, &pw_notes_define},
    {OF_MODULE, "attr", -1, &pw_notes_define},
    {OF_MODULE, "alias_method", 2, &pw_notes_alias},
    {OF_MODULE, "public", -1, &pw_notes_visibility},
    {OF_MODULE, "private", -1, &pw_notes_visibility},
    {OF_MODULE, "protected", -1, &pw_notes_visibility},
    {OF_MODULE, "module_function", -1, &pw_notes_visibility},
    {OF_MODULE, "private_class_method", -1, &pw_notes_singleton_visibility},
    {OF_MODULE, "public_class_method", -1, &pw_notes_singleton_visibility},
    {OF_MODULE, "remove_method", -1, &pw_notes_remove_method},
    {OF_MODULE, "undef_method", -1, &pw_notes_undef_method},
    {OF_OBJECT, "define_singleton_method", -1, &pw_notes_define_singleton},
    {OF_OBJECT, "singleton_class", 0, &pw_notes_singleton_class},
    {OF_CLASS, "initialize", -1, &pw_notes_class},
    {OF_MODULE, "initialize", 0, &pw_notes_module},
    {OF_MODULE, "initialize_copy", 1, &pw_notes_copy},
    {OF_STRUCT_ITSELF, "new", -1, &pw_notes_struct},
    {OF_DATA_ITSELF, "define", -1, &pw_notes_struct},
    {OF_OBJECT, "instance_variable_set", 2, &pw_notes_variable},
    {OF_OBJECT, "remove_instance_variable", 1, &pw_notes_variable},
    {OF_MODULE, "class_variable_set", 2, &pw_notes_class_variable},
    {OF_MODULE, "remove_class_variable", 1, &pw_notes_class_variable},
    {OF_OBJECT, "set_trace_func", 1, &pw_notes_trace_func},
};

enum { METHODS = sizeof methods / sizeof *methods };

static pw_replaced_method replaced_list[METHODS]; /* by the index in `methods` */
static pw_replaced_methods replaced = {replaced_list, METHODS, 0};

/* Not inlined: gcc would warn of argv[1] where a caller has one argument. */
static __attribute__((noinline)) VALUE
call_own(const watched *m, int argc, const VALUE *argv, VALUE self)
{
    void *own = replaced_list[m - methods].own;
    switch (m->argc) {
      case 0: return ((VALUE (*)(VALUE))own)(self);
      case 1: return ((VALUE (*)(VALUE, VALUE))own)(self, argv[0]);
      case 2: return ((VALUE (*)(VALUE, VALUE, VALUE))own)(self, argv[0], argv[1]);
      default: return ((VALUE (*)(int, const VALUE *, VALUE))own)(argc, argv, self);
    }
}

typedef struct {
    const watched *method;
    pw_watched_call call;
    int open;
} running;

static VALUE
run_own(VALUE data)
{
    running *r = (running *)data;
    r->call.result = call_own(r->method, r->call.argc, r->call.argv, r->call.self);
    r->call.returned = true;
    return r->call.result;
}

static VALUE
note_begin(VALUE data)
{
    running *r = (running *)data;
    const pw_call_notes *notes = r->method->notes;
    if (!notes) {
        pw_hook_called(r->method->id, r->call.self, r->call.argv[0], r->call.place);
        return Qnil;
    }
    if (notes->makes_class) {
        pw_vm_counters_claim(r->call.increase);
        pw_line_earlier(r->call.increase);
    }
    else if (pw_vm_counters_changed()) pw_line_changed(r->call.place.ec, r->call.place.cfp + PW_CFP_WORDS);
    if (notes->before) notes->before(&r->call);
    return Qnil;
}

static VALUE
note_end(VALUE data)
{
    running *r = (running *)data;
    uint64_t increase[PW_VM_COUNTERS];
    pw_vm_counters_claim(increase);
    for (int i = 0; i < PW_VM_COUNTERS; i++) r->call.increase[i] += increase[i];
    r->method->notes->after(&r->call);
    return Qnil;
}

/* Also runs if the method raises. */
static VALUE
run_ended(VALUE data)
{
    running *r = (running *)data;
    r->call.noted = pw_call_close(r->open, r->call.place, r->call.increase);
    if (pw_changes_wanted()) pw_go_on(pw_quietly(note_end, data, NULL));
    return Qnil;
}

static VALUE
run(const watched *m, int argc, const VALUE *argv, VALUE self)
{
    running r = {.method = m, .call = {.self = self, .argc = argc, .argv = argv}};
    if (!pw_changes_wanted() || !pw_call_here(&r.call.place)) return call_own(m, argc, argv, self);
    int state = pw_quietly(note_begin, (VALUE)&r, NULL);
    pw_go_on(state);
    if (state || !m->notes) return call_own(m, argc, argv, self);
    r.open = pw_call_open(r.call.place);
    return rb_ensure(run_own, (VALUE)&r, run_ended, (VALUE)&r);
}

/* ---- functions in place of the methods' own ---- */

/* A C function is not told which method called it, so each method has functions of its own, one for each number of
 * arguments. */
#define SLOT(i) \
    static VALUE none_##i(VALUE self) { return run(&methods[i], 0, NULL, self); } \
    static VALUE one_##i(VALUE self, VALUE a) { return run(&methods[i], 1, (VALUE[]){a}, self); } \
    static VALUE two_##i(VALUE self, VALUE a, VALUE b) { return run(&methods[i], 2, (VALUE[]){a, b}, self); } \
    static VALUE any_##i(int argc, VALUE *argv, VALUE self) { return run(&methods[i], argc, argv, self); }
#define ROW(i) {(void *)any_##i, (void *)none_##i, (void *)one_##i, (void *)two_##i},
#define SLOTS(S) \
    S(0) S(1) S(2) S(3) S(4) S(5) S(6) S(7) S(8) S(9) S(10) S(11) S(12) S(13) S(14) S(15) S(16) S(17) S(18) \
    S(19) S(20) S(21) S(22) S(23) S(24) S(25) S(26) S(27) S(28) S(29) S(30) S(31) S(32) S(33) S(34) S(35) \
    S(36) S(37) S(38) S(39) S(40) S(41) S(42) S(43) S(44) S(45) S(46) S(47)
enum { SLOT_COUNT = 48 };
_Static_assert((int)METHODS == (int)SLOT_COUNT, "every watched method has a slot");

SLOTS(SLOT)
static void *const functions[SLOT_COUNT][4] = {SLOTS(ROW)}; /* by the number of arguments, plus 1 */

/* ---- start and stop ---- */

static VALUE
constant(const char *name)
{
    ID id = rb_intern(name);
    return rb_const_defined(rb_cObject, id) ? rb_const_get(rb_cObject, id) : Qnil;
}

static VALUE
method_of(const watched *m)
{
    VALUE name = ID2SYM(m->id), object = Qnil, of = m->owner == OF_CLASS ? rb_cClass : rb_cModule;
    switch (m->owner) {
      case OF_STRUCT_ITSELF: object = constant("Struct"); break;
      case OF_DATA_ITSELF: object = constant("Data"); break;
      case OF_KERNEL_ITSELF: object = rb_mKernel; break;
      case OF_MAIN: object = rb_funcall(constant("TOPLEVEL_BINDING"), rb_intern("receiver"), 0); break;
      case OF_OBJECT: of = rb_cObject; break;
    }
    bool of_class = m->owner <= OF_OBJECT;
    if (!of_class) return NIL_P(object) || !rb_obj_respond_to(object, m->id, 1) ? Qnil : rb_obj_method(object, name);
    return rb_method_boundp(of, m->id, 0) ? rb_funcall(of, rb_intern("instance_method"), 1, name) : Qnil;
}

const char *
pw_watched_methods_start(void)
{
    int watching = 0;
    pw_replaced_clear(&replaced);
    for (int i = 0; i < METHODS; i++) {
        watched *m = &methods[i];
        m->id = rb_intern(m->name);
        watching += pw_replaced_find(&replaced, i, method_of(m), m->id, m->argc, functions[i][m->argc + 1]);
    }
    if (watching < METHODS / 2) return "cannot watch caches: this Ruby's methods are not as expected";
    pw_replaced_begin(&replaced);
    return NULL;
}

void pw_watched_methods_stop(void) { pw_replaced_end(&replaced); }
