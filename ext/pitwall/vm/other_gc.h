/* Tells whether a garbage collector other than Ruby's own runs. */
#ifndef PITWALL_OTHER_GC_H
#define PITWALL_OTHER_GC_H

/* The other collector's name; NULL: Ruby's own runs. Another collector reports few of its runs. */
const char *pw_other_gc(void);
/* Finds the collector's name. Called once. needs GVL */
void pw_other_gc_init(void);

#endif
