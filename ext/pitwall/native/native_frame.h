/* One frame of a native stack, and how a stack ended. */
#ifndef PITWALL_NATIVE_FRAME_H
#define PITWALL_NATIVE_FRAME_H

#include <stdint.h>

enum {
    PW_NATIVE_FUNCTION, /* has a rule in .eh_frame */
    PW_NATIVE_COMPILED, /* code that YJIT or ZJIT made; several such frames in a row are told as one */
    PW_NATIVE_UNKNOWN   /* no rule is known for the address */
};

typedef struct {
    uintptr_t pc;       /* the interrupted instruction, or the call (return address - 1) */
    uintptr_t function; /* start of its function, as .eh_frame has it; 0: not PW_NATIVE_FUNCTION */
    uintptr_t cfa;      /* canonical frame address: the stack pointer before the call; 0: unknown */
    uint16_t object;    /* pw_object's number + 1; 0: not PW_NATIVE_FUNCTION */
    uint8_t kind;
} pw_native_frame;

typedef enum {
    PW_UNWOUND,     /* reached the function that the thread, fiber or context began with */
    PW_UNWIND_FULL, /* no room for more frames */
    PW_UNWIND_LOST  /* the caller of the last frame is unknown */
} pw_unwind_end;

#endif
