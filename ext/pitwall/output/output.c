#include "output/output.h"

pw_output pw_out = {.writer = {.fd = -1}};
