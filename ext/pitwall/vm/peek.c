#include "vm/peek.h"
#include "vm/known_frames.h"
#include "vm/vm_layout.h"
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t self;

#if PW_LAYOUT_RUBY

bool
pw_peek(const void *from, void *to, size_t n)
{
    struct iovec local = {to, n}, remote = {(void *)from, n};
    return process_vm_readv(self, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

bool
pw_peek_both(const pw_piece pieces[2])
{
    struct iovec local[2], remote[2];
    for (int i = 0; i < 2; i++) {
        local[i] = (struct iovec){pieces[i].to, pieces[i].n};
        remote[i] = (struct iovec){(void *)pieces[i].from, pieces[i].n};
    }
    return process_vm_readv(self, local, 2, remote, 2, 0) == (ssize_t)(pieces[0].n + pieces[1].n);
}

int
pw_peek_init(void)
{
    static const char there[] = "there";
    char copy[sizeof there] = "";
    self = getpid();
    errno = 0;
    if (pw_peek(there, copy, sizeof there) && memcmp(there, copy, sizeof there) == 0) return 0;
    return errno ? errno : EFAULT;
}

static void
look_at(VALUE word, pw_object_seen *o)
{
    VALUE words[3];
    *o = (pw_object_seen){.word = word, .imemo = -1, .method = -1};
    if (!pw_peek((const void *)word, words, sizeof words)) return;
    o->imemo = (int8_t)pw_imemo_of_flags(words[0]);
    o->second = words[1];
    if (o->imemo == PW_IMEMO_ISEQ) {
        VALUE body[PW_BODY_WORDS];
        if (!pw_peek((const void *)words[PW_ISEQ_BODY], body, sizeof body)) return;
        o->body = words[PW_ISEQ_BODY];
        o->size = ((const uint32_t *)body)[PW_BODY_SIZE];
        o->encoded = body[PW_BODY_ENCODED];
        o->sites = body[PW_BODY_CALL_DATA];
        o->site_count = ((const uint32_t *)body)[PW_BODY_CALL_DATA_COUNT];
    }
    else if (o->imemo == PW_IMEMO_MENT) {
        uint32_t definition;
        if (pw_peek((const void *)words[PW_ME_DEF], &definition, sizeof definition)) {
            o->method = (int8_t)pw_method_type_of(definition);
        }
    }
}

const pw_object_seen *
pw_object_look(VALUE word)
{
    /* A known frame is kept alive and in place until the known frames are cleared. So the data read from the frame
     * stays true. */
    static pw_object_seen kept[PW_KNOWN_SLOTS], other;
    if (!pw_known(word)) {
        look_at(word, &other);
        return &other;
    }
    pw_object_seen *o = &kept[pw_known_slot(word) - pw_known_slots];
    if (o->word != word || o->generation != pw_known_generation) {
        look_at(word, o);
        o->generation = pw_known_generation;
    }
    return o;
}

#else

int pw_peek_init(void) { return self ? ENOSYS : ENOTSUP; }

#endif
