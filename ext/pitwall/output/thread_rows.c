#include "output/thread_rows.h"
#include "output/output.h"

static struct {
    pw_thread *ended; /* ended threads whose THRD row is not yet written, or that are still entered */
    uint32_t count;   /* threads ended since the last flush */
} state;

void
pw_thread_rows_init(void)
{
    state.ended = NULL;
    state.count = 0;
}

uint32_t
pw_thread_rows_end(pw_thread *t)
{
    for (pw_thread **at = &pw_current.threads; *at; at = &(*at)->next) {
        if (*at != t) continue;
        *at = t->next;
        t->next = state.ended;
        state.ended = t;
        state.count++;
        break;
    }
    return state.count;
}

static uint32_t
announce(pw_buffer *columns, pw_thread *list)
{
    uint32_t n = 0;
    for (pw_thread *t = list; t; t = t->next) {
        pid_t native = atomic_load(&t->carrier.native);
        if (t->drain.announced && (t->drain.announced_native || !native)) continue;
        int64_t start = t->started - pw_current.origin;
        pw_buffer_int(&columns[0], t->id);
        pw_buffer_int(&columns[1], (uint64_t)native);
        pw_buffer_int(&columns[2], start > 0 ? (uint64_t)start : 0);
        pw_buffer_int(&columns[3], t->drain.name_id);
        t->drain.announced = true;
        t->drain.announced_native = native;
        n++;
    }
    return n;
}

/* Frees ended threads. A thread that a native thread's pw_tls still points to stays, unless `all`. */
static void
free_ended(bool all)
{
    for (pw_thread **at = &state.ended; *at;) {
        pw_thread *t = *at;
        if (!all && atomic_load(&t->carrier.entered)) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        pw_thread_free(t);
    }
}

void
pw_thread_rows_write(bool last)
{
    pw_buffer columns[4] = {{0}};
    uint32_t n = announce(columns, pw_current.threads) + announce(columns, state.ended);
    if (n) pw_writer_table(&pw_out.writer, "THRD", 1, (uint64_t[]){n}, 4, columns);
    pw_buffers_free(columns, 4);
    free_ended(last);
    state.count = 0;
}
