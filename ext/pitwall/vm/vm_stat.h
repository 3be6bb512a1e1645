/* Counters that the VM keeps of its caches (RubyVM.stat). The C function of RubyVM.stat is called by its address, so
 * that reading one counter makes no object, no frame and no event. */
#ifndef PITWALL_VM_STAT_H
#define PITWALL_VM_STAT_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the function. False: RubyVM.stat is not Ruby's own, or the layout of this Ruby is not known. May raise.
 * needs GVL */
bool pw_vm_stat_find(void);
/* All counters: {class_serial: 12, ...}. May raise. needs GVL */
VALUE pw_vm_stat_all(void);
/* One counter. `name`: a Symbol that pw_vm_stat_all has. Only after the function was found. needs GVL */
uint64_t pw_vm_stat(VALUE name);

#endif
