/* HTML pages and SVG charts: escaped text, the head and style of a page,
 * axes. */
#ifndef RUNTIME_SUPPORT_MARKUP_H
#define RUNTIME_SUPPORT_MARKUP_H

#include <stdio.h>

/* Text from outside, escaped; ? for what XML does not allow. */
void markup_text(const char *, FILE *);
/* A page of its own, up to and with its heading "NAME: WHAT", and its end.
 * style: rules beside those that all pages share. */
void markup_page(const char *name, const char *what, const char *style, FILE *);
void markup_page_end(FILE *);
/* A picture with its title, which a page or a file of its own may hold. */
void markup_picture(const char *title, int width, int height, FILE *);
/* 1, 2 or 5 times a power of ten, so that span > 0 has at most `most` of it. */
double markup_tick(double span, int most);

#endif
