/* Steps of a boot that libraries do in Ruby: Bundler.setup, Rails' initializers. */
#ifndef PITWALL_SPANS_H
#define PITWALL_SPANS_H

#include <ruby/ruby.h>

void pw_spans_init(VALUE native);

#endif
