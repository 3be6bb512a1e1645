/* Overwrites the words that earlier calls have left on the machine stack below the caller. */
#ifndef PITWALL_WIPE_STACK_H
#define PITWALL_WIPE_STACK_H

/* Marking treats each word on the machine stack as a reference. Frames of later calls have gaps. In a gap, a word of
 * an earlier call would keep a dead object alive. The object would then be counted as retained by the program. needs
 * GVL */
void pw_wipe_stack(void);

#endif
