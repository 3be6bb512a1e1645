/* Loads: files and other steps of a boot, each within the one that caused it. A load that has ended is a row in the
 * ring. The drain turns rows into columns (LOAD of doc/record-format.md). */
#ifndef PITWALL_LOADS_H
#define PITWALL_LOADS_H

#include "output/ring.h"
#include "tools/hidden.h"
#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

/* The names are those of the recording. */
#define PW_LOAD_KINDS(KIND) \
    KIND(PW_LOAD_REQUIRE, "require") \
    KIND(PW_LOAD_REQUIRE_RELATIVE, "require_relative") \
    KIND(PW_LOAD_LOAD, "load") \
    KIND(PW_LOAD_AUTOLOAD, "autoload") \
    KIND(PW_LOAD_EVAL, "eval") \
    KIND(PW_LOAD_BUNDLER_SETUP, "bundler_setup") \
    KIND(PW_LOAD_BUNDLER_REQUIRE, "bundler_require") \
    KIND(PW_LOAD_INITIALIZER, "initializer") \
    KIND(PW_LOAD_EAGER_LOAD, "eager_load") \
    KIND(PW_LOAD_YAML, "yaml") \
    KIND(PW_LOAD_JSON, "json") \
    KIND(PW_LOAD_ZONEINFO, "zoneinfo")

enum {
#define PW_LOAD_CONSTANT(constant, name) constant,
    PW_LOAD_KINDS(PW_LOAD_CONSTANT)
#undef PW_LOAD_CONSTANT
    PW_LOADS
};

/* Does it read a file of data? Kinds that do are the last ones of the list. */
static inline bool pw_load_is_data(int kind) { return kind >= PW_LOAD_YAML; }

/* How a load ended. */
enum { PW_LOADED, PW_NOT_ENDED, PW_RAISED };

/* A load that has begun. id 0: it is not recorded. */
typedef struct { uint64_t id; uint32_t generation; } pw_load;

/* True: loads of the calling thread are recorded now. */
bool pw_loads_wanted(void);
/* needs GVL */
pw_load pw_load_begin(int kind, VALUE name);
/* The load is code of this line, rather than asked for by the caller's. needs GVL */
void pw_load_is_of(pw_load load, VALUE path, int line);
/* The load has returned, or raised. `path`: the file, where it is known; Qnil: the compiled one, if there was one.
 * needs GVL */
void pw_load_end(pw_load load, int ending, VALUE path);
/* The load found that there was nothing to do: the file had been loaded before. Its caller counts it. needs GVL */
void pw_load_was_done(pw_load load);
/* A cache of compiled code, or of files of data, was asked for the file that is being loaded. `outcome`: as the
 * cache itself calls it. `later`: why it did not keep a file that it did not have. needs GVL */
void pw_load_came_from(const char *cache, const char *outcome, bool of_code, bool of_data, bool later);

/* The Array of the codes (RubyVM::InstructionSequence) of the load whose file is about to run (`evaluated` false), or
 * under whose path code is evaluated. Qnil: there is none. needs GVL */
VALUE pw_loads_codes_of(VALUE path, bool evaluated);
/* Called with the path and the codes of a file that has been loaded and has codes. needs GVL */
extern PW_HIDDEN void (*pw_loads_loaded)(VALUE path, VALUE codes);
/* Called for each load that found its file loaded, until the boot ends. `around`: the id of the load around it, 0: none.
 * `name`: as the program asked for it; Qnil: not known. needs GVL */
extern PW_HIDDEN void (*pw_loads_repeated)(uint64_t around, int kind, VALUE name);
/* Room in the ring, for which it waits up to a second; NULL: there is none. The drain does not need the GVL, so waiting
 * with the GVL does not block the drain. */
void *pw_loads_reserve(uint32_t bytes);

/* How many bytes of a text a row has: at most 4,096. 0: it is no String */
uint32_t pw_loads_text_size(VALUE text);
/* The string id of a kind's name. holds session lock */
uint32_t pw_loads_kind_id(int kind);

void pw_loads_init(void);
/* `began`: when Pitwall's own code began to be loaded, ns; 0: not known. needs GVL */
void pw_loads_start(int64_t began);
void pw_loads_booted(void); /* a piece of work begins or ends; the first call counts. needs GVL */
void pw_loads_stop(void);  /* writes rows of what has not ended. needs GVL */
void pw_loads_in_child(void); /* needs GVL */
void pw_loads_mark(void);
void pw_loads_write_rows(void);
void pw_loads_write_sums(bool used); /* used: whether uses of files are recorded */
void pw_loads_forget(bool frees);

#endif
