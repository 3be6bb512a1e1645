#ifndef FASTBOOT_CODE_H
#define FASTBOOT_CODE_H

#include <ruby.h>

/* Defines the hook RubyVM::InstructionSequence.load_iseq, and what CompileCache needs of C. */
void fb_define_code(VALUE fastboot, VALUE native);

#endif
