/* Tells which captured words are frames.
 *
 * A captured word is the content of a control frame at the moment of the signal. A half-pushed frame can hold a
 * block's C function, a stale pointer, anything. Naming such a word aborts Ruby. So a word counts as a frame only if
 * the word reads as an internal object (T_IMEMO) whose sub-type was seen in good frames of this Ruby at load. */
#ifndef PITWALL_VALID_FRAMES_H
#define PITWALL_VALID_FRAMES_H

#include <ruby/ruby.h>
#include <stdbool.h>

/* Learns the sub-types of method entries and iseqs of this Ruby. needs GVL */
void pw_valid_frames_init(void);

/* Whether this captured word is a living method entry or iseq. Reads the word's object without trusting the word.
 * needs GVL */
bool pw_frame_valid(VALUE frame);

#endif
