/* Blames changes of counters on lines. A hook compares the counters at each line, at each class body and at each
 * return. It finds changes that no watched method makes: `FOO = 1` on Ruby 3.1, new shapes, class variables. */
#ifndef PITWALL_LINE_WATCH_H
#define PITWALL_LINE_WATCH_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether counters are compared at each line: never (at class bodies only); always; or until many lines in a row have
 * changed nothing, and again after a counter was seen to have changed. */
enum { PW_LINES_NEVER, PW_LINES_ALWAYS, PW_LINES_UNTIL_QUIET };

/* May raise. */
void pw_line_watch_init(void);
/* `after`: with PW_LINES_UNTIL_QUIET lines are compared once so many pieces of work have ended. -1: from the start.
 * needs GVL */
void pw_line_watch_start(int lines, long after);
void pw_line_watch_stop(void);
/* How often comparing lines has stopped. */
uint32_t pw_line_watch_rests(void);
/* Ends the rest of comparing lines if a counter has changed. Called by the drain. */
void pw_line_watch_check(void);
/* The same, called when a piece of work begins or ends. needs GVL */
void pw_line_watch_work(void);
/* The code at this control frame has changed the counters. needs GVL */
void pw_line_changed(const VALUE *ec, const VALUE *cfp);
/* While comparing lines rests: sets the increase of shapes and class variables to 0. Earlier code has caused it. */
void pw_line_earlier(uint64_t *increase);
/* As pw_line_changed, for an increase that was claimed already. */
void pw_line_caused(const VALUE *ec, const VALUE *cfp, const uint64_t *increase);

#endif
