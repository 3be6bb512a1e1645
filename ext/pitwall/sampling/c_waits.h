/* C code that waits while it has the GVL: no tick interrupts it. */
#ifndef PITWALL_C_WAITS_H
#define PITWALL_C_WAITS_H

/* Has loaded objects call our functions instead of the C library's that end with EINTR at a signal. needs GVL */
void pw_c_waits_install(void);
/* The C library's again. */
void pw_c_waits_remove(void);

#endif
