#include "code.h"

#include <ruby/encoding.h>

#include <string.h>

#include "data.h"
#include "gc_rest.h"
#include "main_ractor.h"
#include "pack_object.h"
#include "prefault.h"
#include "real_paths.h"
#include "require.h"
#include "tools.h"

#ifdef HAVE_RB_GET_COVERAGES
VALUE rb_get_coverages(void);
#endif

static VALUE vm_class, fastboot_module;
/* Modules that are prepended to the singleton class of RubyVM::InstructionSequence: Hook at the start, HookInFront when
 * another library's load_iseq has come before Hook's. */
static VALUE hook, hook_in_front;
static ID id_script_lines, id_debugger, id_keep_script_lines, id_keep_index, id_load, id_add, id_hit, id_from_others,
          id_load_iseq;

/* What the code of a file depends on beside the file, as the Ruby side saw it last (CompileCache#options_now). */
static struct {
    VALUE cache; /* asked where there is any doubt; nil: nobody is asked */
    VALUE pack, expected, counts;
    unsigned long changes; /* how many times the program has set an option */
    int options_known;     /* `sum` is of the compiler's options and warnings as they are */
    uint64_t sum;
    int source_known, source_kept; /* RubyVM.keep_script_lines */
} serving = {.cache = Qnil, .pack = Qnil, .expected = Qnil, .counts = Qnil};

/* The gem debug makes Ruby keep the source text of all code. Where Ruby has no text, the gem reads the file. So source
 * text that is kept for this gem counts as not kept. */
static int
source_is_kept(void)
{
    if (rb_const_defined(rb_cObject, id_script_lines)) return 1;
    if (!serving.source_known) serving.source_kept = RTEST(rb_funcall(vm_class, id_keep_script_lines, 0));
    serving.source_known = 1;
    return serving.source_kept && !rb_const_defined(rb_cObject, id_debugger);
}

/* source_kept? -> does the program want the text of the code that it loads? */
static VALUE
native_source_kept(VALUE self)
{
    return source_is_kept() ? Qtrue : Qfalse;
}

/* The Methods that were replaced: InstructionSequence.compile_option=, RubyVM.keep_script_lines=, Warning[]=. */
static VALUE compile_option_before = Qnil, keep_script_lines_before = Qnil, warning_before = Qnil;

static VALUE
options_change(VALUE method, int argc, const VALUE *argv)
{
    VALUE result = rb_method_call(argc, argv, method);
    serving.changes++;
    serving.options_known = 0;
    serving.source_known = 0;
    return result;
}

static VALUE
set_compile_option(VALUE self, VALUE value)
{
    return options_change(compile_option_before, 1, &value);
}

static VALUE
set_keep_script_lines(VALUE self, VALUE value)
{
    return options_change(keep_script_lines_before, 1, &value);
}

static VALUE
set_warning(VALUE self, VALUE category, VALUE value)
{
    VALUE arguments[] = {category, value};
    return options_change(warning_before, 2, arguments);
}

static VALUE
native_watch_options(VALUE self)
{
    VALUE code = rb_path2class("RubyVM::InstructionSequence");
    compile_option_before = fb_replace_method(code, "compile_option=", set_compile_option, 1);
    keep_script_lines_before = fb_replace_method(vm_class, "keep_script_lines=", set_keep_script_lines, 1);
    warning_before = fb_replace_method(rb_path2class("Warning"), "[]=", set_warning, 2);
    return Qnil;
}

/* The strings of `__FILE__` and `__dir__` have encodings. They are part of the code, and depend on the process. */
static uint64_t
with_encodings(uint64_t options, VALUE path)
{
    rb_encoding *of_path = rb_enc_get(path), *of_real_path = rb_filesystem_encoding();
    if (of_path == rb_utf8_encoding() && of_real_path == of_path) return options;
    const char *name = rb_enc_name(of_path), *real_name = rb_enc_name(of_real_path);
    return options ^ fb_sum(name, strlen(name)) ^ fb_sum(real_name, strlen(real_name) + 1);
}

/* with_encodings(options, path) -> the options of a file's code, in this process */
static VALUE
native_with_encodings(VALUE self, VALUE options, VALUE path)
{
    StringValue(path);
    return ULL2NUM(with_encodings(NUM2ULL(options), path));
}

/* The code, where nothing speaks against it; otherwise nil. Always nil on Rubies without rb_get_coverages: this
 * code can't tell there whether Coverage runs. */
static VALUE
undoubted_code(VALUE path)
{
    if (NIL_P(serving.pack) || RHASH_SIZE(serving.expected) > 0 || RTEST(ruby_verbose)) return Qnil;
#ifdef HAVE_RB_GET_COVERAGES
    if (RTEST(rb_get_coverages())) return Qnil;
#else
    return Qnil;
#endif
    if (source_is_kept() || !serving.options_known) return Qnil;
    VALUE code = fb_load_from_pack(fb_pack_of(serving.pack), FB_CODE, path, with_encodings(serving.sum, path));
    return SYMBOL_P(code) ? Qnil : code;
}

/* Set while the program has a RubyVM::InstructionSequence.load_iseq of its own, defined after this library. That method
 * is asked first. */
static int program_has_load_iseq;

static VALUE
method_added(VALUE self, VALUE name)
{
    if (rb_to_id(name) == id_load_iseq) program_has_load_iseq = 1;
    return rb_call_super(1, &name);
}

static VALUE
method_gone(VALUE self, VALUE name)
{
    if (rb_to_id(name) == id_load_iseq) program_has_load_iseq = 0;
    return rb_call_super(1, &name);
}

static int is_in_front;   /* HookInFront is prepended. Its load_iseq answers. That of Hook only passes on to `super` */
static int others_behind; /* another library's load_iseq was there before Hook's */

/* The code of a file. Other Ractors compile for themselves.
 * others: is there another load_iseq? It is asked first. */
static VALUE
code_of(VALUE path, int others)
{
    int is_main = fb_in_main_ractor();
    if (is_main) {
        fb_note_load();
        if (!fb_require_was_called()) {
            rb_funcall(fastboot_module, id_keep_index, 0);
            if (!NIL_P(serving.pack)) fb_know_real_paths_beside(fb_pack_of(serving.pack), path);
        }
        fb_gc_rest_loads();
        fb_prefault_loads();
    }
    if (others) {
        VALUE code = rb_call_super(1, &path);
        if (RTEST(code)) {
            if (is_main && !NIL_P(serving.counts)) rb_funcall(serving.counts, id_add, 1, ID2SYM(id_from_others));
            return code;
        }
    }
    if (!is_main || NIL_P(serving.cache)) return Qnil;

    VALUE code = undoubted_code(path);
    if (NIL_P(code)) return rb_funcall(serving.cache, id_load, 1, path);
    rb_funcall(serving.counts, id_add, 1, ID2SYM(id_hit));
    return code;
}

/* RubyVM::InstructionSequence.load_iseq. Ruby calls it for each file that it loads. */
static VALUE
load_iseq(VALUE self, VALUE path)
{
    int others = program_has_load_iseq || others_behind;
    if (!is_in_front) return code_of(path, others);
    return others ? rb_call_super(1, &path) : Qnil;
}

static VALUE
load_iseq_in_front(VALUE self, VALUE path)
{
    return code_of(path, 1);
}

/* RubyVM::InstructionSequence.singleton_class.prepend. The module that is prepended may have a load_iseq that answers
 * nil, as bootsnap's does if bootsnap is disabled (unless the application compiles with options). So HookInFront is
 * prepended next. This is done once. */
static VALUE
prepend(int argc, VALUE *argv, VALUE singleton)
{
    VALUE result = rb_call_super(argc, argv);
    VALUE code = rb_path2class("RubyVM::InstructionSequence");
    if (is_in_front || !rb_respond_to(code, id_load_iseq)) return result;
    if (rb_funcall(rb_obj_method(code, ID2SYM(id_load_iseq)), rb_intern("owner"), 0) == hook) return result;

    is_in_front = 1;
    rb_prepend_module(rb_singleton_class(code), hook_in_front);
    return result;
}

/* take_hook(the load_iseq of another library, or nil): Hook comes before it, and asks it before the pack. */
static VALUE
native_take_hook(VALUE self, VALUE others)
{
    VALUE code = rb_singleton_class(rb_path2class("RubyVM::InstructionSequence"));
    others_behind = RTEST(others);
    rb_prepend_module(code, hook);
    rb_define_singleton_method(code, "prepend", prepend, -1);
    return Qnil;
}

/* Native.serve(cache, pack or nil, expected files, counts) */
static VALUE
native_serve(VALUE self, VALUE cache, VALUE pack, VALUE expected, VALUE counts)
{
    if (!NIL_P(pack)) fb_pack_of(pack);
    Check_Type(expected, T_HASH);
    serving.cache = cache;
    serving.pack = pack;
    serving.expected = expected;
    serving.counts = counts;
    return Qnil;
}

/* option_changes -> how many times the program has set an option that the code of files depends on */
static VALUE
native_option_changes(VALUE self)
{
    return ULONG2NUM(serving.changes);
}

/* options_are(sum, changes): `sum` belongs to the options as they were after `changes` changes. If there were more
 * changes since, `sum` is not used. */
static VALUE
native_options_are(VALUE self, VALUE sum, VALUE changes)
{
    serving.sum = NUM2ULL(sum);
    serving.options_known = NUM2ULONG(changes) == serving.changes;
    return Qnil;
}

#ifdef HAVE_RB_GET_COVERAGES
/* Is code being compiled so that its runs are counted? */
static VALUE
native_covered(VALUE self)
{
    return RTEST(rb_get_coverages()) ? Qtrue : Qfalse;
}
#endif

void
fb_define_code(VALUE fastboot, VALUE native)
{
    id_script_lines = rb_intern("SCRIPT_LINES__");
    id_debugger = rb_intern("DEBUGGER__");
    id_keep_script_lines = rb_intern("keep_script_lines");
    id_keep_index = rb_intern("keep_index");
    id_load = rb_intern("load");
    id_load_iseq = rb_intern("load_iseq");
    id_add = rb_intern("add");
    id_hit = rb_intern("hit");
    id_from_others = rb_intern("from_others");
    vm_class = rb_path2class("RubyVM");
    fastboot_module = fastboot;
    fb_hold((VALUE *const[]){&vm_class, &fastboot_module, &serving.cache, &serving.pack, &serving.expected,
                             &serving.counts, &compile_option_before, &keep_script_lines_before, &warning_before,
                             NULL});

    hook = rb_define_module_under(fastboot, "Hook");
    rb_define_method(hook, "load_iseq", load_iseq, 1);
    hook_in_front = rb_define_module_under(fastboot, "HookInFront");
    rb_define_method(hook_in_front, "load_iseq", load_iseq_in_front, 1);
    rb_define_private_method(hook, "singleton_method_added", method_added, 1);
    rb_define_private_method(hook, "singleton_method_removed", method_gone, 1);
    rb_define_private_method(hook, "singleton_method_undefined", method_gone, 1);
    rb_define_singleton_method(native, "take_hook", native_take_hook, 1);
    rb_define_singleton_method(native, "source_kept?", native_source_kept, 0);
    rb_define_singleton_method(native, "serve", native_serve, 4);
    rb_define_singleton_method(native, "watch_options", native_watch_options, 0);
    rb_define_singleton_method(native, "option_changes", native_option_changes, 0);
    rb_define_singleton_method(native, "options_are", native_options_are, 2);
    rb_define_singleton_method(native, "with_encodings", native_with_encodings, 2);
#ifdef HAVE_RB_GET_COVERAGES
    rb_define_singleton_method(native, "covered?", native_covered, 0);
#endif
}
