/* Names of native frames. Unlike Ruby's frames they are named by the drain, without the GVL. */
#ifndef PITWALL_NATIVE_NAMES_H
#define PITWALL_NATIVE_NAMES_H

/* Names all native frames of the tables that have no name yet. Only the drain calls it, or a thread that has stopped
 * the drain. Releases the session's lock while it reads symbols. holds session lock */
void pw_name_native_frames(void);

#endif
