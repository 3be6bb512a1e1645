/* What is traced: which calls have nodes of their own, and which count as their caller's. Decided once for each
 * callee. */
#ifndef PITWALL_TRACE_FILTERS_H
#define PITWALL_TRACE_FILTERS_H

#include "collectors/trace/calls.h"

/* Where a call was seen. `owner`: the method entry its iseq runs for, where that is known. */
typedef struct { const VALUE *ec, *cfp; VALUE owner; } pw_call_site;

void pw_trace_filters_init(VALUE native);
/* The settings "home", "path", "class", "only_under", "depth" and "nodes". May raise. */
pw_call_rules pw_trace_filters_read(VALUE settings);

#endif
