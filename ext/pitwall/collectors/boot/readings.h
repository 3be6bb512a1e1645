/* Figures of the process that are read before and after each load. needs GVL */
#ifndef PITWALL_READINGS_H
#define PITWALL_READINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t wall, cpu, gc; /* ns; cpu: of the calling thread */
    uint64_t objects, bytes; /* allocated so far; bytes of heap slots */
    uint64_t rss;          /* resident bytes, at most 1 ms old */
} pw_reading;

void pw_readings_init(void);
/* Finds out how this Ruby counts objects by their size. */
void pw_readings_start(void);
void pw_read_figures(pw_reading *now);
uint64_t pw_read_rss(void); /* bytes; 0: not known */

/* Writes a JSON object with the sizes of the process into `text`. Returns its length. */
size_t pw_read_sizes(char *text, size_t room);
int64_t pw_age_of_process(void); /* ns since the process began, to 10 ms; 0: not known */

#endif
