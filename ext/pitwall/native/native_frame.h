/* One frame of a native stack, and how a stack ended. */
#ifndef PITWALL_NATIVE_FRAME_H
#define PITWALL_NATIVE_FRAME_H

#include <stdint.h>

enum {
    PW_NATIVE_FUNCTION, /* has a rule in .eh_frame */
    PW_NATIVE_COMPILED, /* code that YJIT or ZJIT made; several such frames in a row are told as one */
    PW_NATIVE_UNKNOWN,  /* no rule is known for the address */
    PW_NATIVE_LOOP      /* the interpreter's loop; told from other functions after the unwinding (native_stack.c) */
};

/* How the caller was found. Frames of the last two kinds can be told to be the same later (walk_again.h). */
enum {
    PW_FOUND_OTHERWISE,
    PW_FOUND_BY_SP,  /* by a plain rule that starts from the stack pointer */
    PW_FOUND_BY_FP,  /* by a plain rule that starts from the frame pointer */
    PW_FOUND_NONE    /* by its rule there is no caller */
};

typedef struct {
    uintptr_t pc;       /* the interrupted instruction, or the call (return address - 1) */
    uintptr_t function; /* start of its function, as .eh_frame has it; 0: not PW_NATIVE_FUNCTION */
    uintptr_t cfa;      /* canonical frame address: the stack pointer before the call; 0: unknown */
    uint16_t object;    /* pw_object's number + 1; 0: not PW_NATIVE_FUNCTION */
    uint8_t kind, found;
    int16_t return_at; /* of a plain rule: where the return address is, in words from the CFA */
    uint16_t fp_below; /* PW_FOUND_BY_FP: where the frame pointer was saved, in words below the CFA; 0: nowhere */
    uintptr_t sp, fp;  /* the stack pointer and the frame pointer in the frame */
} pw_native_frame;

typedef enum {
    PW_UNWOUND,     /* reached the function that the thread, fiber or context began with */
    PW_UNWIND_FULL, /* no room for more frames */
    PW_UNWIND_LOST  /* the caller of the last frame is unknown */
} pw_unwind_end;

/* A native stack that reaches the thread's start, leaf first. */
typedef struct {
    const pw_native_frame *frames;
    uint32_t count;      /* 0: there is none */
    uint64_t generation; /* of the map (code_map.h) that it was walked by */
} pw_last_stack;

#endif
