/* Blames changes of counters on lines. A hook compares the counters at each line, at each class body and at each
 * return. It finds changes that no watched method makes: `FOO = 1` on Ruby 3.1, new shapes, class variables. */
#ifndef PITWALL_LINE_WATCH_H
#define PITWALL_LINE_WATCH_H

#include <ruby/ruby.h>
#include <stdbool.h>
#include <stdint.h>

/* `lines`: compare at each line; otherwise at class bodies only. needs GVL */
void pw_line_watch_start(bool lines);
void pw_line_watch_stop(void);
/* The counters have changed, and the code at this control frame has done so. needs GVL */
void pw_line_changed(const VALUE *ec, const VALUE *cfp);
/* The same for an increase that was claimed already. */
void pw_line_caused(const VALUE *ec, const VALUE *cfp, const uint64_t *increase);

#endif
