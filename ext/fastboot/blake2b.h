#ifndef FASTBOOT_BLAKE2B_H
#define FASTBOOT_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#define FB_DIGEST_SIZE 32

/* BLAKE2b with a digest of 32 bytes and no key (RFC 7693). A core-only library may not load the gem digest. */
void fb_blake2b(const void *data, size_t length, uint8_t digest[FB_DIGEST_SIZE]);

#endif
