/* Colours, only on a terminal, and never with NO_COLOR in the environment. */
#ifndef PAINT_H
#define PAINT_H

enum paint { PAINT_END, PAINT_GOOD, PAINT_WARN, PAINT_BAD, PAINT_STRONG };

/* Returns the escape sequence that changes the colour of stdout; "" without colours. */
const char *paint(enum paint colour);

#endif
