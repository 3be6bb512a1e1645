/* The ring with several writers, their signal handlers, and one reader.
 *
 * sources: ring.c
 * sanitizers: address thread */
#include "ring_records.h"
#include <pthread.h>
#include <signal.h>

enum { WRITERS = 3, STREAMS = 2 * WRITERS, SMALL = 8192 };

static pw_ring shared;
static pthread_mutex_t session = PTHREAD_MUTEX_INITIALIZER; /* a scan and the consumer exclude each other */
static _Atomic bool stopped;
static _Atomic uint32_t ended;

/* Counts the records of one thread, or of the handler that interrupts that thread. Only that code changes them. */
typedef struct {
    uint32_t id;
    volatile uint32_t written, refused;
} stream;

typedef struct {
    pthread_t thread;
    uint64_t state;
    uint32_t rounds; /* records to write */
    stream own, handlers;
} writer;

static writer writers[WRITERS];
static __thread writer *self __attribute__((tls_model("initial-exec")));

/* `interrupted`: a signal's handler runs between reserving and committing. */
static void
write_one(stream *s, uint32_t bytes, bool interrupted)
{
    record *r = (record *)pw_ring_reserve(&shared, bytes);
    if (!r) {
        s->refused++;
        return;
    }
    if (interrupted) pthread_kill(pthread_self(), SIGUSR1);
    fill(r, s->id, s->written + 1, bytes);
    pw_ring_commit(&r->header, bytes);
    s->written++;
}

static void
on_signal(int signo)
{
    (void)signo;
    if (self) write_one(&self->handlers, 32, false);
}

/* Writes without interruptions. */
static void *
write_much(void *data)
{
    writer *w = data;
    while (w->own.written < w->rounds) {
        uint64_t r = unit_random_of(&w->state);
        write_one(&w->own, LEAST + (uint32_t)(r >> 40) % 200, false);
        if ((r >> 20 & 15) == 0) usleep(1); /* the reader's turn, also on one core */
    }
    ended++;
    return NULL;
}

/* A handler interrupts every fourth record. */
static void *
write_interrupted(void *data)
{
    writer *w = data;
    self = w;
    while (w->own.written < w->rounds) {
        uint64_t r = unit_random_of(&w->state);
        write_one(&w->own, LEAST + (uint32_t)(r >> 40) % 200, (r >> 30 & 3) == 0);
        if ((r >> 20 & 15) == 0) usleep(1); /* the reader's turn, also on one core */
    }
    ended++;
    while (!stopped) usleep(100); /* signals may still be sent to it */
    self = NULL;
    return NULL;
}

/* Reads all records. The numbers of each stream must follow each other without a gap. */
static void
read_all(uint32_t last[STREAMS])
{
    for (pw_record_header *header; (header = pw_ring_peek(&shared));) {
        const record *r = (const record *)header;
        CHECK(r->writer < STREAMS);
        unit_note("stream %u, number %u after %u", r->writer, r->number, last[r->writer]);
        EQUAL(last[r->writer] + 1, r->number);
        check_record(r);
        last[r->writer] = r->number;
        pw_ring_consume(&shared, header);
    }
}

/* A second reader, as the marking of garbage is. It holds the consumer's lock and consumes nothing. */
static void *
scan_much(void *unused)
{
    (void)unused;
    while (!stopped) {
        uint32_t last[STREAMS] = {0};
        uint64_t offset = 0;
        pthread_mutex_lock(&session);
        for (const pw_record_header *header; (header = pw_ring_scan(&shared, &offset));) {
            const record *r = (const record *)header;
            CHECK(r->writer < STREAMS);
            CHECK(!last[r->writer] || r->number == last[r->writer] + 1);
            check_record(r);
            last[r->writer] = r->number;
        }
        pthread_mutex_unlock(&session);
        usleep(20);
    }
    return NULL;
}

/* Sends signals to the writers at any time. ThreadSanitizer delivers them at system calls only. */
static void *
shoot(void *unused)
{
    (void)unused;
    while (!stopped) {
        for (uint32_t i = 0; i < WRITERS; i++) pthread_kill(writers[i].thread, SIGALRM);
        usleep(20);
    }
    return NULL;
}

static void
handle(int signo)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaddset(&action.sa_mask, SIGALRM);
    EQUAL(0, sigaction(signo, &action, NULL));
}

/* Runs writers in threads of their own, `beside` (or NULL) in another thread, and the consumer here. The consumer
 * pauses `pause_us` between two visits. All records that were written must arrive; the others were refused. Returns how
 * many. */
static uint32_t
write_and_read(void *(*body)(void *), uint32_t rounds, void *(*beside)(void *), unsigned pause_us)
{
    pthread_t other;
    uint32_t last[STREAMS] = {0}, refused = 0;
    begin(&shared, SMALL);
    stopped = false;
    ended = 0;
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.own = {.id = 2 * i}, .handlers = {.id = 2 * i + 1},
                              .state = unit_seed + 77 * (i + 1), .rounds = unit_rounds(rounds)};
    }
    for (uint32_t i = 0; i < WRITERS; i++) EQUAL(0, pthread_create(&writers[i].thread, NULL, body, &writers[i]));
    if (beside) EQUAL(0, pthread_create(&other, NULL, beside, NULL));
    while (ended < WRITERS) {
        pthread_mutex_lock(&session);
        read_all(last);
        pthread_mutex_unlock(&session);
        if (pause_us) usleep(pause_us);
    }
    stopped = true;
    if (beside) pthread_join(other, NULL); /* first: it sends signals to the writers */
    for (uint32_t i = 0; i < WRITERS; i++) pthread_join(writers[i].thread, NULL);
    read_all(last);
    EQUAL(0, used(&shared));
    CHECK(shared.head > 20 * SMALL || unit_quick);
    for (uint32_t i = 0; i < WRITERS; i++) {
        const writer *w = &writers[i];
        unit_note("writer %u: %u and %u of its handler, %u refused",
                  i, w->own.written, w->handlers.written, w->own.refused);
        EQUAL(w->own.written, last[w->own.id]);
        EQUAL(w->handlers.written, last[w->handlers.id]);
        EQUAL(w->rounds, w->own.written);
        CHECK(w->own.written > 0);
        EQUAL(body == write_interrupted, w->handlers.written > 0);
        refused += w->own.refused;
    }
    pw_ring_free(&shared);
    return refused;
}

TEST(many_writers_and_one_reader) { write_and_read(write_much, 20000, NULL, 0); }

/* The reader pauses so long that the ring is full most of the time. */
TEST(writers_that_find_the_ring_full_count_their_losses) { CHECK(write_and_read(write_much, 20000, NULL, 3000) > 0); }

TEST(a_scan_beside_writers_sees_whole_records) { write_and_read(write_much, 10000, scan_much, 100); }

/* Handlers write between their thread's reservation and its commit. */
TEST(a_handler_writes_while_its_thread_is_writing)
{
    handle(SIGUSR1);
    write_and_read(write_interrupted, 10000, NULL, 0);
}

TEST(signals_may_come_anywhere)
{
    handle(SIGUSR1);
    handle(SIGALRM);
    write_and_read(write_interrupted, 10000, shoot, 0);
}
