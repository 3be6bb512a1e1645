/* The state of a recording's output: the ring, the tables and the file writer, in the order of the data flow. */
#ifndef PITWALL_OUTPUT_H
#define PITWALL_OUTPUT_H

#include "output/intern.h"
#include "output/ring.h"
#include "output/writer.h"
#include "tools/hidden.h"

typedef struct {
    pw_ring ring;
    pw_intern tables; /* holds session lock */
    pw_writer writer;
} pw_output;

extern PW_HIDDEN pw_output pw_out;

#endif
