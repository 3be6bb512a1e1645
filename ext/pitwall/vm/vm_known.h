/* Tells which Ruby this is, and whether vm_layout.h has a column for it. */
#ifndef PITWALL_VM_KNOWN_H
#define PITWALL_VM_KNOWN_H

#include <ruby/ruby.h>
#include <ruby/version.h>

/* 34 is Ruby 3.4. test/native/layout_check.c defines PW_RUBY itself: its Ruby may differ from the Ruby of the public
 * headers. */
#ifndef PW_RUBY
# define PW_RUBY (RUBY_API_VERSION_MAJOR * 10 + RUBY_API_VERSION_MINOR)
#endif

/* The Rubies that have a column. Messages that name the known Rubies use this list, too. */
#define PW_HAS_COLUMN(ruby) ((ruby) == 31 || (ruby) == 32 || (ruby) == 33 || (ruby) == 34 || (ruby) == 40)
#define PW_KNOWN_RUBIES "3.1 to 4.0"

/* 0: the layout is not known, and no part of the layout is read. */
#if defined(__linux__) && defined(__LP64__) && !defined(PITWALL_UNKNOWN_LAYOUT) && PW_HAS_COLUMN(PW_RUBY)
# define PW_LAYOUT_RUBY PW_RUBY
#else
# define PW_LAYOUT_RUBY 0
#endif

#define PW_TEXT_OF(number) PW_TEXT(number)
#define PW_TEXT(number) #number
#define PW_LAYOUT_UNKNOWN "the layout of Ruby " PW_TEXT_OF(RUBY_API_VERSION_MAJOR) "." PW_TEXT_OF(RUBY_API_VERSION_MINOR) \
    " is not known to this Pitwall (it knows " PW_KNOWN_RUBIES " on 64-bit Linux)"

#endif
