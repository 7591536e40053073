/* Text in pages and pictures. */
#ifndef PASSES_REPORT_MARKUP_H
#define PASSES_REPORT_MARKUP_H

#include <stdio.h>

/* Text from outside, escaped; ? for what XML does not allow. */
void markup_text(const char *, FILE *);

#endif
