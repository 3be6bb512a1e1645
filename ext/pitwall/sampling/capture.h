/* What a sample is: one thread's Ruby stack at one moment, written to the ring as the difference to the thread's
 * last one.
 *
 * When to sample is the tickers' business (ticker.h); what becomes of a sample is the drain's (drain.c). */
#ifndef PITWALL_CAPTURE_H
#define PITWALL_CAPTURE_H

#include "output/intern.h"
#include "output/records.h"
#include "session/threads.h"

/* Takes the calling thread's stack. `leaf` is put on top (0: nothing). False when the ring is full.
 * async-signal-safe */
bool pw_capture(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu);

/* Tells the drain the calling thread's stack, if it is not the last one told: then t->sample.serial is its number.
 * False when the ring is full. async-signal-safe */
bool pw_capture_stack(pw_thread *t);

/* The same for another thread, which runs on: while no garbage is collected. holds reader lock. False: nothing was
 * recorded, as the stack changed too much at every try (counted), there is none (t->sample.empty counts on), or the
 * ring is full. */
bool pw_capture_outside(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu);

/* The same for time whose place nobody knows: an empty stack. async-signal-safe */
bool pw_capture_nothing(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu);

/* The thread's CPU clock at `wall`, up to which its next row is to be charged.
 *
 * Reading the clock is a system call and a quarter of a sample's cost. A thread that has the GVL, has not let go of
 * it and was seen to burn all its time gets its CPU time from the wall clock, and a reading every fourth sample,
 * into which any error flows. Anything else is read each time.
 *
 * A stack found waiting is not charged for what the thread burnt before it began to wait: half a tick a wait would
 * go from the code that ran to the code that sleeps. That time is due to the next running sample, as it would be if
 * only running threads were looked at.
 *
 * async-signal-safe */
int64_t pw_cpu_to_charge(pw_thread *t, bool waiting, int64_t wall);

/* Writes a CHARGE or END record. async-signal-safe */
bool pw_charge(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu);
/* The same for time that ended before now, when the thread worked under another label perhaps. async-signal-safe */
bool pw_charge_under(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu, uint32_t label);

/* Writes a MARK record: work that began at `from` has ended; parts: its queries. */
bool pw_put_mark(pw_thread *t, int64_t from, int64_t until, const pw_query_part *parts, uint32_t count);
/* Writes a QUERY record. False when the ring is full. */
bool pw_put_query(pw_thread *t, const pw_query_part *part);

#endif
