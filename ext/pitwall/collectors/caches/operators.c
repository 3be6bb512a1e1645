#include "collectors/caches/operators.h"
#include "vm/c_methods.h"
#include "vm/vm_compat.h"
#include <string.h>

enum { PREDICATES = 3 };

static struct {
    VALUE (*predicates[PREDICATES])(int argc, VALUE *argv, VALUE self);
    VALUE (*is_singleton)(VALUE self);
} state;

/* The methods that the VM runs without a call, by class (vm_init_redefined_flag in vm.c of Ruby 3.1 to 4.0). */
static const struct { const char *klass, *names; } operators[] = {
    {"Integer", " + - * / % == === < <= > >= <=> >> [] & | succ "},
    {"Float", " + - * / % == === < <= > >= <=> "},
    {"String", " + == === <=> << length size empty? =~ freeze -@ succ "},
    {"Array", " + << [] []= length size empty? min max hash include? pack freeze "},
    {"Hash", " [] []= length size empty? default freeze "},
    {"Symbol", " == === "},
    {"NilClass", " nil? === "},
    {"Regexp", " =~ "},
    {"Proc", " call "},
    {"TrueClass", " === "},
    {"FalseClass", " === "}};

static bool
is_text(VALUE string, const char *text, size_t size)
{
    return (size_t)RSTRING_LEN(string) == size && memcmp(RSTRING_PTR(string), text, size) == 0;
}

/* A program's method may have any name: with a NUL, with a space, none. */
static bool
is_among(const char *names, VALUE name)
{
    for (const char *at = names + 1, *end; *at; at = end + 1) {
        end = strchr(at, ' ');
        if (is_text(name, at, (size_t)(end - at))) return true;
    }
    return false;
}

bool
pw_is_basic_operator(VALUE module, ID name)
{
    VALUE path = RB_TYPE_P(module, T_CLASS) ? rb_mod_name(module) : Qnil, text = rb_id2str(name);
    if (!RB_TYPE_P(path, T_STRING) || !RB_TYPE_P(text, T_STRING)) return false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (is_text(path, operators[i].klass, strlen(operators[i].klass))) return is_among(operators[i].names, text);
    }
    return false;
}

int
pw_visibility_of(VALUE module, ID name)
{
    VALUE symbol = ID2SYM(name);
    for (int i = 0; i < PREDICATES; i++) {
        if (state.predicates[i] && RTEST(state.predicates[i](1, &symbol, module))) return i + 1;
    }
    return 0;
}

VALUE
pw_object_of_singleton(VALUE klass)
{
    if (!RB_TYPE_P(klass, T_CLASS) || !state.is_singleton || !RTEST(state.is_singleton(klass))) return Qundef;
    return pw_attached(klass);
}

void
pw_operators_init(void)
{
    static const char *const names[PREDICATES] = {
        "public_method_defined?", "protected_method_defined?", "private_method_defined?"};
    for (int i = 0; i < PREDICATES; i++) {
        ID id = rb_intern(names[i]);
        pw_c_method m = pw_c_method_of(rb_funcall(rb_cModule, rb_intern("instance_method"), 1, ID2SYM(id)), id);
        if (m.place && m.argc == -1) state.predicates[i] = (VALUE (*)(int, VALUE *, VALUE))*m.place;
    }
    ID singleton = rb_intern("singleton_class?");
    VALUE method = rb_funcall(rb_cModule, rb_intern("instance_method"), 1, ID2SYM(singleton));
    pw_c_method m = pw_c_method_of(method, singleton);
    if (m.place && m.argc == 0) state.is_singleton = (VALUE (*)(VALUE))*m.place;
}
