/* Trace filters: decide once for each callee whether its calls get nodes or count as their caller's. */
#ifndef PITWALL_TRACE_FILTERS_H
#define PITWALL_TRACE_FILTERS_H

#include "collectors/trace/calls.h"

/* The frame of a call. `owner`: the method entry that its iseq runs for, if known. */
typedef struct { const VALUE *ec, *cfp; VALUE owner; } pw_call_site;

void pw_trace_filters_init(VALUE native);
/* The settings "home", "path", "class", "only_under", "depth" and "nodes". May raise. */
pw_call_rules pw_trace_filters_read(VALUE settings);

#endif
