/* Replaces exec and exit!. Both end the process without at_exit, so the recording is completed before them.
 *
 * The methods are redefined as C functions on their owners. Owner, arity, visibility, ancestors and backtraces do not
 * change. */
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

/* If exec fails, the process continues and the recording restarts. */
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

/* The same rules as exit! in Ruby's process.c. */
static int
exit_status(int argc, const VALUE *argv)
{
    if (rb_check_arity(argc, 0, 1) == 0 || *argv == Qfalse) return EXIT_FAILURE;
    return *argv == Qtrue ? EXIT_SUCCESS : NUM2INT(*argv);
}

static VALUE
f_exit_now(int argc, VALUE *argv, VALUE self)
{
    int status = exit_status(argc, argv); /* before pw_complete: may raise */
    pw_complete("exit!");
    _exit(status);
}

/* Keeps a method that the program has redefined.
 * For a private method the lookup uses Object, not Kernel: Ruby 4.0 caches a module's lookup in a table of the module,
 * compaction does not update that table, and Ruby crashes. */
static void
replace(VALUE owner, const char *name, VALUE (*function)(int, VALUE *, VALUE), bool is_private)
{
    if (!rb_method_basic_definition_p(is_private ? rb_cObject : owner, rb_intern(name))) return;
    if (is_private) rb_define_private_method(owner, name, function, -1);
    else rb_define_method(owner, name, function, -1);
}

/* watch_endings: has an effect once a process. */
static VALUE
native_watch_endings(VALUE self)
{
    static bool watching;
    if (watching) return Qnil;
    watching = true;
    m_native = self;
    VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
    *verbose = Qnil; /* with -w Ruby warns about redefined methods */
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
