/* The kinds of records in the ring, and the type of each. */
#ifndef PITWALL_RECORD_KINDS_H
#define PITWALL_RECORD_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* SYSCALL: pw_syscall_row (collectors/syscalls/syscall_after.h). CHANGE: pw_change_row (collectors/caches/changes.h).
 * LOAD: load_row (collectors/boot/loads.c). USE: use_row (collectors/boot/uses.c). REPEAT: repeat_row
 * (collectors/boot/repeats.c). A record of any other kind is a
 * pw_sample. */
enum { PW_REC_SAMPLE = 1, PW_REC_CHARGE, PW_REC_END, PW_REC_SYSCALL, PW_REC_STACK, PW_REC_MARK, PW_REC_QUERY,
      PW_REC_CHANGE, PW_REC_LOAD, PW_REC_USE, PW_REC_REPEAT, PW_REC_KINDS };

/* Does a record of this kind hold frames? GC marks such frames. */
static inline bool
pw_record_has_frames(uint8_t kind)
{
    return kind != PW_REC_SYSCALL && kind != PW_REC_CHANGE && kind != PW_REC_LOAD && kind != PW_REC_USE &&
           kind != PW_REC_REPEAT;
}

#endif
