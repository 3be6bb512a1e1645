/* Keeps ticks from interrupting C code that waits while it has the GVL. */
#ifndef PITWALL_C_WAITS_H
#define PITWALL_C_WAITS_H

/* Replaces C library functions that end with EINTR at a signal, in all loaded objects. needs GVL */
void pw_c_waits_install(void);
/* Restores the C library's functions. */
void pw_c_waits_remove(void);

#endif
