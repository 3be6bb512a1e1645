/* The names of what a change is about: "Foo::BAR", "Foo#bar", "Foo.bar". Runs no code of the program. needs GVL */
#ifndef PITWALL_SUBJECTS_H
#define PITWALL_SUBJECTS_H

#include <ruby/ruby.h>
#include <stdbool.h>

enum { PW_SUBJECT_BYTES = 400 };

typedef struct { char text[PW_SUBJECT_BYTES]; size_t size; } pw_subject;

/* Loads what the functions below need. May raise. */
void pw_subjects_init(void);
/* Forgets where anonymous modules were made. */
void pw_subjects_forget(void);
/* Remembers that the module was made at the innermost Ruby line of the calling thread. */
void pw_subject_made_here(VALUE module);
/* Returns whether the class was seen for the first time; in another Ractor than the main one false. */
bool pw_subject_first_time(VALUE singleton);

void pw_subject_of_module(pw_subject *subject, VALUE module);
void pw_subject_of_constant(pw_subject *subject, VALUE module, ID name);
void pw_subject_of_method(pw_subject *subject, VALUE module, ID name);
/* "Mixin in Target" */
void pw_subject_of_pair(pw_subject *subject, VALUE mixin, VALUE target);
void pw_subject_of_object(pw_subject *subject, VALUE object);
void pw_subject_add(pw_subject *subject, const char *bytes, size_t size);
void pw_subject_add_id(pw_subject *subject, ID name);

#endif
