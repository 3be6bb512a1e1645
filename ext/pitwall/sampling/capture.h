/* What a sample is: one thread's Ruby stack at one moment. A sample is written to the ring as the difference to the
 * thread's last sample.
 *
 * The tickers decide when to sample (ticker.h). The drain processes the samples (drain.c). */
#ifndef PITWALL_CAPTURE_H
#define PITWALL_CAPTURE_H

#include "output/intern.h"
#include "output/records.h"
#include "session/threads.h"

/* Takes the calling thread's stack, with the frame `leaf` on top (0: no extra frame). False: the ring is full.
 * async-signal-safe */
bool pw_capture(pw_thread *t, VALUE leaf, uint8_t state, uint16_t captures, int64_t wall, int64_t cpu);

/* Sends the calling thread's stack to the drain, unless the drain got the same stack last. Afterwards t->sample.serial
 * is the stack's number. False: the ring is full. async-signal-safe */
bool pw_capture_stack(pw_thread *t);

/* Where native frames are recorded: a step of a garbage collection begins in the calling thread, a tick comes within
 * it, and it ends. Other stacks are not taken meanwhile. If pw_capture_in_collection returns false, then the tick must
 * be noted until the step ends. */
void pw_capture_collection_begins(pw_thread *t);
/* async-signal-safe */
bool pw_capture_in_collection(pw_thread *t, VALUE leaf, uint8_t state, int64_t wall, int64_t cpu);
void pw_capture_collection_ends(pw_thread *t);

/* Takes the stack of another thread, which may be running. Must not be called during a garbage collection. False:
 * nothing was recorded, because the stack changed during every try (counted), because there is no stack (counted in
 * t->sample.empty), or because the ring is full. holds reader lock */
bool pw_capture_outside(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu);

/* Records an empty stack, for time with an unknown stack. async-signal-safe */
bool pw_capture_nothing(pw_thread *t, uint8_t state, int64_t wall, int64_t cpu);

/* The thread's CPU clock at `wall`. The next row is charged up to this value.
 *
 * Reading the CPU clock is a system call, and a quarter of a sample's cost. So the CPU time is estimated from the wall
 * clock for a thread that has the GVL, has not released the GVL, and used all its time so far. For such a thread the
 * clock is read at every fourth sample, which corrects any error. In all other cases the clock is read each time.
 *
 * A waiting stack is not charged for CPU time from before the wait. Otherwise half a tick a wait would move from the
 * code that ran to the code that sleeps. The next running sample gets that CPU time, as it would if only running
 * threads were sampled.
 *
 * async-signal-safe */
int64_t pw_cpu_to_charge(pw_thread *t, bool waiting, int64_t wall);

/* Writes a CHARGE or END record. async-signal-safe */
bool pw_charge(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu);
/* Like pw_charge, but under `label`: for time that ended earlier, perhaps under another label. async-signal-safe */
bool pw_charge_under(pw_thread *t, uint8_t kind, uint8_t state, int64_t wall, int64_t cpu, uint32_t label);

/* Writes a MARK record: a piece of work that began at `from` has ended. `parts`: its queries. */
bool pw_put_mark(pw_thread *t, int64_t from, int64_t until, const pw_query_part *parts, uint32_t count,
                 const pw_work_increase *increase);
/* Writes a QUERY record. False: the ring is full. */
bool pw_put_query(pw_thread *t, const pw_query_part *part);

#endif
