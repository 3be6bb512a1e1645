/* Reports when a thread of Ruby 3.1 releases the GVL and when the thread gets the GVL. Ruby 3.1 has no thread
 * events. */
#ifndef PITWALL_GVL_WATCH_H
#define PITWALL_GVL_WATCH_H

#include "vm/vm_compat.h"

/* Installs the watch. True: releases are reported from here on. The watch stays for the process's life. needs GVL */
bool pw_gvl_watch_install(void);

#if PW_GVL_WATCH
typedef void pw_gvl_hook(rb_event_flag_t event, const rb_internal_thread_event_data_t *none, void *null);

/* Sets the hook to call; NULL: none. The hook runs in the thread that the event is about. */
void pw_gvl_watch_tell(pw_gvl_hook *hook);
#endif

#endif
