/* Code that Ruby's JITs have compiled. */
#ifndef PITWALL_COMPILED_CODE_H
#define PITWALL_COMPILED_CODE_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Does this JIT compile code in this process? "YJIT", "ZJIT". Calls a Ruby method. needs GVL */
bool pw_jit_runs(const char *jit);
/* Has Ruby drop what its JITs have compiled. Ruby compiles it again later. needs GVL */
void pw_drop_compiled_code(void);

#endif
