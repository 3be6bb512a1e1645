/* A small harness for unit tests in C. test/native/units_test.rb builds the programs and runs each test in a process
 * of its own.
 *
 *   PROGRAM             all tests, one after the other
 *   PROGRAM --list      their names, one a line
 *   PROGRAM NAME...     the tests of these names
 *   PROGRAM --seed 7    another seed for random numbers; the default is 1
 *   PROGRAM --quick     a tenth of the rounds, for valgrind
 *
 * Exit status: 0 all passed, 1 a check failed (file, line and both values are printed), 64 usage. */
#ifndef PITWALL_UNIT_H
#define PITWALL_UNIT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ruby's headers replace both by functions of Ruby, and no Ruby is linked. Include this file after Ruby's headers. */
#undef snprintf
#undef vsnprintf

typedef struct unit_test {
    const char *name;
    void (*run)(void);
    struct unit_test *next;
} unit_test;

static unit_test *unit_first, **unit_last = &unit_first;

/* Defines a test and adds it to the program's list. units_test.rb finds tests by this word at the beginning of a line.
 * */
#define TEST(name) \
    static void name(void); \
    __attribute__((constructor)) static void unit_add_##name(void) \
    { \
        static unit_test test = {#name, name, NULL}; \
        *unit_last = &test; \
        unit_last = &test.next; \
    } \
    static void name(void)

static const char *unit_running = "";
static char unit_note_text[200];
static uint64_t unit_seed = 1, unit_state;
static bool unit_quick;

/* Says where a loop is, e.g. unit_note("round %d", i). A failure prints it. */
__attribute__((format(printf, 1, 2), unused)) static void
unit_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(unit_note_text, sizeof unit_note_text, format, arguments);
    va_end(arguments);
}

/* Ends the process, as other threads of the test may still run. */
__attribute__((format(printf, 3, 4), noreturn)) static void
unit_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s: FAILED\n%s:%d: ", unit_running, file, line);
    vprintf(format, arguments);
    va_end(arguments);
    if (unit_note_text[0]) printf("\n  at: %s", unit_note_text);
    printf("\n  seed: %" PRIu64 "\n", unit_seed);
    fflush(stdout);
    _exit(1);
}

#define CHECK(condition) \
    do { \
        if (!(condition)) unit_fail(__FILE__, __LINE__, "%s does not hold", #condition); \
    } while (0)

/* Integers and pointers. Both values are printed, in decimal and in hexadecimal. */
#define EQUAL(expected, actual) \
    do { \
        uint64_t unit_e = (uint64_t)(expected), unit_a = (uint64_t)(actual); \
        if (unit_e != unit_a) \
            unit_fail(__FILE__, __LINE__, \
                      "%s\n  expected: %" PRId64 " (0x%" PRIx64 "), by %s\n  actual:   %" PRId64 " (0x%" PRIx64 ")", \
                      #actual, (int64_t)unit_e, unit_e, #expected, (int64_t)unit_a, unit_a); \
    } while (0)

#define EQUAL_TEXT(expected, actual) \
    do { \
        const char *unit_e = (expected), *unit_a = (actual); \
        if (!unit_a || strcmp(unit_e, unit_a) != 0) \
            unit_fail(__FILE__, __LINE__, "%s\n  expected: %s\n  actual:   %s", \
                      #actual, unit_e, unit_a ? unit_a : "(null)"); \
    } while (0)

/* xorshift64*: the same numbers on every machine. `state` is not 0. */
__attribute__((unused)) static uint64_t
unit_random_of(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* A random number from 0 to below - 1. */
__attribute__((unused)) static uint32_t
unit_random(uint32_t below)
{
    return (uint32_t)((unit_random_of(&unit_state) >> 32) % below);
}

__attribute__((unused)) static uint32_t
unit_rounds(uint32_t rounds)
{
    return unit_quick && rounds >= 10 ? rounds / 10 : rounds;
}

static void
unit_run(const unit_test *test)
{
    unit_running = test->name;
    unit_note_text[0] = '\0';
    unit_state = unit_seed * 0x9e3779b97f4a7c15u | 1;
    test->run();
    printf("%s: ok\n", test->name);
    fflush(stdout);
}

static const unit_test *
unit_named(const char *name)
{
    for (const unit_test *test = unit_first; test; test = test->next) {
        if (strcmp(test->name, name) == 0) return test;
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    bool named = false;
    for (int i = 1; i < argc; i++) {
        const unit_test *test = unit_named(argv[i]);
        if (strcmp(argv[i], "--list") == 0) {
            for (test = unit_first; test; test = test->next) puts(test->name);
            return 0;
        }
        if (strcmp(argv[i], "--quick") == 0) unit_quick = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) unit_seed = strtoull(argv[++i], NULL, 10);
        else if (!test) return fprintf(stderr, "%s: no such test (--list prints all)\n", argv[i]), 64;
        else {
            unit_run(test);
            named = true;
        }
    }
    for (const unit_test *test = unit_first; test && !named; test = test->next) unit_run(test);
    return 0;
}

#endif
