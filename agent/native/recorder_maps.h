/* /proc/self/maps, line by line, with a small buffer on the stack. */
#ifndef STROBE_RECORDER_MAPS_H
#define STROBE_RECORDER_MAPS_H
#include "recorder_system.h"

struct mapping { uint64_t start, end, inode; bool readable, writable, executable, is_stack; };
struct maps { int64_t file; uint32_t at, have; char text[400]; };

bool maps_open(struct maps *maps);
bool maps_next(struct maps *maps, struct mapping *mapping);
void maps_close(struct maps *maps);
#endif
