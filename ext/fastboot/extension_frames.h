#ifndef FASTBOOT_EXTENSION_FRAMES_H
#define FASTBOOT_EXTENSION_FRAMES_H

/* Is a function of a C extension, or of a library that it uses, on the stack of this thread? Then it has called the Ruby
 * code that runs now. Ruby's own extensions, which are in the folder `own` (it ends with "/"), do not count. Other
 * threads, other fibers, and what is below compiled code are not seen. 0 also where the stack can't be read. */
int fb_in_extension(const char *own);

#endif
