/* UTF-8 validation, and text as a string of JSON. */
#ifndef RUNTIME_SUPPORT_UTF8_H
#define RUNTIME_SUPPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 sequence at s; 0: invalid, overlong, a surrogate or
 * beyond Unicode.  Reads nothing after a NUL byte. */
int utf8_length(const unsigned char *s);
bool utf8_is(const char *s, size_t n);
/* Write s in quotes, or null for NULL.  Invalid bytes become U+FFFD. */
void utf8_json(FILE *out, const char *s);

#endif
