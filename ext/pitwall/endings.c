/* exec and exit!: a process ends by them without at_exit. The recording is completed before.
 *
 * The methods are defined anew on their owners, as C functions again: owner, arity, visibility, ancestors and
 * backtraces stay. */
#include "endings.h"
#include "recording.h"
#include <stdlib.h>
#include <unistd.h>

static VALUE m_native;

static VALUE
call_exec(VALUE arguments)
{
    const VALUE *given = (const VALUE *)arguments;
    return rb_f_exec(RARRAY_LENINT(*given), RARRAY_CONST_PTR(*given));
}

static VALUE
go_on(VALUE unused)
{
    return rb_funcall(m_native, rb_intern("go_on"), 0);
}

/* Where exec fails the process goes on, and so does the recording. */
static VALUE
f_exec(int argc, VALUE *argv, VALUE self)
{
    if (!pw_complete("exec")) return rb_f_exec(argc, argv);
    VALUE given = rb_ary_new_from_values(argc, argv);
    int error = 0, other = 0;
    rb_protect(call_exec, (VALUE)&given, &error);
    VALUE raised = rb_errinfo();
    rb_protect(go_on, Qnil, &other);
    rb_set_errinfo(raised);
    rb_jump_tag(error);
}

/* As in Ruby's process.c. */
static int
exit_status(int argc, const VALUE *argv)
{
    if (rb_check_arity(argc, 0, 1) == 0 || *argv == Qfalse) return EXIT_FAILURE;
    return *argv == Qtrue ? EXIT_SUCCESS : NUM2INT(*argv);
}

static VALUE
f_exit_now(int argc, VALUE *argv, VALUE self)
{
    int status = exit_status(argc, argv); /* first: it may raise */
    pw_complete("exit!");
    _exit(status);
}

/* What the program has put in its place stays. Asked of a class: asked of a module, Ruby 4.0 keeps the answer in a
 * table of the module that compaction does not update, and crashes. */
static void
replace(VALUE owner, const char *name, VALUE (*function)(int, VALUE *, VALUE), bool is_private)
{
    if (!rb_method_basic_definition_p(is_private ? rb_cObject : owner, rb_intern(name))) return;
    if (is_private) rb_define_private_method(owner, name, function, -1);
    else rb_define_method(owner, name, function, -1);
}

/* watch_endings: once a process. */
static VALUE
native_watch_endings(VALUE self)
{
    static bool watching;
    if (watching) return Qnil;
    watching = true;
    m_native = self;
    VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
    *verbose = Qnil; /* with -w Ruby warns of methods that are defined twice */
    replace(rb_mKernel, "exec", f_exec, true);
    replace(rb_mKernel, "exit!", f_exit_now, true);
    VALUE modules[] = {rb_singleton_class(rb_mKernel), rb_singleton_class(rb_mProcess)};
    for (int i = 0; i < 2; i++) {
        replace(modules[i], "exec", f_exec, false);
        replace(modules[i], "exit!", f_exit_now, false);
    }
    *verbose = before;
    return Qnil;
}

void
pw_endings_init(VALUE native)
{
    rb_define_singleton_method(native, "watch_endings", native_watch_endings, 0);
}
