#include "hidden.h"

struct hidden hidden_first = {42, &hidden_first, "first"};

struct hidden *hidden_get(void)
{
    return &hidden_first;
}
