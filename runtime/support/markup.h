/* HTML pages and SVG pictures: escaped text, the head and style of a page. */
#ifndef RUNTIME_SUPPORT_MARKUP_H
#define RUNTIME_SUPPORT_MARKUP_H

#include <stdio.h>

/* Write untrusted text, escaped, with ? for characters that XML forbids. */
void markup_text(const char *, FILE *);
/* Write a page up to its heading "NAME: WHAT"; its end.  style: CSS rules
 * beside those that all pages share. */
void markup_page(const char *name, const char *what, const char *style, FILE *);
void markup_page_end(FILE *);
/* Begin an SVG picture with a title, for a page or for a file of its own. */
void markup_picture(const char *title, int width, int height, FILE *);

#endif
