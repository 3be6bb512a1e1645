/* Counts living objects over time, by site, to find sites whose objects keep growing.
 *
 * A point is a garbage collection: its time, the process's resident memory, and the number of each site's objects
 * that survived. After a full mark (a major collection) the number is the objects that the program can still reach.
 * After a minor collection the number is an upper bound, because a minor collection does not check old objects.
 * A full mark therefore also counts the births of living objects by point, which gives a lower bound for the earlier
 * points. At most MOST_POINTS points are kept. Then every second point is dropped and the interval doubles, so the
 * number of points written grows with the logarithm of the run's time.
 *
 * All functions but pw_growth_write run in Ruby's hooks or with the GVL (see sites.h). */
#ifndef PITWALL_GROWTH_H
#define PITWALL_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

void pw_growth_start(void);
bool pw_growth_on(void);

/* A collection begins and may become a point. `number` counts from 1. */
void pw_growth_collection(uint32_t number, bool major);
/* A collection begins: is the previous collection a point? Then call pw_growth_living for each site's survivors, and
 * pw_growth_end_point. */
bool pw_growth_due(void);
void pw_growth_living(uint32_t site, uint64_t objects);
void pw_growth_end_point(void);
/* Was the point that has just ended a full mark? Then the caller counts births, as below. */
bool pw_growth_births_due(void);

/* Counts births of living objects after a full mark: call begin, then born for each object, then end.
 * `collections`: number of collections so far. */
bool pw_growth_begin_births(uint32_t collections); /* false: no memory */
/* An object born `age` collections ago. True: call pw_growth_bytes with its size. */
bool pw_growth_born(uint32_t site, uint32_t age);
void pw_growth_bytes(uint32_t site, uint64_t bytes);
void pw_growth_end_births(void);

/* Call instead of pw_growth_end_births: passes the sites that most likely keep growing, likeliest first. */
void pw_growth_choose(void (*choose)(uint32_t site));

/* Begins the point at the end of the recording, counted like the others. False: there is nothing to count. */
bool pw_growth_begin_last_point(void);

void pw_growth_write(void); /* writes the new part of LIVE and BORN. holds session lock */
void pw_growth_forget(bool frees);

#endif
