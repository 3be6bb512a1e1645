#include "output/chunks.h"
#include "native/symbols.h"
#include "output/output.h"
#include "session/session.h"
#include <stdarg.h>
#include <stdio.h>
#undef vsnprintf /* Ruby's replacement may allocate objects, and the drain has no GVL */

void
pw_chunks_put(const char *type, pw_buffer *payload)
{
    pw_writer_chunk(&pw_out.writer, type, payload->data, payload->size);
    pw_buffer_free(payload);
}

void
pw_chunks_write_strings(void)
{
    pw_intern *t = &pw_out.tables;
    if (!t->new_strings) return;
    pw_buffer payload = {0};
    pw_buffer_int(&payload, t->first_new_string);
    pw_buffer_int(&payload, t->new_strings);
    pw_buffer_column(&payload, &t->new_string_lengths);
    pw_buffer_put(&payload, t->new_string_bytes.data, t->new_string_bytes.size);
    pw_chunks_put("STRS", &payload);
    pw_buffer_clear(&t->new_string_lengths);
    pw_buffer_clear(&t->new_string_bytes);
    t->new_strings = 0;
}

void
pw_chunks_write_objects(void)
{
    pw_buffer columns[3] = {{0}};
    uint64_t rows = 0;
    for (const pw_named_object *o; (o = pw_symbols_next_object()) != NULL; rows++) {
        pw_buffer_int(&columns[0], pw_intern_string(&pw_out.tables, o->path, strlen(o->path)));
        pw_buffer_int(&columns[1], pw_intern_string(&pw_out.tables, o->build_id, strlen(o->build_id)));
        pw_buffer_int(&columns[2], o->names_from);
    }
    if (rows) pw_writer_table(&pw_out.writer, "OBJS", 1, &rows, 3, columns);
    pw_buffers_free(columns, 3);
}

void
pw_chunks_write_nodes(void)
{
    pw_intern *t = &pw_out.tables;
    if (!t->new_nodes) return;
    pw_buffer payload = {0};
    pw_buffer_int(&payload, t->first_new_node);
    pw_buffer_int(&payload, t->new_nodes);
    pw_buffer_column(&payload, &t->new_parents);
    pw_buffer_column(&payload, &t->new_frames);
    pw_buffer_column(&payload, &t->new_lines);
    pw_buffer_clear(&t->new_parents);
    pw_buffer_clear(&t->new_frames);
    pw_buffer_clear(&t->new_lines);
    t->new_nodes = 0;
    pw_chunks_put("NODE", &payload);
}

struct text { char bytes[1536]; size_t size; bool cut; };

/* Appends to a text. Text beyond the buffer is cut off. */
static void __attribute__((format(printf, 2, 3)))
append(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->bytes + t->size, sizeof t->bytes - t->size, format, arguments);
    va_end(arguments);
    t->size += n < 0 ? 0 : (size_t)n;
    if (t->size >= sizeof t->bytes) t->cut = true, t->size = sizeof t->bytes - 1;
}

void
pw_chunks_write_stat(int64_t drain_cpu)
{
    struct text t = {.size = 0};
    const pw_session *s = &pw_current;
    append(&t, "{\"elapsed_ns\":%lld,\"started_monotonic_ns\":%lld", (long long)(pw_now_ns() - s->origin),
           (long long)s->origin);
    for (int i = 0; i < PW_FIRST_OF_GC_NS; i++) {
        append(&t, ",\"%s\":%lld", pw_counter_infos[i].name, (long long)pw_counter(i));
    }
    append(&t, ",\"own_cpu_ns\":%lld", (long long)(drain_cpu + atomic_load(&s->helper_cpu)));
    append(&t, ",\"process_cpu_ns\":%lld", (long long)(pw_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - s->started_process_cpu));
    append(&t, ",\"threads\":%u,\"write_error\":%d,\"gc_ns\":", s->next_thread_id - 1, pw_out.writer.error);
    for (int i = PW_FIRST_OF_GC_NS; i < PW_COUNTERS; i++) {
        append(&t, "%c\"%s\":%lld", i == PW_FIRST_OF_GC_NS ? '{' : ',', pw_counter_infos[i].name,
               (long long)pw_counter(i));
    }
    append(&t, "}}");
    if (!t.cut) pw_writer_chunk(&pw_out.writer, "STAT", t.bytes, t.size);
}

void
pw_chunks_write_tail(const char *reason)
{
    struct text t = {.size = 0};
    append(&t, "{\"reason\":\"%s\"}", reason);
    pw_writer_chunk(&pw_out.writer, "TAIL", t.bytes, t.size);
}
