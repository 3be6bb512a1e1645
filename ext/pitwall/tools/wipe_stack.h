/* Wipes what earlier calls have left on the machine stack below the caller. */
#ifndef PITWALL_WIPE_STACK_H
#define PITWALL_WIPE_STACK_H

/* Marking takes each word on the machine stack for a reference. Frames of later calls have gaps, in which a word of
 * an earlier call would keep a dead object alive: it would be counted as one that the program retains. needs GVL */
void pw_wipe_stack(void);

#endif
