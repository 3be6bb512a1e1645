#include "collectors/allocations/state.h"

pw_allocations_state pw_alloc;

static VALUE sym_total;

size_t pw_alloc_total(void) { return rb_gc_stat(sym_total); }
void pw_alloc_state_init(void) { sym_total = ID2SYM(rb_intern("total_allocated_objects")); }
