/* Colours: on a terminal only, and never with NO_COLOR in the environment. */
#ifndef PAINT_H
#define PAINT_H

enum paint { PAINT_END, PAINT_GOOD, PAINT_WARN, PAINT_BAD, PAINT_STRONG };

/* Returns the bytes that change the colour of stdout from here on; "" without colours. */
const char *paint(enum paint colour);

#endif
