#include "sampling/sql_digest.h"
#include "tools/fnv.h"
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { DIGESTED = 1 << 16, REMEMBERED = 8 };

/* Kinds of tokens. The kind of any other token is its character. */
enum { NONE = 0, WORD = 'w', LITERAL = '?', QUOTED = '"' };

/* The hash of the tokens so far. Also the last tokens and the hash before each, so that tokens can be removed again. */
typedef struct {
    uint64_t hash;
    struct { uint64_t before; int kind; } last[REMEMBERED];
    unsigned count;
} token_hash;

/* The kind of the token `back` tokens ago; 0: the last token. */
static inline int
kind(const token_hash *t, unsigned back)
{
    return back < REMEMBERED && back < t->count ? t->last[(t->count - 1 - back) % REMEMBERED].kind : NONE;
}

static void
remove_tokens(token_hash *t, unsigned tokens)
{
    t->hash = t->last[(t->count - tokens) % REMEMBERED].before;
    t->count -= tokens;
    /* Older tokens may have been overwritten by the removed tokens. */
    for (unsigned i = REMEMBERED - tokens; i < REMEMBERED && i < t->count; i++) {
        t->last[(t->count - 1 - i) % REMEMBERED].kind = NONE;
    }
}

static void
add_token(token_hash *t, int what, const char *text, size_t length)
{
    t->last[t->count % REMEMBERED].before = t->hash;
    t->last[t->count % REMEMBERED].kind = what;
    t->count++;
    t->hash = pw_fnv_byte(t->hash, ' ');
    for (size_t i = 0; i < length; i++) {
        uint8_t c = (uint8_t)text[i];
        t->hash = pw_fnv_byte(t->hash, what == WORD && c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
}

/* Adds a literal. "?, ?" becomes one "?". A sign before a number is a part of the number. */
static void
add_literal(token_hash *t)
{
    int before = kind(t, 0), further = kind(t, 1);
    bool sign = before == '-' || before == '+';
    if (sign && further != WORD && further != LITERAL && further != QUOTED && further != ')' && further != NONE) {
        remove_tokens(t, 1);
    }
    if (kind(t, 0) == ',' && kind(t, 1) == LITERAL) remove_tokens(t, 1);
    else add_token(t, LITERAL, "?", 1);
}

/* Adds a punctuation mark. "(?), (?)" becomes one "(?)". */
static void
add_mark(token_hash *t, char c)
{
    if (c == ')' && kind(t, 0) == LITERAL && kind(t, 1) == '(' && kind(t, 2) == ',' && kind(t, 3) == ')' &&
        kind(t, 4) == LITERAL && kind(t, 5) == '(') {
        remove_tokens(t, 3);
        return;
    }
    add_token(t, c, &c, 1);
}

/* NULL, TRUE and FALSE count as literals where a value is expected. */
static bool
is_value(const token_hash *t, const char *text, size_t length)
{
    int before = kind(t, 0);
    if (before != '(' && before != ',' && before != '=') return false;
    return (length == 4 && (strncasecmp(text, "null", 4) == 0 || strncasecmp(text, "true", 4) == 0)) ||
           (length == 5 && strncasecmp(text, "false", 5) == 0);
}

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static inline bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || (uint8_t)c >= 0x80;
}

/* The position after the closing quote of the text at `at`. A doubled quote is a part of the text. So is a quote after
 * a backslash, if `escapes`. */
static const char *
after_quoted(const char *at, const char *end, bool escapes)
{
    char quote = *at++;
    while (at < end) {
        if (escapes && *at == '\\') at += 2;
        else if (*at != quote) at++;
        else if (at + 1 < end && at[1] == quote) at += 2;
        else return at + 1;
    }
    return end;
}

/* The position after "$tag$ ... $tag$". NULL: no such text begins here. */
static const char *
after_dollars(const char *at, const char *end)
{
    const char *tag = at + 1;
    while (tag < end && is_word(*tag)) tag++;
    if (tag >= end || *tag != '$') return NULL;
    size_t length = (size_t)(tag + 1 - at);
    for (const char *from = tag + 1; from + length <= end; from++) {
        if (*from == '$' && memcmp(from, at, length) == 0) return from + length;
    }
    return end;
}

static const char *
after_comment(const char *at, const char *end)
{
    bool line = *at == '-';
    for (at += 2; at < end; at++) {
        if (line ? *at == '\n' : *at == '*' && at + 1 < end && at[1] == '/') return at + (line ? 1 : 2);
    }
    return end;
}

/* The position after a number, e.g. 12, 1.5e-3, 0x1f. */
static const char *
after_number(const char *at, const char *end)
{
    while (at < end && (is_word(*at) || *at == '.' ||
                        ((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E')))) at++;
    return at;
}

uint64_t
pw_sql_digest(const char *sql, size_t length)
{
    const char *at = sql, *end = sql + (length < DIGESTED ? length : DIGESTED);
    bool backticks = memchr(sql, '`', (size_t)(end - sql)) != NULL; /* MySQL, where "x" is a text */
    token_hash t = {.hash = PW_FNV_START};
    while (at < end) {
        char c = *at, next = at + 1 < end ? at[1] : 0;
        const char *from = at;
        if (is_space(c)) at++;
        else if ((c == '-' && next == '-') || (c == '/' && next == '*')) at = after_comment(at, end);
        else if (c == '\'' || (c == '"' && backticks)) {
            at = after_quoted(at, end, true);
            add_literal(&t);
        }
        else if (c == '"' || c == '`') {
            at = after_quoted(at, end, false);
            add_token(&t, QUOTED, from, (size_t)((at < end ? at : end) - from));
        }
        else if (is_digit(c) || (c == '.' && is_digit(next))) {
            at = after_number(at, end);
            add_literal(&t);
        }
        else if (c == '$' && is_digit(next)) { /* PostgreSQL's placeholders */
            at = after_number(at + 1, end);
            add_literal(&t);
        }
        else if (c == '$' && (at = after_dollars(from, end))) add_literal(&t);
        else if (c == '?') {
            at = from + 1;
            add_literal(&t);
        }
        else if (is_word(c)) {
            while (at < end && (is_word(*at) || *at == '$')) at++;
            if (is_value(&t, from, (size_t)(at - from))) add_literal(&t);
            else add_token(&t, WORD, from, (size_t)(at - from));
        }
        else {
            at = from + 1;
            add_mark(&t, c);
        }
        if (at > end) at = end;
    }
    uint64_t digest = (t.hash ^ t.hash >> 48) & 0xffffffffffffu;
    return digest ? digest : 1;
}
