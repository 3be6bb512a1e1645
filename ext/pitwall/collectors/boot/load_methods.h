/* Ruby's methods that load files. Each runs a function of Pitwall, which calls the method's own. The methods stay the
 * same objects. */
#ifndef PITWALL_LOAD_METHODS_H
#define PITWALL_LOAD_METHODS_H

/* Returns NULL, or why the methods are not watched. needs GVL */
const char *pw_load_methods_start(void);
void pw_load_methods_stop(void);

#endif
