/* Living objects over time, by site, to tell what keeps growing.
 *
 * A point is a garbage collection: its time, the process's resident memory, and how many of each site's objects
 * survived it. After a full mark (a major collection) that is what the program can still reach; after a minor one
 * it is an upper bound, as old objects are not looked at. So full marks also tell when what lives was born, by
 * points: that is a lower bound for the points before them. At most MOST_POINTS points are kept; then every second
 * one is dropped and the time between two doubles, so that the points written grow with the logarithm of the run's
 * time.
 *
 * All but pw_growth_write runs in Ruby's hooks or with the GVL, as sites.h has it. */
#ifndef PITWALL_GROWTH_H
#define PITWALL_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

void pw_growth_start(void);
bool pw_growth_on(void);

/* A collection begins: `number` counts from 1. It may become a point. */
void pw_growth_collection(uint32_t number, bool major);
/* Is the collection before the one that begins now a point? Then its survivors are to be told, and the point is to
 * be ended. */
bool pw_growth_due(void);
void pw_growth_living(uint32_t site, uint64_t objects);
void pw_growth_end_point(void);
/* Was the point that has just ended a full mark? Then births are to be told. */
bool pw_growth_births_due(void);

/* Births of what lives after a full mark: first begin, then each object, then end. `collections`: as many as there
 * have been. */
bool pw_growth_begin_births(uint32_t collections); /* false: no memory */
/* An object born `age` collections ago. True: its bytes are wanted. */
bool pw_growth_born(uint32_t site, uint32_t age);
void pw_growth_bytes(uint32_t site, uint64_t bytes);
void pw_growth_end_births(void);

/* Instead of ending them: the sites that look most as if they kept growing, the first first. */
void pw_growth_choose(void (*choose)(uint32_t site));

/* The point at the end of the recording, to be told in the same way. False: nothing is to be told. */
bool pw_growth_begin_last_point(void);

void pw_growth_write(void); /* LIVE and BORN: what is new. holds session lock */
void pw_growth_forget(bool frees);

#endif
